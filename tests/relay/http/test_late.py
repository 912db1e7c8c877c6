"""`mcpspy proxy` imports and compiles nothing while exchanges pass, and releases what it holds when it ends."""

import base64
import gzip
import http.client
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End, Frame, Release
from mcpspy.wire.websocket import TEXT, encode
from tests import limits
from tests.relay import late
from tests.relay.harness import LIMIT, until

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
EVENT = b'event: message\nretry: 10\ndata: {"jsonrpc":"2.0","method":"m","params":%d}\n\n'
JSON, FORM = {"content-type": "application/json"}, {"content-type": "application/x-www-form-urlencoded"}
BODIES = [
    *(b"x" * size for size in (1, 200, 4095, 4096, 65536, (1 << 20) + 1, 9 << 20)),
    PING,
    b"\xff\xfe",
    b'{"id":1,',
]
HELD, REQUESTS = 1000, 50
SOCKET = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13", "origin": "http://127.0.0.1"}
SOCKET |= {"sec-websocket-key": base64.b64encode(b"x" * 16).decode(), "sec-websocket-protocol": "mcp, bearer"}


class Server(BaseHTTPRequestHandler):
    """Returns a body as it is; `/events` has many events, `/socket` is a WebSocket that sends many messages."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body, kind="application/json", coding=None):
        self.send_response(200)
        self.send_header("content-type", kind)
        if coding:
            self.send_header("content-encoding", coding)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/socket":
            self.send_response(101)
            for name in ("connection", "upgrade"):
                self.send_header(name, SOCKET[name])
            self.end_headers()
            self.wfile.write(b"".join(encode(b'{"jsonrpc":"2.0","method":"m"}', TEXT) for _ in range(HELD)))
            self.rfile.read()
        elif self.path == "/events":
            self.answer(b"".join(EVENT % number for number in range(HELD)), "text/event-stream")
        else:
            self.answer(b'{"issuer":"http://127.0.0.1/"}')

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        coded = self.headers["x-coding"] == "gzip"
        self.answer(gzip.compress(body) if coded else body, coding="gzip" if coded else None)


@pytest.fixture
def proxy(tmp_path):
    """Start a proxy with options; return its process, the function that sends a request, and the log of its events."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    started, log = [], tmp_path / "events"

    def start(*options):
        where = ("--listen", "127.0.0.1:0", "-o", str(tmp_path / "capture.jsonl"))
        url = f"http://localhost:{server.server_port}/mcp"
        program = late.program(log, "http://127.0.0.1")
        started.append(limits.Popen([sys.executable, *program, "proxy", *where, *options, url], stdout=-1))
        address = urlsplit(started[0].stdout.readline().decode().strip()).netloc

        def send(method, path, body=None, **headers):
            connection = http.client.HTTPConnection(address, timeout=LIMIT)
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            return connection

        return started[0], send

    yield start
    for process in started:
        process.kill()
        process.communicate()
    server.shutdown()
    server.server_close()


def exchanges(send):
    """Send a request of each kind, and read the whole response."""
    for body in BODIES:
        yield send("POST", "/mcp", body, **JSON)
    yield send("POST", "/mcp", PING, x_coding="gzip", **JSON)
    yield send("POST", "/mcp", gzip.compress(PING), content_encoding="gzip", **JSON)
    yield send("POST", "/mcp", PING, authorization="Bearer made-up", cookie="a=b", **JSON)
    yield send("POST", "/mcp", PING, origin="http://elsewhere.example", **JSON)
    yield send("POST", "/%74oken?code=a%20b", b"grant_type=a&code=b", **FORM)
    yield send("POST", "/login", b'{"password":"b"}', **JSON)
    yield send("GET", "/events")
    yield send("GET", "/.well-known/oauth-protected-resource")


@pytest.mark.parametrize("gate", [None, "[[gate]]\nwhen = 'method:ping'\nchance = 0.5\ndelay = '1ms'\n"])
def test_no_exchange_causes_an_import(proxy, tmp_path, gate):
    """V-02: bodies of every size, content codings, events, a login, a WebSocket."""
    options = ()
    if gate:
        (tmp_path / "gates.toml").write_text(gate)
        options = ("--gate", str(tmp_path / "gates.toml"))
    process, send = proxy(*options)
    for connection in exchanges(send):
        connection.getresponse().read()
        connection.close()
    connection = send("GET", "/socket", **SOCKET)
    assert connection.sock.recv(12) == b"HTTP/1.1 101"
    connection.close()
    process.send_signal(signal.SIGTERM)
    process.wait()
    assert [it for it in late.unwanted(tmp_path / "events", tmp_path) if " open " not in it] == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_releases_every_held_frame(proxy, tmp_path, number):
    """A-19: events, messages of a WebSocket, and requests that wait for a gate, one on each connection."""
    hold = "[[gate]]\nwhen = 'from:server or method:ping'\nhold = '600s'\nreorder = true\n"
    (tmp_path / "gates.toml").write_text(hold)
    process, send = proxy("--gate", str(tmp_path / "gates.toml"))
    capture, count = tmp_path / "capture.jsonl", 2 * HELD + REQUESTS
    connections = [send("GET", "/events"), send("GET", "/socket", **SOCKET)]
    connections += [send("POST", "/mcp", PING, **JSON) for _ in range(REQUESTS)]
    until(lambda: capture.read_bytes().count(b'"held":') == count, f"{count} held frames")
    process.send_signal(number)
    process.wait()
    for connection in connections:
        connection.close()
    records = list(Capture(str(capture)).records(1 << 62))
    assert isinstance(records[-1], End)
    held = [it.held for it in records if isinstance(it, Frame) and it.held]
    assert sorted(it.held for it in records if isinstance(it, Release)) == sorted(held)
    assert len(held) == count
