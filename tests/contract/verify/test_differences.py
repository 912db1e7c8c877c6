"""What counts as a difference between runs, and what varies because of the server itself."""

import json

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.contract.verify.differences import (
    answers,
    echo_check,
    ending_check,
    excerpt_of,
    first_difference,
    session_checks,
    told,
)
from mcpspy.contract.verify.session import PlannedMessage, SessionPlan, Transcript
from mcpspy.contract.verify.stdio import StdioRun, Stream
from mcpspy.wire.jsonrpc import Id
from tests.each import each

PLAN = SessionPlan((PlannedMessage(b"{}", "ping", None, Id.of(1)),))
FACTS = {"environment": {"HOME": "/a"}, "umask": "022", "limits": {"RLIMIT_CORE": [0, -1], "RLIMIT_CPU": [1, 1]}}


def run(
    stdin=(b"in\n", b"in\n"), *, signals=(), ends=("exited with status 0",) * 2, ended=True, facts=FACTS, answer=b"{}"
):
    streams = {"stdin": Stream(*stdin), "stdout": Stream(b"", b""), "stderr": Stream(b"", b"")}
    transcript = Transcript({0: answer})
    return StdioRun(streams, facts, signals, *ends, ended, transcript)


def differing(bare, through):
    return {it.name: list(it.differences) for it in session_checks(PLAN, bare, through) if not it.equal}


def test_equal_runs_do_not_differ():
    assert differing([run(), run()], [run()]) == {}


@each(
    "stdin, sentence",
    [
        ((b"abcdef\n", b"abcef\n"), "byte 4 of 7: the client wrote 'def\\n', the server got 'ef\\n'"),
        ((b"abcdef\n", b"abc"), "the client wrote 7 bytes, the server got 3"),
        ((b"abc", b"abc\x00\xff"), r"the server got 2 bytes more than the client wrote: '\x00\xff'"),
    ],
)
def test_bytes_that_do_not_arrive(stdin, sentence):
    assert differing([run(), run()], [run(stdin)]) == {"client to server": [sentence]}


def test_a_byte_that_is_lost_once_is_lost():
    assert list(differing([run(), run()], [run((b"abc", b"ab")), run()])) == ["client to server"]


def test_what_was_on_its_way_when_we_killed_the_server_is_not_lost():
    assert differing([run(), run()], [run((b"abc", b"ab"), ended=False)]) == {}


def test_a_server_that_leaves_bytes_unread_does_so_bare_too():
    cut = run((b"abc", b"ab"))
    assert differing([cut, cut], [cut]) == {}


@given(st.binary(max_size=20), st.binary(max_size=20), st.binary(max_size=20))
def test_the_first_difference(shared, one, other):
    one, other = shared + one, shared + other
    at = first_difference(one, other)
    assert one[:at] == other[:at]
    assert one[at : at + 1] != other[at : at + 1] or at == min(len(one), len(other))


def test_what_differs_in_the_start():
    facts = FACTS | {"environment": {"HOME": "/b", "TOKEN": "s3cr3t"}, "umask": "077"}
    facts["limits"] = {"RLIMIT_CORE": [0, 0], "RLIMIT_CPU": [1, 1]}
    found = differing([run(), run()], [run(facts=facts)])
    assert found == {
        "environment": ["HOME has another value", "TOKEN is set through it, and not bare"],
        "start": ["umask: 022 bare, 077 through", "limits: RLIMIT_CORE is 0 -1 bare, 0 0 through"],
    }


def test_a_server_that_was_not_started_has_no_start_to_compare():
    found = differing([run(), run()], [run(facts={}, ends=("not started", "exited with status 1"))])
    assert found == {
        "closing stdin": [
            "the server exited with status 0 bare, was not started through",
            "the client sees that it exited with status 0 bare, exited with status 1 through",
        ]
    }


def test_ends_and_signals():
    bare = [run(signals=("SIGTERM",), ends=("killed by SIGTERM",) * 2)]
    through = [run(signals=("SIGTERM", "SIGTERM"), ends=("killed by SIGTERM", "exited with status 0"))]
    assert ending_check("SIGTERM", bare, through).differences == (
        "the client sees that it was killed by SIGTERM bare, exited with status 0 through",
        "the server got SIGTERM bare, SIGTERM SIGTERM through",
    )
    assert ending_check("SIGTERM", bare, [*through, *bare]).equal


def result(text, **more):
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": text}} | more).encode()


def compared(bare, through):
    return answers(PLAN, *([Transcript({0: raw} if raw else {}) for raw in runs] for runs in (bare, through)))


@each(
    "bare, through, differences",
    [
        ([result("a"), result("a")], [result("a")], ()),
        ([result("a"), result("a")], [result("b")], ('ping: /result/text is "a" bare, "b" through',)),
        ([result("a"), result("b")], [result("c")], ()),
        ([result("a"), result("a")], [result("a").replace(b": ", b":")], ("ping: the same value, in other bytes",)),
        ([result("at 10:00:01"), result("at 10:00:01")], [result("at 10:00:02")], ()),
        ([result("a"), result("a")], [None], ("ping: there is no answer",)),
        ([None, None], [result("a")], ("ping: there is an answer through it, and none bare",)),
        ([result("a"), None], [result("b")], ()),
        ([result("a"), result("a"), result("a")], [result("b"), result("a")], ()),
    ],
)
def test_answers(bare, through, differences):
    assert compared(bare, through).differences == differences


def test_what_is_new_in_each_bare_run_is_named():
    assert compared([result("a"), result("b")], [result("c")]).detail == "1 answer; new in each run: ping /result/text"


def test_notifications_are_counted_and_log_messages_are_not():
    def others(*methods):
        return Transcript({0: b"{}"}, [json.dumps({"jsonrpc": "2.0", "method": it}).encode() for it in methods])

    bare = [others("notifications/x", "notifications/message"), others("notifications/x")]
    assert answers(PLAN, bare, [others("notifications/x")]).equal
    assert answers(PLAN, bare, [others()]).differences == ("notifications/x came 1 times bare, 0 through",)
    assert answers(PLAN, bare, [others(), others("notifications/x")]).equal


def test_a_session_that_breaks_off_is_told_once():
    broken = Transcript({}, [], "the server ended before it answered ping")
    found = answers(PLAN, [Transcript({0: b"{}"})], [broken])
    assert found.differences == ("the session broke off: the server ended before it answered ping",)


def test_many_differences_are_told_shortly():
    assert told([str(number) for number in range(12)])[-1] == "and 2 other differences"


def test_an_excerpt_breaks_out_of_nothing():
    assert excerpt_of(b"\x1b[2J\n") == r"'\e[2J\n'"


def test_what_a_server_that_ended_by_itself_did_not_read_is_not_lost():
    runs = [run((b"abc", b"ab")), run((b"abc", b"a")), run((b"abc", b""))]
    for it in runs:
        it.transcript.trouble = "the server ended before it answered ping"
    assert differing(runs[:2], runs[2:]) == {}


@each(
    "arrived, told",
    [
        (b"abc\n", []),
        (b"", [r"byte 1 of 4: the client wrote 'abc\n', and nothing came back"]),
        (b"ab\n", [r"byte 3 of 4: the client wrote 'c\n', and '\n' came back"]),
        (b"abc\nabc\n", [r"byte 5 of 4: the client wrote nothing, and 'abc\n' came back"]),
    ],
)
def test_what_cat_did_not_give_back_is_told(arrived, told):
    assert [*echo_check(Stream(b"abc\n", arrived)).differences] == told
