"""A gate between the read and the write of `wrap`: with real pipes, and with real processes around them."""

import contextlib
import functools
import json
import os
import sys
import threading

import pytest

import mcpspy
from mcpspy.capture.records import Close, Frame, Release
from mcpspy.gate.gate import LIMIT
from mcpspy.gate.order import BYTES, FRAMES, GatedFrame
from mcpspy.recording.recording import Channel
from tests import limits
from tests.memory import objects_in
from tests.relay.harness import LIMIT as SECONDS
from tests.relay.harness import until
from tests.relay.stdio.pair import SECOND, Pair, aside, compiled, exactly, line, rest, send

CALL = b'{"id":1,"method":"tools/call","params":{"name":"search"}}'
OTHER = b'{"id":2,"method":"tools/list"}'
PING = b'{"id":3,"method":"ping"}'
CANCEL = b'{"method":"notifications/cancelled","params":{"requestId":1}}'


CALLS = {"method": "tools/call", "kind": "request"}


@pytest.fixture
def pair(tmp_path):
    return lambda *gates, **options: Pair(tmp_path / "capture.jsonl", gates, **options)


# Pass-through


def test_lines_of_one_read_that_pass_are_written_at_once(pair, monkeypatch):
    relay = pair(compiled({"drop": True}, **CALLS))
    writes, write, sink = [], os.write, relay.pumps[0].sink
    monkeypatch.setattr(os, "write", lambda fd, raw: (writes.append(raw) if fd == sink else None, write(fd, raw))[1])
    send(relay.client[0], *[OTHER, PING] * 200, CALL, *[OTHER, PING] * 200)
    passed = (OTHER + b"\n" + PING + b"\n") * 400
    assert relay.finish() == (passed, b"")
    assert b"".join(writes) == passed
    assert len(writes) <= relay.pumps[0].reads + 1, "what comes before a frame that the gate names goes before it"
    assert [it.raw for it in relay.records(Frame)] == [*[OTHER, PING] * 200, CALL, *[OTHER, PING] * 200]


def test_a_line_without_its_end_waits_and_goes_when_the_stream_ends(pair):
    relay = pair(compiled({"drop": True}, method="never"))
    os.write(relay.client[0], b'{"half":')
    send(relay.server[0], OTHER)
    assert line(relay.client[1]) == OTHER, "the other direction goes on"
    os.set_blocking(relay.server[1], False)
    with pytest.raises(BlockingIOError):
        limits.read(relay.server[1], 1)
    os.set_blocking(relay.server[1], True)
    assert relay.finish() == (b'{"half":', b"")
    (frame,) = [frame for frame in relay.records(Frame) if frame.ch == 1]
    assert (frame.raw, frame.cut) == (b'{"half":', True)


def test_a_line_of_2_mb_passes_as_it_arrives_and_the_capture_says_so(pair):
    relay = pair(compiled({"drop": True}))
    first, second = b"a" * (LIMIT + 200_000), b"b" * 900_000
    writer = aside(os.write, relay.client[0], first)
    found = b""
    while len(found) < LIMIT:
        found += limits.read(relay.server[1], 65536)
    writer.join(SECONDS)
    writer = aside(send, relay.client[0], second, CALL)
    while not found.endswith(b"\n"):
        found += limits.read(relay.server[1], 65536)
    writer.join(SECONDS)
    assert found == first + second + b"\n"
    assert relay.finish() == (b"", b"")
    long, call = relay.records(Frame)
    assert (long.raw, long.undecided, long.by) == (first + second, True, None)
    assert (call.raw, call.undecided, call.dropped) == (CALL, False, True)


# Verdicts that need no wait


def test_drop_send_and_repeat(pair):
    relay = pair(
        compiled({"drop": True}, "d", method="drop"),
        compiled(
            {"send": ["one", "two", "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16")]},
            "s",
            method="send",
        ),
        compiled({"repeat": 2}, "r", method="repeat"),
    )
    frames = [b'{"method":"%s"}' % name for name in (b"drop", b"send", b"repeat", b"pass")]
    send(relay.client[0], *frames)
    expected = [b"one", b"two", "😀".encode(), frames[2], frames[2], frames[3]]
    assert relay.finish() == (b"".join(frame + b"\n" for frame in expected), b"")
    told = [(it.raw, it.sent, it.by, it.dropped, it.sender) for it in relay.records(Frame)]
    assert told == [
        (frames[0], None, "gate d", True, None),
        (frames[1], b"one", "gate s", False, None),
        (b"two", None, "gate s", False, "mcpspy"),
        ("😀".encode(), None, "gate s", False, "mcpspy"),
        (frames[2], frames[2], "gate r", False, None),
        (frames[2], None, "gate r", False, "mcpspy"),
        (frames[3], None, None, False, None),
    ]


def test_an_answer_goes_to_the_side_that_asked_between_its_other_frames(pair):
    relay = pair(compiled({"answer": '{"result":{}}'}, **CALLS))
    send(relay.client[0], CALL)
    answer = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert line(relay.client[1]) == answer
    send(relay.server[0], CALL)
    assert line(relay.server[1]) == answer
    assert relay.finish() == (b"", b"")
    told = {(it.ch, it.raw, it.dropped, it.sender) for it in relay.records(Frame)}
    assert told == {
        (1, CALL, True, None),
        (2, answer, False, "mcpspy"),
        (2, CALL, True, None),
        (1, answer, False, "mcpspy"),
    }


def test_an_answer_never_lands_inside_a_line_that_passes_as_it_arrives(pair):
    relay = pair(compiled({"answer": '{"result":{}}'}, **CALLS))
    long = b"a" * (LIMIT + 200_000)
    writer = aside(os.write, relay.server[0], long)
    found = b""
    while len(found) < LIMIT:
        found += limits.read(relay.client[1], 65536)
    writer.join(SECONDS)
    send(relay.client[0], CALL, OTHER)
    assert line(relay.server[1]) == OTHER, "the call has been answered"
    os.write(relay.server[0], b"b\n")
    assert relay.finish()[1] == long[len(found) :] + b'b\n{"jsonrpc":"2.0","id":1,"result":{}}\n'


class Interrupted(Channel):
    """A channel that requests a reply before or after one call, and then waits until that is recorded.

    `call` is the number of the call, or None for the first call with the end of a line.
    """

    def __init__(self, *arguments, call, before):
        super().__init__(*arguments)
        self.call, self.before = call, before
        self.count = 0
        self.recorded = threading.Event()

    def feed(self, chunk, t):
        self._call(super().feed, chunk, t)

    def record(self, raw, t, rest, **options):
        if raw == REPLY:
            super().record(raw, t, rest, **options)
            self.recorded.set()
        else:
            self._call(super().record, raw, t, rest, **options)

    def _call(self, call, raw, *arguments, **options):
        self.count += 1
        if self.call is None and raw.endswith(b"\n"):
            self.call = self.count
        if self.count == self.call and self.before:
            self._interrupt()
        call(raw, *arguments, **options)
        if self.count == self.call and not self.before:
            self._interrupt()

    def _interrupt(self):
        self.pump.reply(REPLY, "gate g")
        self.recorded.wait(0.2)  # times out if the records of a channel cannot mix


REPLY = b'{"jsonrpc":"2.0","id":1,"result":{}}'


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("call", [1, 2, 3, None])
@pytest.mark.parametrize(
    "sent",
    [OTHER + b"\n" + PING + b"\n", b"a" * (LIMIT + 200_000) + b"\n" + OTHER + b"\n", b"rest"],
    ids=["lines", "long", "cut"],
)
def test_the_records_of_a_channel_are_the_lines_on_the_wire_in_their_order(pair, sent, call, before):
    """The other thread of the direction may do anything between a write and its record."""
    interrupted = functools.partial(Interrupted, call=call, before=before)
    relay = pair(compiled({"drop": True}, method="never"), back=interrupted)
    relay.channels[1].pump = relay.back
    found = []
    reader = aside(lambda: found.append(rest(relay.client[1])))
    aside(lambda: (os.write(relay.server[0], sent), relay.close(relay.server[0])))
    reader.join(SECONDS)
    relay.finish()
    assert found[0].replace(REPLY + b"\n", b"") == sent
    frames = [frame for frame in relay.records(Frame) if frame.ch == 2]
    assert [frame.raw for frame in frames] == found[0].removesuffix(b"\n").split(b"\n")
    assert [frame.sender for frame in frames] == ["mcpspy" if it.raw == REPLY else None for it in frames]


def test_close_ends_the_direction(pair):
    relay = pair(compiled({"close": True}, **CALLS))
    send(relay.client[0], OTHER, CALL, OTHER)
    assert rest(relay.server[1]) == OTHER + b"\n"
    send(relay.server[0], OTHER)
    assert line(relay.client[1]) == OTHER
    relay.finish()
    assert {it.ch: it.how for it in relay.records(Close)} == {1: "shutdown", 2: "eof"}


def test_close_after_a_delay_does_not_wait_for_the_next_frame(pair):
    relay = pair(compiled({"close": True, "delay": 1000}, **CALLS))
    send(relay.client[0], CALL)
    assert rest(relay.server[1]) == b""
    relay.finish()
    (release,) = relay.records(Release)
    assert (release.how, release.dropped, release.by) == ("delayed", True, "gate g")


# Verdicts that wait


def test_a_held_frame_goes_at_its_limit_and_what_follows_it_after_it(pair):
    relay = pair(compiled({"hold": SECOND // 10}, **CALLS))
    send(relay.client[0], CALL, OTHER)
    send(relay.server[0], OTHER)
    assert line(relay.client[1]) == OTHER
    assert line(relay.server[1]) == CALL
    assert line(relay.server[1]) == OTHER
    relay.finish()
    call, other, _ = sorted(relay.records(Frame), key=lambda frame: frame.ch)
    assert (call.raw, call.held, call.by, other.held, other.by) == (CALL, 1, "gate g", 2, "gate g")
    first, second = relay.records(Release)
    assert (first.held, first.how, second.held, second.how) == (1, "expired", 2, "delayed")
    assert first.t - call.t >= SECOND // 10
    assert [(it.sent, it.dropped) for it in (first, second)] == [(None, False)] * 2


def test_a_held_frame_is_released_by_somebody_else(pair):
    relay = pair(compiled({"hold": 60 * SECOND}, **CALLS))
    edited, dropped, last = (CALL.replace(b"1", b"%d" % n) for n in (11, 12, 13))
    send(relay.client[0], CALL, edited, dropped, last)
    until(lambda: len(relay.held()) == 4)
    relay.there.release(3, "dropped")
    relay.there.release(2, "edited", b"other")
    relay.there.release(1, "continued")
    assert line(relay.server[1]) == CALL
    assert line(relay.server[1]) == b"other"
    assert relay.finish() == (last + b"\n", b"")
    assert [(it.held, it.how, it.sent, it.dropped, it.by) for it in relay.records(Release)] == [
        (1, "continued", None, False, None),
        (2, "edited", b"other", False, "gate g"),
        (3, "dropped", None, True, "gate g"),
        (4, "closed", None, False, None),
    ]


def test_a_long_line_behind_a_held_frame_waits_and_is_undecided(pair):
    relay = pair(compiled({"hold": 60 * SECOND}, **CALLS))
    long = b"a" * (LIMIT + 1000)
    writer = aside(send, relay.client[0], CALL, long)
    until(relay.held)
    relay.there.release(1, "continued")
    assert exactly(relay.server[1], len(CALL + long) + 2) == CALL + b"\n" + long + b"\n"
    writer.join(SECONDS)
    assert relay.finish() == (b"", b"")
    assert [(it.raw, it.undecided) for it in relay.records(Frame)] == [(CALL, False), (long, True)]


def test_pings_and_their_responses_overtake_what_is_held(pair):
    relay = pair(compiled({"hold": 60 * SECOND}, method="tools/call"))
    send(relay.client[0], CALL, PING)
    assert line(relay.server[1]) == PING
    relay.there.release(1, "continued")
    assert line(relay.server[1]) == CALL
    send(relay.server[0], b'{"id":1,"result":{}}', b'{"id":3,"result":{}}')
    assert line(relay.client[1]) == b'{"id":3,"result":{}}'
    assert relay.finish() == (b"", b'{"id":1,"result":{}}\n')


def test_the_cancellation_of_a_held_request_drops_both(pair):
    relay = pair(compiled({"hold": 60 * SECOND}, **CALLS))
    send(relay.client[0], CALL, CANCEL, OTHER)
    assert line(relay.server[1]) == OTHER
    assert relay.finish() == (b"", b"")
    (release,) = relay.records(Release)
    assert (release.held, release.how, release.dropped, release.by) == (1, "cancelled", True, "gate g")
    cancel = next(frame for frame in relay.records(Frame) if frame.raw == CANCEL)
    assert (cancel.dropped, cancel.by, cancel.held) == (True, "gate g", None)


def test_at_the_end_of_the_stream_held_frames_go_in_their_order_before_the_close(pair):
    relay = pair(compiled({"hold": 60 * SECOND}, **CALLS))
    os.write(relay.client[0], CALL + b"\n" + OTHER + b"\n" + CALL)
    assert relay.finish() == (CALL + b"\n" + OTHER + b"\n" + CALL, b"")
    assert [release.how for release in relay.records(Release)] == ["closed", "closed"]
    assert isinstance([it for it in relay.records() if getattr(it, "ch", 1) == 1][-1], Close)


def test_what_is_held_at_the_end_and_nobody_takes_was_not_sent(pair):
    relay = pair(compiled({"hold": 60 * SECOND}, **CALLS))
    send(relay.client[0], CALL)
    until(relay.held)
    relay.close(relay.server[1])
    assert relay.finish() == (b"", b"")
    assert [(release.how, release.dropped) for release in relay.records(Release)] == [("closed", True)]


def test_what_waits_behind_a_held_frame_is_bounded(pair):
    """The client has to wait, and nothing is lost."""
    relay = pair(compiled({"hold": 60 * SECOND}, **CALLS))
    frame = b'{"method":"' + b"x" * 60_000 + b'"}'
    count = 60

    def write():
        send(relay.client[0], CALL)
        for _ in range(count):
            send(relay.client[0], frame)

    writer = aside(write)
    until(lambda: sum(len(it.raw) for it in objects_in(relay.there, GatedFrame)) >= BYTES)
    assert len(objects_in(relay.there, GatedFrame)) < 25
    assert writer.is_alive()
    relay.there.release(1, "continued")
    assert line(relay.server[1]) == CALL
    for _ in range(count):
        assert exactly(relay.server[1], len(frame) + 1) == frame + b"\n"
    writer.join(SECONDS)
    assert relay.finish() == (b"", b"")


def lines(fd, count):
    """Read this number of lines, and nothing after them."""
    chunks, left = [], count
    while left:
        chunks.append(limits.read(fd, 65536))
        left -= chunks[-1].count(b"\n")
    return b"".join(chunks).split(b"\n")[:-1]


@pytest.mark.parametrize(("size", "count"), [(1, 5000), (5000, 3000)], ids=["many", "large"])
def test_answers_that_nobody_reads_are_bounded(pair, size, count):
    """The client that sends the requests has to wait; it gets all responses when it reads."""
    relay = pair(compiled({"answer": '{"result":"%s"}' % ("x" * size)}, **CALLS))
    calls = [CALL.replace(b"1", b"%d" % (1_000_000 + number), 1) for number in range(count)]
    writer = aside(lambda: [send(relay.client[0], call) for call in calls])
    writer.join(0.5)
    assert writer.is_alive(), "the relay has stopped reading"
    answers = [it for it in objects_in(relay.back, bytes) if b'"result"' in it]
    assert 0 < len(answers) <= FRAMES
    assert len(b"".join(answers)) <= BYTES + size + 100
    send(relay.server[0], OTHER)
    found = lines(relay.client[1], count + 1)
    ids = [json.loads(answer)["id"] for answer in found]
    assert sorted(ids) == [2, *range(1_000_000, 1_000_000 + count)]
    writer.join(SECONDS)
    assert relay.finish() == (b"", b"")
    assert not relay.back.owes_much


def test_a_client_that_reads_nothing_does_not_stop_the_other_direction(pair):
    """Neither frames to the server nor replies of the gate wait for the write to the client."""
    relay = pair(compiled({"answer": '{"result":{}}'}, **CALLS))
    writer = aside(send, relay.server[0], *[OTHER] * 20_000)
    writer.join(0.2)
    assert writer.is_alive(), "the client takes no more"
    for _ in range(10):
        send(relay.client[0], CALL, OTHER)
        assert line(relay.server[1]) == OTHER
    assert set(lines(relay.client[1], 20_010)) == {OTHER, REPLY}
    writer.join(SECONDS)
    assert relay.finish() == (b"", b"")


def test_a_client_that_reads_no_answers_and_closes_its_stdout_is_read_again(pair):
    relay = pair(compiled({"answer": '{"result":"%s"}' % ("x" * 5000)}, method="tools/call"))
    writer = aside(send, relay.client[0], *[CALL] * 5000, OTHER)
    until(lambda: relay.back.owes_much)
    relay.close(relay.client[1])
    assert line(relay.server[1]) == OTHER
    writer.join(SECONDS)
    relay.finish()


def test_a_server_that_has_exited_leaves_nobody_waiting_for_its_answers(pair):
    """S-04: responses that the server has not read are dropped."""
    relay = pair(compiled({"answer": '{"result":"%s"}' % ("x" * 5000)}, method="tools/call"))
    writer = aside(send, relay.server[0], *[CALL] * 2000, OTHER)
    until(lambda: relay.there.owes_much)
    relay.there.abandon()
    assert line(relay.client[1]) == OTHER
    writer.join(SECONDS)
    relay.finish()
    assert not relay.pumps[0].busy


def test_a_peer_that_takes_no_more_ends_the_direction(pair):
    relay = pair(compiled({"hold": 60 * SECOND}, **CALLS))
    send(relay.client[0], CALL)
    until(relay.held)
    relay.close(relay.server[1])
    relay.there.release(1, "continued")
    until(lambda: relay.records(Release))
    with contextlib.suppress(BrokenPipeError):
        send(relay.client[0], OTHER)
    assert relay.finish() == (b"", b"")
    (release,) = relay.records(Release)
    assert (release.how, release.dropped) == ("continued", True), "what could not be written was not sent"
    assert {it.ch: it.how for it in relay.records(Close)} == {1: "abort", 2: "eof"}


def test_what_was_repeated_but_not_taken_is_not_recorded_as_sent(pair):
    """The server has read the first of two frames and then closed its stdin."""
    relay = pair(compiled({"repeat": 2}, **CALLS))
    call = CALL.replace(b"search", b"s" * 200_000)  # more than a pipe holds
    writer = aside(send, relay.client[0], call)
    assert exactly(relay.server[1], len(call) + 1) == call + b"\n"
    relay.close(relay.server[1], relay.server[0])
    writer.join(SECONDS)
    until(lambda: relay.records(Close))
    relay.finish()
    assert [(it.raw, it.sent, it.by, it.sender) for it in relay.records(Frame)] == [(call, call, "gate g", None)]


@pytest.mark.parametrize("action", [{"repeat": 2}, {"send": ["a", "b"]}, {"send": "a"}], ids=str)
def test_what_a_server_with_a_closed_stdin_does_not_get_is_recorded_as_dropped(pair, action):
    relay = pair(compiled(action, **CALLS))
    relay.close(relay.server[1])
    send(relay.client[0], CALL)
    until(lambda: relay.records(Frame))
    relay.finish()
    (frame,) = relay.records(Frame)
    assert (frame.raw, frame.sent, frame.dropped, frame.by) == (CALL, None, True, "gate g")


def test_an_answer_to_a_client_with_a_closed_stdout_is_not_recorded(pair):
    relay = pair(compiled({"answer": '{"result":{}}'}, **CALLS))
    relay.close(relay.client[1])
    send(relay.client[0], CALL)
    until(lambda: relay.records(Frame) and not any(pump.busy for pump in relay.pumps))
    relay.finish()
    assert [(it.ch, it.raw, it.dropped) for it in relay.records(Frame)] == [(1, CALL, True)]
    assert {it.ch: it.how for it in relay.records(Close)} == {1: "eof", 2: "abort"}


# Around real processes (`test_live` has more)


def test_a_server_behind_a_gate_gets_all_that_it_lets_through(wrap):
    wrapped = wrap("cat", gates=[compiled({"drop": True}, **CALLS)])
    sent = b"\n".join([OTHER, CALL, b"\xff", OTHER * 1000, b"rest"])
    assert wrapped.finish(sent) == (sent.replace(CALL + b"\n", b""), b"", 0)
    assert [it.raw for it in wrapped.capture.records() if isinstance(it, Frame) and it.dropped] == [CALL]


def test_with_a_gate_nothing_heavy_is_imported():
    """S-13: this holds for short frames of JSON."""
    bare = f"import os, sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(mcpspy.__file__))!r})\n"
    bare += "import mcpspy.capture.format\n"  # the writer of the capture imports it in any case
    full = (
        "import mcpspy.gate.compiled, mcpspy.relay.stdio.gated\n"
        "from mcpspy.gate.messages import read\n"
        """assert read(b'{"id":1.5,"method":"x"}', "lines")\n"""
    )

    def imported(source):
        command = [sys.executable, "-S", "-c", source + "print(*sys.modules)"]
        return set(limits.run(command, capture_output=True, text=True, check=True).stdout.split())

    new = imported(bare + full) - imported(bare)
    assert {name for name in new if not name.startswith("mcpspy")} <= {"_json", "itertools", "_blake2", "select"}
    assert {name.split(".")[1] for name in new if "." in name} <= {"gate", "json_values", "relay", "wire"}
