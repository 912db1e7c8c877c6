"""One client for Streamable HTTP of both eras and HTTP+SSE: what it sends, and what it makes of responses."""

import json
import queue
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from mcpspy.transport.http_client import ClientExchange, HttpClient
from mcpspy.transport.link import Ended, Failed
from mcpspy.wire.jsonrpc import Id
from tests.limits import LIMIT

ROOM = 1 << 20
INITIALIZE = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}'
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
CANCELLED = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}'
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
TOLD = b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}'
PONG = b'{"jsonrpc":"2.0","id":2,"result":{}}'
JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream; charset=utf-8"}


def event(data, name=b"message"):
    return b"event: " + name + b"\ndata: " + data + b"\n\n"


class Site:
    """A server whose responses a function makes from method, path and body: status, headers, pieces of the body."""

    def __init__(self, respond):
        self.asked = []
        self.answer = respond

    @contextmanager
    def serving(self):
        site = self

        class Handler(BaseHTTPRequestHandler):
            def respond(self):
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                site.asked.append((self.command, self.path, dict(self.headers), body))
                status, headers, pieces = site.answer(self.command, self.path, body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                try:
                    for piece in pieces:
                        self.wfile.write(piece)
                        self.wfile.flush()
                except OSError:  # the client has left
                    pass

            do_GET = do_POST = do_DELETE = respond  # noqa: N815 (names of the library)

            def log_message(self, *_):
                pass

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
            thread.start()
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp?a=b"
            server.shutdown()
            thread.join(LIMIT)

    def heads(self, name):
        return [headers.get(name) for _, _, headers, _ in self.asked]

    @property
    def requests(self):
        return [(method, body) for method, _, _, body in self.asked]


def streamable(method, _, body):
    """Serve a session of Streamable HTTP."""
    if method == "GET":
        return 405, {}, []
    if b"initialize" in body:
        return (200, JSON | {"Mcp-Session-Id": "s"}, [TOLD]) if b'"id"' in body else (202, {}, [])
    return 200, EVENTS, [event(PONG)]


def heard(client):
    return client.heard.get(timeout=LIMIT)


def test_a_session_of_streamable_http_is_begun_used_and_left():
    site, exchanges = Site(streamable), []
    with site.serving() as url:
        client = HttpClient(url, {"X-Key": "k"}, ROOM, LIMIT, exchanges, listens=False)
        for line in (INITIALIZE, INITIALIZED, PING):
            client.send(line)
        assert [heard(client), heard(client)] == [TOLD, PONG]
        client.finish(LIMIT)
        client.leave()
        client.join(LIMIT)
    assert [method for method, _ in site.requests] == ["POST", "POST", "POST", "GET", "DELETE"]
    assert {path for _, path, _, _ in site.asked} == {"/mcp?a=b"}
    assert site.heads("Mcp-Session-Id") == [None, "s", "s", "s", "s"]
    assert site.heads("MCP-Protocol-Version") == [None, *["2025-11-25"] * 4]
    assert set(site.heads("X-Key")) == {"k"}
    assert [(it.method, it.status, it.body, it.open) for it in exchanges[:3]] == [
        ("POST", 200, TOLD, False), ("POST", 202, b"", False), ("POST", 200, event(PONG), False),
    ]  # fmt: skip
    assert [it.answered for it in exchanges[:3]] == [True, False, True]


def test_the_stream_of_the_session_is_listened_to():
    note = b'{"jsonrpc":"2.0","method":"notifications/message"}'
    site = Site(lambda *it: (200, EVENTS, [event(note)]) if it[0] == "GET" else streamable(*it))
    with site.serving() as url:
        client = HttpClient(url, {}, ROOM)
        client.send(INITIALIZE)
        client.send(INITIALIZED)
        assert [heard(client), heard(client)] == [TOLD, note]
        client.finish(LIMIT)
        client.join(LIMIT)
    assert site.heads("Accept")[-1] == "text/event-stream"


def test_a_server_that_takes_no_post_is_asked_over_its_stream_of_events():
    """HTTP+SSE: the answers come on the stream."""
    answers = queue.SimpleQueue()

    def respond(method, path, body):
        if method == "GET":
            return 200, EVENTS, (answers.get(timeout=LIMIT) for _ in range(3))
        if path != "/messages":
            return 405, {}, []
        answers.put(event(TOLD if b"initialize" in body else PONG))
        return 202, {}, []

    answers.put(event(b"/messages", b"endpoint"))
    site = Site(respond)
    with site.serving() as url:
        client = HttpClient(url, {}, ROOM)
        client.send(INITIALIZE)
        assert heard(client) == TOLD
        client.send(PING)
        assert heard(client) == PONG
        client.finish(LIMIT)
        client.join(LIMIT)
    paths = [(method, path) for method, path, _, _ in site.asked]
    assert paths == [("POST", "/mcp?a=b"), ("GET", "/mcp?a=b"), ("POST", "/messages"), ("POST", "/messages")]
    assert client.heard.empty()


def test_the_endpoint_may_come_as_the_response_to_the_first_post():
    answers = queue.SimpleQueue()

    def respond(_, path, __):
        if path == "/messages":
            answers.put(event(TOLD))
            return 202, {}, []
        return 200, EVENTS, (answers.get(timeout=LIMIT) for _ in range(2))

    answers.put(event(b"/messages", b"endpoint"))
    with Site(respond).serving() as url:
        client = HttpClient(url, {}, ROOM)
        client.send(INITIALIZE)
        assert heard(client) == TOLD
        client.finish(LIMIT)
        client.join(LIMIT)


@pytest.mark.parametrize("line", [INITIALIZE, PING])
@pytest.mark.parametrize(
    ("response", "why"),
    [
        ((401, JSON, [b"{}"]), "HTTP 401 Unauthorized"),
        ((405, {}, []), "HTTP 405 Method Not Allowed"),
        ((200, {"Content-Type": "text/html"}, [PONG]), "HTTP 200 OK without the answer"),
        ((200, EVENTS, [event(TOLD.replace(b"1", b"9"))]), "HTTP 200 OK without the answer"),
    ],
)
def test_a_response_without_the_answer_is_told(line, response, why):
    with Site(lambda *_: response).serving() as url:
        client = HttpClient(url, {}, ROOM)
        client.send(line)
        while isinstance(it := heard(client), bytes):
            pass
        client.finish(LIMIT)
        client.join(LIMIT)
    assert it == Failed(Id.of(json.loads(line)["id"]), why)


def test_nobody_who_listens_is_told():
    with Site(streamable).serving() as url:
        pass
    client = HttpClient(url, {}, ROOM)
    client.send(PING)
    assert heard(client).how == "it cannot be reached: connection refused"
    client.finish(LIMIT)


def test_a_stream_that_goes_on_after_its_answer_is_left_if_time_is_limited():
    hold, exchanges = threading.Event(), []

    def pieces():
        yield event(PONG)
        hold.wait(LIMIT)

    with Site(lambda *_: (200, EVENTS, pieces())).serving() as url:
        client = HttpClient(url, {}, ROOM, LIMIT, exchanges)
        client.send(PING)
        assert heard(client) == PONG
        assert exchanges[0].settled.wait(LIMIT)
        client.finish(LIMIT)
        client.join(LIMIT)
        hold.set()
    assert (exchanges[0].open, exchanges[0].body, exchanges[0].trouble) == (True, event(PONG), None)


@pytest.mark.parametrize("end", [lambda client: client.send(CANCELLED), HttpClient.hang_up], ids=["cancel", "hang up"])
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_what_is_still_read_can_be_ended(end, connection):
    """In the era without a handshake, that cancels a request."""
    hold = threading.Event()

    def pieces():
        yield event(b"{}")
        hold.wait(LIMIT)

    site = Site(lambda *_: (200, EVENTS | {"Connection": connection}, pieces()))
    with site.serving() as url:
        client = HttpClient(url, {}, ROOM)
        client.send(PING)
        assert heard(client) == b"{}"
        end(client)
        assert isinstance(heard(client), Failed)
        client.finish(LIMIT)
        client.join(LIMIT)
        hold.set()
    assert [body for _, body in site.requests] == [PING]


def test_a_server_that_sends_more_than_there_is_room_is_heard_no_more():
    with Site(lambda *_: (200, EVENTS, [event(b'"' + b"x" * 50_000 + b'"')] * 10)).serving() as url:
        client = HttpClient(url, {}, 100_000)
        client.send(PING)
        while isinstance(it := heard(client), bytes):
            pass
        client.finish(LIMIT)
        client.join(LIMIT)
    assert it == Ended("said far more than in the capture")


def test_why_there_is_no_answer():
    assert ClientExchange("POST", b"", 0, trouble="the connection broke: x").why == "the connection broke: x"
    assert ClientExchange("POST", b"", 500, "Oh", trouble="the connection broke: x").why == "HTTP 500 Oh"
