import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import UsageError
from mcpspy.replay.sessions import FINE, compare, pair
from mcpspy.replay.tolerance import PlacePattern, Rules, Tolerance
from tests.each import each
from tests.replay.scripts import call, result, script

NOTE = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
LOG = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}'
SAMPLE = '{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"maxTokens":1}}'
GREEN = '{"jsonrpc":"2.0","id":0,"result":{"content":"green"}}'
CANCEL = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
FAILED = '{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"no"}}'
ASKED = f"> {call(1, 'a')}"
NOTE_LINE = f"< {NOTE}"


def told(recorded, observed, *ignore, pairs=None, **rules):
    """Return for each comparison with a difference: line, method and name, outcome, pointers."""
    old, new = script(recorded), script(observed)
    found = compare(old, new, pair(old, new), Rules(tuple(Tolerance.parse("ignore", it) for it in ignore), **rules))
    return [
        (it.request, " ".join(filter(None, (it.method, it.name))), it.outcome, [one.pointer for one in it.differences])
        for it in found
        if it.outcome not in FINE
    ]


@each(
    "recorded, observed, expected",
    [
        (result(1, "A"), result(1, "A"), []),
        (result(1, "A"), result(1, "B"), [(1, "tools/call a", "changed", ["/result/content/0/text"])]),
        (result(1, "A"), FAILED, [(1, "tools/call a", "error-changed", [""])]),
        (FAILED, FAILED.replace("no", "yes"), [(1, "tools/call a", "error-changed", ["/error/message"])]),
        (result(1, "A"), LOG, [(1, "tools/call a", "missing", [""])]),
        (LOG, result(1, "A"), [(1, "tools/call a", "changed", [""])]),
        (
            result(1, "A"),
            result(1, "A").replace("]}}", '],"isError":true}}'),
            [(1, "tools/call a", "error-changed", ["/result/isError"])],
        ),
    ],
)
def test_an_exchange_has_an_outcome(recorded, observed, expected):
    assert told(f"{ASKED}\n< {recorded}", f"{ASKED}\n< {observed}") == expected


def test_a_request_that_was_made_once_only_is_missing_or_extra():
    both, one = f"{ASKED}\n< {result(1, 'A')}\n> {call(2, 'b')}\n< {result(2, 'B')}", f"{ASKED}\n< {result(1, 'A')}"
    assert told(both, one) == [(3, "tools/call b", "missing", [""])]
    assert told(one, both) == [(None, "tools/call b", "extra", [""])]


def test_what_is_compared_is_found_in_both_captures():
    old, new = script(f"{ASKED}\n< {result(1, 'A')}\n{NOTE_LINE}"), script(f"{NOTE_LINE}\n{ASKED}\n{NOTE_LINE}")
    found = compare(old, new, pair(old, new), Rules())
    assert [(it.method, it.request, it.observed) for it in found] == [
        ("tools/call", 1, 2),
        ("notifications/tools/list_changed", None, 3),
    ]


def test_requests_are_paired_by_what_they_ask_then_by_name():
    lines = []
    for n in (1, 2):
        arguments = f'{{"x":{n}}}'
        lines.append(f"> {call(n, 'a', arguments)}\n< {result(n, n)}")
    other = lines[0].replace('"x":1', '"x":3')
    assert told("\n".join(lines), "\n".join(reversed(lines))) == []
    assert told("\n".join(lines), f"{lines[1]}\n{other}") == []


def test_pages_are_paired_in_their_order_whatever_their_cursors():
    def session(cursor):
        params = f'"params":{{"cursor":"{cursor}"}}'
        return f"""
            > {{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
            < {{"jsonrpc":"2.0","id":1,"result":{{"tools":[],"nextCursor":"{cursor}"}}}}
            > {{"jsonrpc":"2.0","id":2,"method":"tools/list",{params}}}
            < {{"jsonrpc":"2.0","id":2,"result":{{"tools":[]}}}}
        """

    assert told(session("a"), session("b")) == []


def test_progress_is_compared_in_its_exchange():
    def session(*messages):
        start = '< {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"message":'
        notes = [f'{start}"{message}"}}}}' for message in messages]
        meta = '{"progressToken":1}'
        return "\n".join([f"> {call(1, 'a', meta=meta)}", *notes, f"< {result(1, 'A')}"])

    assert told(session("x"), session("x")) == []
    assert told(session("x"), session("y")) == [(1, "tools/call a", "changed", ["/notifications/0/params/message"])]
    assert told(session("x"), session("x", "y")) == [(1, "tools/call a", "changed", ["/notifications/1"])]


def test_notifications_that_name_nothing_are_counted_over_the_session():
    early, late = f"{ASKED}\n< {NOTE}\n< {result(1, 'A')}", f"{ASKED}\n< {result(1, 'A')}\n< {NOTE}"
    assert told(early, late) == []
    none = f"{ASKED}\n< {result(1, 'A')}"
    assert told(none, late) == [(None, "notifications/tools/list_changed", "extra", [""])]
    assert told(early, none) == [(2, "notifications/tools/list_changed", "missing", [""])]
    assert told(none, f"{none}\n< | not json") == [(None, "", "extra", [""])]


def test_a_flood_is_told_by_its_first_messages():
    old, new = script(ASKED), script("\n".join([ASKED, *[f"< {NOTE}"] * 1000]))
    found = [it for it in compare(old, new, pair(old, new), Rules()) if it.outcome not in FINE]
    assert ([it.outcome for it in found], found[-1].reason) == (["extra"] * 20, "and 980 more")
    ignore = (Tolerance.parse("ignore", "notifications/tools/list_changed"),)
    assert {(it.outcome, it.reason) for it in compare(old, new, pair(old, new), Rules(ignore))} == {("same", None)}


def test_an_answer_to_nothing_is_told_with_its_id():
    old, new = (
        script(f"{ASKED}\n< {result(1, 'A')}{more}") for more in ("", f"\n< {result(chr(34) + '1' + chr(34), 'A')}")
    )
    *_, it = compare(old, new, pair(old, new), Rules())
    assert (it.method, it.outcome, it.differences[0].observed["id"]) == (None, "extra", "1")


def test_log_messages_are_compared_only_strictly():
    none, logged = f"{ASKED}\n< {result(1, 'A')}", f"{ASKED}\n< {LOG}\n< {result(1, 'A')}"
    assert told(none, logged) == []
    assert told(none, logged, strict=True) == [(None, "notifications/message", "extra", [""])]


def test_requests_of_the_server_are_compared_by_what_they_ask():
    def session(*tokens):
        lines = []
        for n, wanted in enumerate(tokens):
            asked, answer = (it.replace('"id":0', f'"id":{n}') for it in (SAMPLE, GREEN))
            lines += [f"< {asked}".replace('"maxTokens":1', f'"maxTokens":{wanted}'), f"> {answer}"]
        return "\n".join([ASKED, *lines, f"< {result(1, 'A')}"])

    assert told(session(1, 2), session(2, 1)) == []
    assert told(session(1, 2), session(1, 3)) == [(4, "sampling/createMessage", "changed", ["/params/maxTokens"])]
    assert told(session(1, 2), session(2)) == [(2, "sampling/createMessage", "missing", [""])]
    assert told(session(1), session(1, 9)) == [(None, "sampling/createMessage", "extra", [""])]


def test_an_answer_to_a_cancelled_request_came_by_chance():
    assert told(f"{ASKED}\n> {CANCEL}\n< {result(1, 'A')}", f"{ASKED}\n> {CANCEL}") == []
    assert told(f"{ASKED}\n> {CANCEL}", f"{ASKED}\n> {CANCEL}\n< {result(1, 'A')}") == []


def test_of_a_turn_that_was_not_sent_nothing_else_is_missing():
    recorded = script(f"{ASKED}\n< {NOTE}\n< {SAMPLE}\n> {GREEN}\n< {result(1, 'A')}")
    turn = recorded.turns[0]
    found = compare(recorded, script(""), [(turn, None)], Rules(), reasons={turn: "not sent: it was gone"})
    assert [(it.outcome, it.reason) for it in found] == [("missing", "not sent: it was gone")]
    found = compare(recorded, script(""), [(turn, None)], Rules(), reasons={turn: "why"}, skipped={turn})
    assert [(it.outcome, it.reason) for it in found] == [("skipped", "why")]


@each(
    "text, covered",
    [
        ("/result/content/0/text", True),
        ("/result/content/*/text", True),
        ("/result/content", True),
        ("/result/content/1", False),
        ("tools/call a /result", True),
        ("tools/call b /result", False),
        ("tools/call", True),
        ("tools/call a", True),
        ("tools/list /result", False),
        ("* a /result", True),
    ],
)
def test_what_is_expected_is_no_difference(text, covered):
    recorded, observed = f"{ASKED}\n< {result(1, 'A')}", f"{ASKED}\n< {result(1, 'B')}"
    assert (told(recorded, observed, text) == []) is covered


def test_a_notification_can_be_ignored_by_its_method():
    none, late = f"{ASKED}\n< {result(1, 'A')}", f"{ASKED}\n< {result(1, 'A')}\n< {NOTE}"
    assert told(none, late, "notifications/tools/list_changed") == []


@each("text", ["/result/a~1b/c~0d", "tools/call a b /result", "tools/call", "resources/read x://y /a"])
def test_a_pattern_reads_as_it_is_written(text):
    assert str(PlacePattern.parse(text)) == text
    assert PlacePattern.parse(str(PlacePattern.parse(text))) == PlacePattern.parse(text)


@pytest.mark.parametrize(
    ("text", "hint"), [("", "names no place"), ("result/content", "'/result/content'"), ("/result/a~b", "~0")]
)
def test_what_is_no_pattern_is_refused(text, hint):
    with pytest.raises(UsageError, match=hint):
        PlacePattern.parse(text)


OF_THE_SERVER = [NOTE, LOG, SAMPLE, "junk", result(1, "A"), FAILED, result(2, "B")]
OF_THE_CLIENT = [GREEN, call(1, "a"), call(2, "b"), CANCEL]
LINES = st.lists(
    st.sampled_from([f"< {line}" for line in OF_THE_SERVER] + [f"> {line}" for line in OF_THE_CLIENT]), max_size=12
)


@given(LINES, st.booleans(), st.booleans())
def test_a_session_does_not_differ_from_itself(lines, shape, strict):
    assert told("\n".join(lines), "\n".join(lines), shape=shape, strict=strict) == []


@given(LINES, LINES)
def test_sessions_that_differ_differ_both_ways(one, other):
    there, back = told("\n".join(one), "\n".join(other)), told("\n".join(other), "\n".join(one))
    assert bool(there) == bool(back)
