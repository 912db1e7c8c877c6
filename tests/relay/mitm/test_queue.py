"""What of the traffic of a host is MCP, and that nothing else is kept."""

import zlib
from collections import deque

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Open
from mcpspy.capture.writer import create
from mcpspy.relay.mitm import queue as module
from mcpspy.relay.mitm.queue import BACKLOG, CODED_PIECE, HELD, Flow, Origin, Origins, Turns

CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
JSON = [(b"Content-Type", b"application/json")]
EVENTS = [(b"Content-Type", b"text/event-stream")]


class Kept:
    """An origin, and the capture that its flows have opened."""

    def __init__(self, folder):
        self.folder = folder
        self.said = []
        self.origin = Origin("https://h", self._create)

    def _create(self, origin):
        return create(
            {"transport": "mitm", "name": "h", "url": origin.url},
            output=None,
            folder=str(self.folder),
            environ={},
            wall=origin.wall,
            say=self.said.append,
        )

    def flow(self, *headers, method="POST", target="/mcp"):
        head = {"method": method, "target": target, "version": "1.1"}
        return Flow(self.origin, head, list(headers), "127.0.0.1:1", self.said.append)

    def records(self, kind=object):
        found = [record for path in self.folder.glob("*.jsonl") for record in Capture(str(path)).records()]
        return [record for record in found if isinstance(record, kind)]


@pytest.fixture
def kept(tmp_path):
    kept = Kept(tmp_path)
    yield kept
    kept.origin.end()


FORM = b'--b\r\nContent-Disposition: form-data; name="token"\r\n\r\nhunter2\r\n--b--\r\n'


@pytest.mark.parametrize(
    ("asked", "body", "answered", "answer"),
    [
        (b"multipart/form-data; boundary=b", FORM, b"text/plain", b""),
        (b"application/x-www-form-urlencoded", b"password=hunter2", b"text/plain", b""),
        (b"application/json", b"{}", b"text/html; charset=utf-8", b'<input name="code" value="hunter2">'),
        (b"", b"", b"application/xhtml+xml", b'<a href="/?code=hunter2">'),
    ],
    ids=str,
)
def test_forms_and_pages_are_recorded_without_their_secrets(kept, asked, body, answered, answer):
    """O-02, with `--all-http`."""
    flow = kept.flow((b"Content-Type", asked), target="/login")
    flow.held.release()
    pass_through(flow, body, [(b"Content-Type", answered)], answer)
    raw = b"".join(record.raw for record in kept.records(Frame))
    assert b"hunter2" not in raw
    assert "«".encode() in raw


def pass_through(flow, body, headers, *chunks, status=200):
    """A whole flow."""
    now = flow.origin.now
    if body:
        flow.asked.feed(body, now())
    flow.asked_all(now())
    answer = flow.respond(now(), status, "OK", headers)
    for chunk in chunks:
        answer.feed(chunk, now())
    flow.answered_all(now(), switch=False)
    assert flow.over


@pytest.mark.parametrize(
    ("asked", "body", "headers", "answer"),
    [
        ([], CALL, [], b""),
        ([], CALL, [(b"Content-Type", b"text/html")], b"<p>"),
        ([(b"MCP-Protocol-Version", b"2025-06-18")], b"", [], b""),
        ([(b"mcp-session-id", b"a")], b"", [], b""),
        ([], b"{}", [*JSON, (b"Mcp-Session-Id", b"a")], b"{}"),
        ([], b"{}", JSON, CALL),
        ([], b"", EVENTS, b"data: " + CALL + b"\n\n"),
        ([], b"", EVENTS, b": hello\n\nevent: endpoint\r\ndata: /messages?session_id=1\r\n\r\n"),
        ([], b'{"method":"a","jsonrpc":"2.0"}', JSON, b"{}"),
    ],
    ids=str,
)
def test_what_is_mcp_is_recorded_whole(kept, asked, body, headers, answer):
    """M-04: a header of its own, or a message on either side, or the first event of HTTP+SSE."""
    pass_through(kept.flow(*asked), body, headers, answer)
    request, response = kept.records(Open)
    assert (request.ch, response.ch, response.answers) == (1, 2, 1)
    assert len(kept.records(Close)) == 2
    joined = b"".join(record.raw for record in kept.records(Frame) if record.ch == 1)
    assert joined == body
    assert kept.said == []


@pytest.mark.parametrize(
    ("body", "headers", "answer"),
    [
        (b"", [(b"Content-Type", b"text/html")], CALL),
        (b'{"version":"2.0"}', JSON, b'{"jsonrpc":"1.0"}'),
        (b"grant_type=refresh_token&refresh_token=hidden", JSON, b'{"access_token":"hidden"}'),
        (b"", EVENTS, b"event: endpoints\ndata: x\n\n" * 3),
        (b"", JSON, b'{"a":"' + b"x" * HELD + b'"}'),
        (b"x" * (HELD + 1), JSON, CALL),
    ],
    ids=lambda it: str(it[:30]),
)
def test_what_is_not_mcp_opens_no_capture(kept, body, headers, answer):
    """M-04."""
    pass_through(kept.flow(), body, headers, answer)
    assert list(kept.folder.iterdir()) == []


def test_what_is_held_is_bounded(kept):
    """M-04: a stream that never tells what it is; once forgotten it is no longer looked at."""
    flow = kept.flow(method="GET")
    flow.asked_all(1)
    answer = flow.respond(1, 200, "OK", EVENTS)
    for _ in range(100):
        answer.feed(b"data: " + b"x" * 10_000 + b"\n\n", 2)
        held = flow.held._waiting or []
        assert sum(len(entry[3]) for entry in held if isinstance(entry[3], bytes)) <= HELD
    answer.feed(b"data: " + CALL + b"\n\n", 3)
    assert list(kept.folder.iterdir()) == []


def test_frames_without_bytes_are_bounded_too(kept):
    flow = kept.flow(method="GET")
    flow.asked_all(1)
    flow.respond(1, 101, "Switching Protocols", [])
    flow.answered_all(1, switch=True)
    for _ in range(HELD // 10):
        flow.message(2, 1, b"", from_client=True)
    assert flow.held._waiting is None


def test_an_answer_that_cannot_hold_a_message_does_not_forget_a_request_under_way(kept):
    """A server may refuse before it has read everything."""
    flow = kept.flow()
    flow.asked.feed(CALL[:10], 1)
    flow.respond(2, 401, "Unauthorized", [])
    flow.asked.feed(CALL[10:], 3)
    flow.asked_all(1)
    flow.answered_all(9, switch=False)
    assert [record.head.get("status") for record in kept.records(Open)] == [None, 401]


def test_flows_have_channels_of_their_own_and_the_times_at_which_they_were_read(kept):
    """DESIGN, section 3: a flow that is told late is written late, with its own times."""
    late, early = kept.flow(), kept.flow((b"mcp-method", b"ping"))
    pass_through(early, CALL, JSON, CALL)
    late.asked.feed(b"{}", 5)
    late.asked_all(1)
    late.respond(6, 200, "OK", JSON).feed(CALL, 7)
    late.answered_all(9, switch=False)
    opens = kept.records(Open)
    assert [(it.ch, it.answers) for it in opens] == [(1, None), (2, 1), (3, None), (4, 3)]
    assert opens[2].t < opens[0].t
    assert opens[3].t == 6


def test_everything_is_recorded_of_what_is_released_and_its_secrets_are_not(kept):
    """O-02: the bodies of OAuth endpoints and forms."""
    flow = kept.flow((b"Authorization", b"Basic aGlkZGVu"), target="/oauth/token?client_secret=hidden")
    flow.held.release()
    pass_through(flow, b"code=hidden&code_verifier=hidden", JSON, b'{"access_token":"hidden"}')
    (path,) = kept.folder.iterdir()
    text = path.read_text()
    assert "hidden" not in text
    assert "aGlkZGVu" not in text
    assert text.count("«redacted:") == 5


def test_an_answer_of_our_own_says_so(kept):
    flow = kept.flow()
    flow.asked.feed(CALL, 1)
    flow.refuse(2, 502, "Bad Gateway", "no connection")
    assert flow.over
    assert [it.sender for it in kept.records(Open)] == ["client", "mcpspy"]
    assert [it.raw for it in kept.records(Frame)][-1] == b"mcpspy: no connection"
    assert [it.how for it in kept.records(Close)] == ["abort", "eof"]


@pytest.mark.parametrize("size", [1, 125, 126, 65535, 65536, 200_000])
def test_a_websocket_of_any_message_size(kept, size):
    """RFC 6455, 5.2."""
    flow = kept.flow((b"Sec-WebSocket-Protocol", b"a, mcp"), method="GET")
    flow.asked_all(1)
    flow.respond(1, 101, "Switching Protocols", [])
    flow.answered_all(9, switch=True)
    assert not flow.over
    flow.message(2, 1, b"x" * size, from_client=True)
    flow.message(3, 2, b"\xff" * size, from_client=False)
    flow.hang_up(9, 1001, "away", by_client=False)
    assert flow.over
    assert [(it.ch, it.raw, it.op) for it in kept.records(Frame)] == [
        (3, b"x" * size, None),
        (4, b"\xff" * size, "binary"),
    ]
    assert [(it.ch, it.how, it.code, it.reason) for it in kept.records(Close)][2:] == [
        (4, "eof", 1001, "away"),
        (3, "eof", 1001, "away"),
    ]


def test_a_websocket_that_breaks_off(kept):
    flow = kept.flow((b"Sec-WebSocket-Protocol", b"mcp"), method="GET")
    flow.asked_all(1)
    flow.respond(1, 101, "Switching Protocols", [])
    flow.answered_all(9, switch=True)
    flow.hang_up(9, 1006, "", by_client=True)
    assert [(it.ch, it.how, it.code) for it in kept.records(Close)][2:] == [(3, "reset", None), (4, "abort", None)]


def test_a_capture_that_cannot_be_made_is_said_once(tmp_path):
    (tmp_path / "file").write_text("")
    kept = Kept(tmp_path / "file" / "below")
    for _ in range(2):
        pass_through(kept.flow(), CALL, JSON, CALL)
    assert len(kept.said) == 1


def test_a_bug_is_said_and_raised_to_nobody(kept):
    """S-01."""
    flow = kept.flow()
    flow.held.frame = None
    pass_through(flow, CALL, JSON, CALL)
    (sentence,) = kept.said
    assert "stopped by a bug" in sentence
    assert "https://h" in sentence


def test_nothing_comes_after_the_end(kept):
    flow, late = kept.flow((b"mcp-method", b"ping")), kept.flow()
    kept.origin.end()
    flow.end(9, "shutdown", "shutdown")
    pass_through(late, CALL, JSON, CALL)
    assert len(kept.records(Open)) == 1


@pytest.mark.parametrize("at", [*range(65519, 65537), 131_060])
def test_a_sign_of_mcp_may_lie_across_pieces(kept, at):
    """M-04: a body is recorded in pieces of 64 KiB."""
    start = b'{"result":"'
    body = start + b"x" * (at - len(start) - 2) + b'",' + b'"jsonrpc": "2.0"}'
    assert body.index(b'"jsonrpc"') == at
    pass_through(kept.flow(), b"", JSON, body)
    assert b"".join(record.raw for record in kept.records(Frame)) == body


class Loop:
    """Calls what is to come later when it is told to."""

    def __init__(self):
        self.waiting = deque()

    def later(self, call):
        self.waiting.append(call)

    def turn(self):
        for _ in range(len(self.waiting)):
            self.waiting.popleft()()

    def turns(self):
        count = 0
        while self.waiting:
            count += 1
            self.turn()
        return count


CODED = [*JSON, (b"Content-Encoding", b"deflate")]
MANY = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"%x"}\n' % (n, n * 7919) for n in range(40_000))


def coded_flow(kept, loop, coded):
    """What is to be recorded of a flow whose answer is coded and arrives at once."""
    turns = Turns(kept.flow((b"mcp-method", b"ping")), loop.later)
    turns.feed(CALL, by_client=True)
    turns.add(lambda flow, t: flow.asked_all(t))
    turns.add(lambda flow, t: flow.respond(t, 200, "OK", CODED))
    turns.feed(coded, by_client=False)
    turns.add(lambda flow, t: flow.answered_all(t, switch=False))
    return turns


def test_a_coded_body_is_taken_apart_in_many_turns_and_all_else_waits_for_it(kept, monkeypatch):
    """S-01: other flows have their turns in between; the order of one stays."""
    monkeypatch.setattr(module, "TURN", 0)
    coded = zlib.compress(MANY)
    loop = Loop()
    turns = coded_flow(kept, loop, coded)
    assert loop.turns() == -(-len(coded) // CODED_PIECE) + 1
    assert turns.flow.over
    assert b"".join(record.raw for record in kept.records(Frame) if record.ch == 2) == MANY
    assert [record.how for record in kept.records(Close)] == ["eof", "eof"]


def test_what_takes_no_time_shares_a_turn(kept, monkeypatch):
    monkeypatch.setattr(module, "TURN", 1 << 60)
    coded = zlib.compress(MANY)
    loop = Loop()
    turns = Turns(kept.flow((b"mcp-method", b"ping")), loop.later)
    turns.add(lambda flow, t: flow.respond(t, 200, "OK", CODED))
    for start in range(0, len(coded), 64):
        turns.feed(coded[start : start + 64], by_client=False)
    assert loop.turns() == 1


@pytest.mark.parametrize("headers", [JSON, CODED])
def test_a_body_that_is_not_recorded_or_not_coded_takes_one_turn(kept, monkeypatch, headers):
    """What is no MCP need not be taken apart at all."""
    monkeypatch.setattr(module, "TURN", 0)
    loop = Loop()
    turns = Turns(kept.flow(), loop.later)
    turns.flow.asked_all(1)
    turns.add(lambda flow, t: flow.respond(t, 200, "OK", headers))
    if headers is CODED:
        turns.flow.held.forget()
    turns.feed(b"x" * 100_000, by_client=False)
    assert loop.turns() == 1


def test_what_waits_for_its_turn_is_bounded(kept, monkeypatch):
    """M-04: nobody is held up by a flow, until it is so much that memory would be."""
    loop = Loop()
    turns = coded_flow(kept, loop, zlib.compress(MANY))
    monkeypatch.setattr(module, "TURN", 0)
    monkeypatch.setattr(module, "BACKLOG", 3 * CODED_PIECE)
    assert loop.turns() == 3 + 2  # the first takes all but 3 pieces, the last the end
    assert turns.flow.over
    assert BACKLOG <= 1 << 24


def test_what_waits_is_recorded_at_the_end(kept):
    loop = Loop()
    turns = coded_flow(kept, loop, zlib.compress(MANY))
    turns.finish()
    loop.turns()
    assert b"".join(record.raw for record in kept.records(Frame) if record.ch == 2) == MANY


def test_a_bug_in_one_turn_does_not_lose_the_others(kept):
    """S-01: the event loop tells of it."""

    def bug(flow, t):
        raise ZeroDivisionError

    loop = Loop()
    turns = Turns(kept.flow((b"mcp-method", b"ping")), loop.later)
    turns.add(bug)
    turns.feed(CALL, by_client=True)
    with pytest.raises(ZeroDivisionError):
        loop.turn()
    loop.turns()
    turns.add(bug)
    turns.finish()
    turns.flow.asked_all(1)
    assert [record.raw for record in kept.records(Frame)] == [CALL]


def test_of_many_origins_the_one_that_was_idle_for_longest_ends(kept, monkeypatch):
    """With its capture; when it comes back, it gets another."""
    monkeypatch.setattr(module, "ORIGINS", 2)
    origins = Origins(kept._create)
    busy = set()
    origin = {name: origins.at(f"https://{name}", lambda: busy) for name in "ab"}
    for name in "ab":
        kept.origin = origin[name]
        pass_through(kept.flow(), CALL, JSON, CALL)
    assert origins.at("https://a", lambda: busy) is origin["a"]
    assert origins.at("https://c", lambda: busy) is not None
    assert len(kept.records(End)) == 1
    busy.add(origin["a"])
    assert origins.at("https://b", lambda: busy) is not origin["b"]
    assert origins.at("https://a", lambda: busy) is origin["a"]
    assert len(kept.records(End)) == 1
    busy.add(origins.at("https://b", lambda: busy))
    assert origins.at("https://d", lambda: busy) is None
    origins.end()
    assert len(kept.records(End)) == 2
