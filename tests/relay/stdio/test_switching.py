"""A gate comes into force at any point of a stream: no byte is lost, repeated or out of order."""

import hashlib
import itertools
import os
import select
from random import Random

import pytest

from mcpspy.capture.records import Close, Frame
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import LIMIT, PASS, Exit
from tests import NIGHTLY, limits
from tests.each import each
from tests.relay.harness import LIMIT as SECONDS
from tests.relay.harness import until
from tests.relay.stdio.pair import SECOND, Pair, aside, compiled, exactly, line, rest, send

CALL = b'{"id":1,"method":"tools/call","params":{"name":"search"}}'
OTHER = b'{"id":2,"method":"tools/list"}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
OURS = b'{"jsonrpc":"2.0","id":9,"result":"ours"}'
DROP = compiled({"drop": True}, method="tools/call")
STREAM = b"\n".join([OTHER, b"\xff\r", b"", CALL, "é{".encode(), OTHER]) + b"\n"


@pytest.fixture
def pair(tmp_path):
    """Create relays, each with its own capture."""
    numbers = itertools.count()
    return lambda *given: Pair(tmp_path / f"{next(numbers)}.jsonl", *given, gated=False)


def frames(relay, ch):
    return [frame for frame in relay.records(Frame) if frame.ch == ch]


def test_what_comes_before_the_timekeepers_run_is_not_forgotten(pair, monkeypatch):
    relay, started = pair([DROP]), []
    monkeypatch.setattr("mcpspy.relay.stdio.gated.start_new_thread", lambda run, _: started.append(run))
    relay.switch()
    relay.there.reply(OURS, "viewer")
    for run in started:
        aside(run)
    assert line(relay.server[1]) == OURS
    assert relay.finish() == (b"", b"")


@pytest.mark.parametrize("end", [b"", b"rest"], ids=["whole", "cut"])
@each("at", range(len(STREAM) + 1))
def test_a_gate_comes_into_force_after_any_byte(pair, at, end):
    """The open line is forwarded, and the gate decides on the next lines. A reply comes between two lines."""
    relay = pair([DROP])
    os.write(relay.client[0], STREAM[:at])
    assert exactly(relay.server[1], at) == STREAM[:at]
    relay.switch()
    relay.there.reply(OURS, "gate g")
    begun = STREAM[:at].rpartition(b"\n")[2]
    came = select.select([relay.server[1]], [], [], 0.01 if begun else SECONDS)[0]
    assert bool(came) is not bool(begun), "a reply goes at once between two lines, and waits within one"
    os.write(relay.client[0], STREAM[at:] + end)
    left, _ = relay.finish()
    passed = STREAM[at:] + end
    if at <= STREAM.index(CALL):
        passed = passed.replace(CALL + b"\n", b"")
    lines = (STREAM[:at] + left).split(b"\n")
    assert lines.count(OURS) == 1
    assert left in _with(passed, OURS, begins=not begun)
    recorded = [frame for frame in frames(relay, 1) if frame.sender is None]
    assert b"".join(frame.raw + (b"" if frame.cut else b"\n") for frame in recorded) == STREAM + end
    written = b"".join(
        (frame.sent or frame.raw) + (b"" if frame.cut else b"\n") for frame in frames(relay, 1) if not frame.dropped
    )
    assert written == STREAM[:at] + left, "the capture has the order of the wire"
    assert relay.said == []


def _with(stream, reply, *, begins):
    """Return the streams with the reply before each line; with `begins`, also at the start of the stream."""
    places = [0] if begins else []
    places += [place + 1 for place in range(len(stream)) if stream[place] == ord("\n")]
    return [stream[:place] + reply + b"\n" + stream[place:] for place in places]


def test_a_reply_goes_out_although_its_direction_still_waits_in_the_plain_read(pair):
    relay = pair([compiled({"answer": '{"result":{}}'}, method="tools/call")])
    send(relay.client[0], OTHER)
    assert line(relay.server[1]) == OTHER
    relay.switch()
    for _ in range(3):
        send(relay.client[0], CALL)
        assert line(relay.client[1]) == ANSWER, "the server has sent nothing"
    send(relay.server[0], OTHER)
    assert line(relay.client[1]) == OTHER
    assert relay.finish() == (b"", b"")
    assert [frame.sender for frame in frames(relay, 2)] == ["mcpspy"] * 3 + [None]


@pytest.mark.parametrize("before", [0, 30_000], ids=["within", "between"])
def test_a_reply_waits_for_a_plain_write_that_the_client_does_not_exactly(pair, before):
    """The direction to the server is not held up; `before` is the size of a line that was already written."""
    relay = pair([compiled({"answer": '{"result":{}}'}, method="tools/call")])
    first = b"f" * before + b"\n"
    os.write(relay.server[0], first)
    until(lambda: relay.pumps[1].reads == 1 and not relay.pumps[1].busy)
    big = b"x" * (300_000 if not before else 60_000)
    writer = aside(send, relay.server[0], big, OTHER)
    until(lambda: relay.pumps[1].reads >= 2)
    relay.switch()
    send(relay.client[0], CALL, OTHER)
    assert line(relay.server[1]) == OTHER
    found = b""
    while found.count(b"\n") < 4:
        found += limits.read(relay.client[1], 1000)
    writer.join(SECONDS)
    lines = found.split(b"\n")
    assert lines[0] + b"\n" == first
    assert lines[1] == big
    assert sorted(lines[2:]) == sorted([b"", ANSWER, OTHER])
    assert relay.finish() == (b"", b"")
    assert [frame.raw for frame in frames(relay, 2)] == lines[:-1]


def test_a_gate_that_comes_into_force_after_one_direction_has_ended(pair):
    """The server has closed its stdout; frames to the server, and viewers' requests, are still forwarded."""
    relay = pair([compiled({"answer": '{"result":{}}'}, method="tools/call")])
    relay.close(relay.server[0])
    assert rest(relay.client[1]) == b""
    until(lambda: relay.pumps[1].ended)
    relay.switch()
    send(relay.client[0], CALL, OTHER)
    assert line(relay.server[1]) == OTHER
    relay.there.reply(OURS, "viewer")
    assert line(relay.server[1]) == OURS
    assert relay.finish() == (b"", b"")
    assert [(it.raw, it.dropped) for it in relay.records(Frame)] == [(CALL, True), (OTHER, False), (OURS, False)]
    assert {close.ch: close.how for close in relay.records(Close)} == {1: "eof", 2: "eof"}


def test_the_rest_of_a_long_line_passes_and_the_next_one_is_decided_on(pair):
    relay = pair([DROP])
    first, second = b"a" * (LIMIT + 70_000), b"b" * (LIMIT + 70_000)
    aside(os.write, relay.client[0], first)
    assert exactly(relay.server[1], len(first)) == first
    relay.switch()
    aside(send, relay.client[0], second, CALL, OTHER)
    assert exactly(relay.server[1], len(second) + 1) == second + b"\n"
    assert line(relay.server[1]) == OTHER
    assert relay.finish() == (b"", b"")
    assert [(it.raw, it.dropped) for it in frames(relay, 1)] == [(first + second, False), (CALL, True), (OTHER, False)]


@pytest.mark.parametrize("seed", range(12 if NIGHTLY else 4))
def test_bytes_and_capture_are_equal_while_gates_come_and_go_under_load(pair, seed):
    """Both directions, with chunks of any size, and gates that change at any moment; gates answer some calls."""
    chance = Random(seed)  # noqa: S311 (the same streams in every run)
    relay = pair([])
    sent = [stream(chance) for _ in range(2)]
    found = [b"", b""]

    def write(fd, data):
        chunks = Random(seed)  # noqa: S311
        while data:
            size = chunks.choice((1, 3, 50, 1000, 30_000, 65536, 100_000))
            os.write(fd, data[:size])
            data = data[size:]

    def read(place, fd):
        while chunk := limits.read(fd, chance.choice((100, 65536))):
            found[place] += chunk

    writers = [aside(write, relay.client[0], sent[0]), aside(write, relay.server[0], sent[1])]
    readers = [aside(read, *it) for it in enumerate((relay.server[1], relay.client[1]))]
    writers[0].join(chance.random() / 20)
    relay.switch()
    calls = {"method": "tools/call"}
    sets = [
        [],
        [compiled({"answer": '{"result":{}}'}, **calls)],
        [compiled({"delay": SECOND // 500}, **calls)],
        [compiled({"hold": SECOND // 100}, **calls), DROP],
    ]
    while any(writer.is_alive() for writer in writers):
        with relay.session.deciding:
            relay.gate.set_live([DeclaredGate(gate) for gate in chance.choice(sets)])
        if chance.random() < 0.3:
            relay.there.reply(OURS, "viewer")
        writers[0].join(0.002)
    relay.close(relay.client[0], relay.server[0])
    for reader in readers:
        reader.join(SECONDS)
    relay.finish()
    assert relay.said == []
    assert relay.gate.holders == {}
    for place, ch in ((0, 1), (1, 2)):
        named = {CALL, ANSWER, OURS}
        assert digest(sent[place], named) == digest(found[place], named)
        told = frames(relay, ch)
        came = b"".join(it.raw + (b"" if it.cut else b"\n") for it in told if it.sender is None)
        assert came == sent[place]


def digest(text, named):
    """Return the hash of all lines except the named ones."""
    return hashlib.sha256(b"\n".join(part for part in text.split(b"\n") if part not in named)).hexdigest()


def stream(chance):
    pieces = [b"\r", OTHER, b"\xff\xfe", b"{", "\u2028".encode(), b"x" * 70_000, b""]
    lines = [b"".join(chance.choices(pieces, k=chance.randrange(4))) for _ in range(150)]
    for _ in range(60):
        lines.insert(chance.randrange(len(lines)), CALL)
    lines.insert(chance.randrange(len(lines)), b"long" * (LIMIT // 3))
    return b"\n".join(lines) + chance.choice((b"", b"\n", b"rest"))


def test_exit_ends_the_server_with_its_status(pair):
    class Ending:
        by, follows, waits = "gate g", False, False

        def wants(self, facts):
            return False

        def decide(self, frame, facts, t):
            return Exit(7, "gate g") if frame == CALL else PASS

    relay = pair([Ending()])
    relay.switch()
    send(relay.client[0], OTHER, CALL, OTHER)
    assert relay.finish() == ((OTHER + b"\n") * 2, b"")
    assert relay.statuses == [7]
    assert [(it.dropped, it.by) for it in frames(relay, 1)] == [(False, None), (True, "gate g"), (False, None)]
