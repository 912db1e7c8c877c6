import itertools
import json
import signal
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End, Open
from mcpspy.errors import CaptureError, UsageError
from mcpspy.replay.run import replay
from mcpspy.replay.script import read
from mcpspy.replay.sessions import FINE
from mcpspy.replay.tolerance import Rules
from mcpspy.transport import streams
from mcpspy.transport.http_client import heads_of
from mcpspy.transport.http_link import WebLink
from mcpspy.transport.link import Ended, Failed, signals_restored
from mcpspy.wire.jsonrpc import Id, parse
from tests.each import each
from tests.relay.harness import to_us
from tests.replay.mock.test_http import GREEN, SAMPLE, SESSION
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result
from tests.replay.webs import LIMIT, served
from tests.transcript import capture


@pytest.fixture(autouse=True)
def _as_before():
    with signals_restored():
        yield


def replayed(path, url, new, *headers):
    """Replay a capture over HTTP; return the comparisons that differ."""
    script = read(None, Capture(path).records())
    done = replay(script, lambda it: WebLink(url, headers, "weather", it, script.size), str(new), read_only=False)
    return [it for it in done.compared(Rules()) if it.outcome not in FINE]


@contextmanager
def serving(answer):
    """Run a server; `answer` returns status, headers, and body (or its pieces) for the body of each POST."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            status, headers, body = answer(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            try:
                for piece in [body] if isinstance(body, bytes) else body:
                    self.wfile.write(piece)
            except OSError:  # the client disconnected
                pass

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
        server.shutdown()
        thread.join(LIMIT)


def _link(url, tmp_path):
    return WebLink(url, (), "weather", str(tmp_path / "new.jsonl"), 0)


def _end(link):
    """Close a link as the driver does: while the main thread waits for the proxy."""
    closing = threading.Thread(target=link.close, daemon=True)
    closing.start()
    link.wait()
    closing.join(LIMIT)


def _one(url, tmp_path):
    """Send one call and return the first thing received that is not a line."""
    link = _link(url, tmp_path)
    link.send(call(1, "a").encode())
    heard = link.heard.get(timeout=LIMIT)
    while isinstance(heard, bytes):
        heard = link.heard.get(timeout=LIMIT)
    _end(link)
    return heard


def test_a_question_of_the_server_is_answered_as_recorded(tmp_path):
    path = capture(tmp_path / "c.jsonl", f"> {call(1, 'ask')}\n< {SAMPLE}\n> {GREEN}\n< {result(1, 'green')}")
    with served(path) as mock:
        assert replayed(path, mock.url, tmp_path / "new.jsonl") == []
        assert mock.end() == (0, "")


def test_a_session_is_the_same_and_its_headers_are_sent_with_each_request_and_not_recorded(tmp_path):
    path = capture(tmp_path / "c.jsonl", SESSION)
    with served(path) as mock:
        assert replayed(path, mock.url, tmp_path / "new.jsonl", "Authorization: Bearer s3cr3t", "X-Weather: fine") == []
        assert mock.end() == (0, "")
    assert Capture(str(tmp_path / "new.jsonl")).header.transport == "http"
    heads = [it.head["headers"] for it in Capture(str(tmp_path / "new.jsonl")).records() if isinstance(it, Open)]
    asked = [dict(map(tuple, head)) for head in heads if any(name == "Accept" for name, _ in head)]
    assert len(asked) >= 4
    assert {head["X-Weather"] for head in asked} == {"fine"}
    assert "s3cr3t" not in (tmp_path / "new.jsonl").read_text()
    session = [head.get("Mcp-Session-Id") for head in asked]
    assert (session[0], len(set(session[1:]))) == (None, 1)


def test_a_status_that_is_no_answer_is_why_there_is_none(tmp_path):
    path = capture(tmp_path / "c.jsonl", f"> {call(1, 'quick')}\n< {result(1, 'quick')}")
    with served(path) as mock:
        (it,) = replayed(path, mock.url, tmp_path / "new.jsonl", "Mcp-Session-Id: another")
    assert (it.outcome, it.reason) == ("missing", "HTTP 404 Not Found")


def test_a_status_of_success_without_the_answer_is_told_at_once(tmp_path):
    with serving(lambda _: (200, {"Content-Type": "application/json"}, b"nonsense")) as url:
        assert _one(url, tmp_path) == Failed(Id("number", "1"), "HTTP 200 OK without the answer")


def test_an_initialize_whose_stream_stays_open_holds_up_nothing(tmp_path):
    hold = threading.Event()

    def answer(body):
        if b"initialize" not in body:
            return 200, {"Content-Type": "application/json"}, result(2, "A").encode()
        return 200, {"Content-Type": "text/event-stream"}, pieces()

    def pieces():
        yield f"event: message\ndata: {INITIALIZED}\n\n".encode()
        hold.wait(LIMIT)

    with serving(answer) as url:
        link = _link(url, tmp_path)
        link.send(INITIALIZE.encode())
        link.send(call(2, "a").encode())
        assert [json.loads(link.heard.get(timeout=LIMIT))["id"] for _ in range(2)] == [1, 2]
        hold.set()
        _end(link)


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_a_server_that_talks_without_end_is_heard_no_more(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(streams, "ROOM", 1 << 20)
    note = b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/message"}\n\n'
    with serving(lambda _: (200, {"Content-Type": kind}, itertools.repeat(note))) as url:
        link = _link(url, tmp_path)
        link.send(call(1, "a").encode())
        while isinstance(heard := link.heard.get(timeout=LIMIT), bytes):
            pass
        assert heard == Ended("said far more than in the capture")
        _end(link)


def test_a_signal_to_us_ends_the_proxy(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = _link(f"http://127.0.0.1:{server.getsockname()[1]}/mcp", tmp_path)
        player = threading.Thread(
            target=lambda: (to_us(signal.SIGINT), link.heard.get(timeout=LIMIT), link.close()),
            daemon=True,
        )
        player.start()
        link.wait()
        player.join(LIMIT)
    assert link.interrupted
    assert isinstance(list(Capture(link.path).records())[-1], End)


def test_what_breaks_is_said_of_the_request(tmp_path):
    """The server closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = WebLink(f"http://127.0.0.1:{server.getsockname()[1]}/mcp", (), "weather", str(tmp_path / "new.jsonl"), 0)
        server.accept()[0].close()  # the connection that only tests the port
        link.send(call(1, "a").encode())
        connection, _ = server.accept()
        connection.recv(65536)
        connection.close()
        heard = link.heard.get(timeout=LIMIT)
        threading.Thread(target=link.close, daemon=True).start()
        link.wait()
    said = heard.how if isinstance(heard, Failed) else json.loads(heard)["error"]["message"]
    assert said


def test_a_port_where_nobody_listens_is_said(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(UsageError, match=f"http://127.0.0.1:{port}/mcp cannot be reached: connection refused"):
        WebLink(f"http://127.0.0.1:{port}/mcp", (), "weather", str(tmp_path / "new.jsonl"), 0)


def test_a_password_in_a_url_is_not_said(tmp_path):
    with pytest.raises(UsageError, match="is not a URL of a server") as raised:
        WebLink("ftp://me:hunter2@a/b", (), "weather", str(tmp_path / "new.jsonl"), 0)
    assert "hunter2" not in str(raised.value)


@each("header", ["x", ": y", "a b: c", "a: b\r\nc: d", "a: ☃"])
def test_what_is_no_header_is_said(header):
    with pytest.raises(UsageError, match="--header"):
        WebLink("http://127.0.0.1:9/mcp", [header], "weather", "new.jsonl", 0)


@each("url", ["weather", "ftp://a/b", "http:///mcp", "http://[/"])
def test_what_is_no_url_is_said(tmp_path, url):
    with pytest.raises(UsageError, match="is not a URL of a server"):
        WebLink(url, (), "weather", str(tmp_path / "new.jsonl"), 0)


def test_a_capture_that_cannot_be_written_is_said(tmp_path):
    path = str(tmp_path / "none" / "new.jsonl")
    with socket.create_server(("127.0.0.1", 0)) as server, pytest.raises(CaptureError, match="cannot write a capture"):
        WebLink(f"http://127.0.0.1:{server.getsockname()[1]}/mcp", (), "weather", path, 0)


@each(
    "method, params, heads",
    [
        ("tools/list", {}, {"Mcp-Method": "tools/list"}),
        ("tools/call", {"name": "a"}, {"Mcp-Method": "tools/call", "Mcp-Name": "a"}),
        ("resources/read", {"uri": "x://y"}, {"Mcp-Method": "resources/read", "Mcp-Name": "x://y"}),
        ("prompts/get", {"name": "žluť"}, {"Mcp-Method": "prompts/get", "Mcp-Name": "=?base64?xb5sdcWl?="}),
    ],
)
def test_a_request_that_states_its_revision_says_in_its_head_what_it_is(method, params, heads):
    meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | meta}
    (body,) = parse(json.dumps(request).encode())
    assert heads_of(body) == {"MCP-Protocol-Version": "2026-07-28"} | heads
    (body,) = parse(json.dumps(request | {"params": params}).encode())
    assert heads_of(body) == {}
