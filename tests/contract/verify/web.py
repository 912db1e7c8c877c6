"""Small HTTP peers for `mcpspy verify`: a Streamable HTTP server, and a proxy with a planted fault in front of it."""

import http.client
import json
import socket
import socketserver
import threading
import uuid
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.limits import LIMIT

RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}},
    "tools/list": {"tools": [{"name": "look", "inputSchema": {}, "annotations": {"readOnlyHint": True}}]},
    "tools/call": {"content": [{"type": "text", "text": "é"}]},
    "ping": {},
}


class _Quiet(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if "Transfer-Encoding" not in self.headers:
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        found = b""
        while size := int(self.rfile.readline(), 16):
            found += self.rfile.read(size + 2)[:size]
        self.rfile.readline()
        return found


class _Server(_Quiet):
    def do_POST(self):
        message = json.loads(self.body())
        if "id" not in message:
            self.give(202, b"")
            return
        result = RESULTS.get(message["method"])
        outcome = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no"}}
        text = json.dumps({"jsonrpc": "2.0", "id": message["id"]} | outcome, ensure_ascii=False).encode()
        session = {"Mcp-Session-Id": uuid.uuid4().hex} if message["method"] == "initialize" else {}
        if message["method"] == "tools/call":
            self.give(200, b"event: message\r\ndata: " + text + b"\r\n\r\n", "text/event-stream", session)
        else:
            self.give(200, text, "application/json", session)

    def do_DELETE(self):
        self.give(200, b"")

    def do_GET(self):
        self.give(405, b"")

    def give(self, status, body, kind="text/plain", more=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in dict(more).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _proxy(url, fault):
    there = urlsplit(url)

    class Proxy(_Quiet):
        def do_POST(self):
            body = self.body()
            heads = {name: value for name, value in self.headers.items() if name.lower() != "host"}
            connection = http.client.HTTPConnection(there.hostname, there.port, timeout=LIMIT)
            connection.request(self.command, self.path, body or None, heads)
            response = connection.getresponse()
            text = response.read()
            status = 200 if fault == "status" and response.status == 202 else response.status
            self.send_response_only(status)
            for name, value in response.getheaders():
                if name.lower() != "content-length":
                    self.send_header(name, value)
            if fault == "header":
                self.send_header("Via", "1.1 planted")
            text = text.replace("é".encode(), b"e") if fault == "body" else text
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
            connection.close()

        def do_GET(self):
            self.do_POST()

        def do_DELETE(self):
            self.do_POST()

    return Proxy


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Broken connections are what the tests want."""


@contextmanager
def _listening(kind, tls=None):
    server = _Listener(("127.0.0.1", 0), kind)
    if tls:  # each connection has its handshake in its own thread
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/mcp?a=b"
    finally:
        server.shutdown()
        server.server_close()


def serving(tls=None):
    """Start a server; the context value is its URL, with the scheme http also if there is TLS."""
    return _listening(_Server, tls)


class _SocketListener(_Listener):
    address_family = socket.AF_UNIX
    server_bind = socketserver.TCPServer.server_bind


@contextmanager
def serving_on(path):
    """Start the same server on a Unix socket."""
    server = _SocketListener(str(path), _Server)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()


def proxied(url, fault):
    """Start a proxy in front of a server, with a fault: `header`, `status`, `body` or `none`; the value is its URL."""
    return _listening(_proxy(url, fault))
