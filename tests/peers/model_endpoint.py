"""A scripted model on a loopback port. Real clients send it requests, and it requests calls of MCP tools.

Its answers are in `model_dialects.py`. It also serves what clients request before: a list of models, and counts of
tokens.
"""

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.peers import model_dialects as dialects
from tests.peers.model_dialects import Script, Turn

MODELS = {"object": "list", "data": [{"id": dialects.MODEL, "object": "model", "type": "model"}]}


class ModelEndpoint:
    """The server. `turns` has the time and content of each request for an answer, `others` the paths of the rest."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.turns: list[tuple[float, Turn]] = []
        self.others: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Request)
        self._server.daemon_threads = True
        self._server.endpoint = self  # type: ignore[attr-defined]  # the request handler reads it
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reply(self, path: str, body: dict) -> tuple[str, bytes]:
        """Return the media type and the body of an answer."""
        dialect = dialects.dialect(path)
        if dialect is None:
            self.others.append(path)
            counted = {"input_tokens": 1, "totalTokens": 1}
            return "application/json", json.dumps(counted if "ount" in path else MODELS).encode()
        turn = dialect.read(body)
        self.turns.append((time.monotonic(), turn))
        answer = dialects.answer(turn, self.script)
        if dialects.streams(path, body):
            return "text/event-stream", dialects.encoded(dialect.stream(answer))
        return "application/json", json.dumps(dialect.write(answer)).encode()


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Write nothing to stderr."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            parsed = json.loads(body)
        except ValueError:
            parsed = {}
        self._answer(parsed if isinstance(parsed, dict) else {})

    def do_GET(self) -> None:
        self._answer({})

    def do_HEAD(self) -> None:
        self._answer({})

    def _answer(self, body: dict) -> None:
        kind, content = self.server.endpoint.reply(self.path, body)  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(content)


@contextlib.contextmanager
def serving_model(script: Script) -> Iterator[ModelEndpoint]:
    """Run a scripted model for the length of the block."""
    endpoint = ModelEndpoint(script)
    endpoint.start()
    try:
        yield endpoint
    finally:
        endpoint.stop()
