"""A server over HTTP whose client is ours, with `mcpspy proxy` between the two to record.

For the driver this is a link like any other: it sends lines and receives lines. Each line is sent as a POST. A thread
of its own reads the response, a body or an event stream; another one reads the session's own stream. Requests begin in
the order of their lines. A notification or a response is complete before the next line is sent. Later requests have the
session id and the revision from `initialize` in their head. A request that states its revision itself has that, its
method and its name in the head (2026-07-28). A server that accepts no POST is tried as HTTP+SSE (2024-11-05). The proxy
records the traffic itself, so the new capture is like all others.
"""

import http.client
import os
import queue
import re
import socket
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any
from urllib.parse import urljoin, urlsplit

from mcpspy.errors import CaptureError, UsageError
from mcpspy.json_values import member
from mcpspy.process.ending import KILL, end, signal_group
from mcpspy.secrets.redactor import shown
from mcpspy.spec.revisions import PROTOCOL_VERSION
from mcpspy.transport.link import FLOODS, PATIENCE, Ended, Failed
from mcpspy.transport.streams import chunks, lines, room
from mcpspy.wire.jsonrpc import Body, Error, Id, Notification, Request, Result, parse
from mcpspy.wire.sse import Events, parse_event
from mcpspy.wire.subject import subject

if sys.platform == "win32":
    from mcpspy.process.child_windows import environment, spawn
else:
    from mcpspy.process.child import environment, spawn

_BROKEN = (OSError, http.client.HTTPException, ValueError, AttributeError)  # AttributeError: already closed
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_ENDPOINT = b""  # marks the event that names the endpoint
_REACH = 10.0  # seconds to connect
_NAMED = ("tools/call", "prompts/get", "resources/read")  # the requests with `Mcp-Name` in their head (2026-07-28)
_TAKES_NO_POST = (400, 404, 405)  # then it may be a server of HTTP+SSE (2025-03-26, basic/transports)


class WebLink:
    """The URL of a server, the proxy in front of it, and the capture that the proxy writes."""

    def __init__(self, url: str, headers: Sequence[str], name: str, path: str, recorded: int) -> None:
        """Start the proxy. `headers` are `Name: value`. Raises UsageError or CaptureError.

        Call it from the main thread, while that is the only thread. `recorded` is the number of bytes that the server
        of the capture sent.
        """
        self._headers = dict(parsed_header(header) for header in headers)
        reach(url)
        self.path = path
        self.interrupted = False
        """Whether a signal interrupted the replay."""
        self._room = room(recorded)  # bytes
        self.heard: queue.SimpleQueue[bytes | Ended | Failed] = queue.SimpleQueue()
        """The messages of the server, what failed, and finally that it has ended."""
        argv = [sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", "--name", name, "-o", path, url]
        self._proxy = spawn(argv, environment(), apart=True)
        self._proxy.confirm()
        self._output = lines(chunks(self._proxy.stdout))
        self._url = next(self._output, b"").decode()
        if not self._url:
            said = [line.decode(errors="replace") for line in lines(chunks(self._proxy.stderr))]
            self._proxy.wait()
            raise CaptureError((said or ["the proxy did not start"])[-1].removeprefix("mcpspy: "))
        if not os.path.exists(path):  # a proxy continues without a capture
            signal_group(self._proxy.pid, KILL)
            self._proxy.wait()
            raise CaptureError(f"cannot write a capture to {path}")
        self._session: dict[str, str] = {}  # the headers of the session
        self._endpoint: str | None = None  # the endpoint of HTTP+SSE
        self._told = threading.Event()  # set when the endpoint is known
        self._open: dict[Id, http.client.HTTPConnection] = {}  # pending requests
        self._to_send: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._gone = threading.Event()
        self._threads: list[threading.Thread] = []
        self._begin(self._write)

    def send(self, line: bytes) -> None:
        """Queue a line for sending."""
        self._to_send.put(line)

    def close(self) -> None:
        """Stop sending, then end the proxy, and with it every stream."""
        self._to_send.put(None)
        self._threads[0].join(PATIENCE)
        end(self._gone.wait, partial(signal_group, self._proxy.pid), 0, PATIENCE)

    def wait(self) -> None:
        """Wait in the main thread until the proxy has exited."""
        self._proxy.wait(interrupted=self._interrupt)
        self._gone.set()
        for thread in self._threads:  # their streams have ended with the proxy
            thread.join(PATIENCE)
        self.heard.put(Ended("was left"))

    def _interrupt(self, _: int) -> None:
        self.interrupted = True
        self.heard.put(Ended("was left"))

    def _begin(self, work: Callable[..., object], *arguments: object) -> None:
        self._threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self._threads[-1].start()

    def _write(self) -> None:
        while (line := self._to_send.get()) is not None:
            for body in parse(line):
                try:
                    self._post(line, body)
                except _BROKEN as error:
                    self._fail(body, f"the connection broke: {error or type(error).__name__}")

    def _post(self, line: bytes, body: Body) -> None:
        if isinstance(body, Notification) and body.method == "notifications/cancelled":
            asked = self._open.get(Id.of(member(body.params, "requestId")))
            if asked and not self._session and not self._endpoint:
                hang_up(asked)  # in 2026-07-28 a client cancels a request by closing its response
                return
        connection = self._connection()
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= self._headers | self._session | heads_of(body)
        connection.request("POST", target(self._endpoint or self._url), line, headers)
        if isinstance(body, Request) and body.method != "initialize":
            self._open[body.id] = connection
            self._begin(self._answer, connection, body)
            return
        response = connection.getresponse()
        if isinstance(body, Request):
            if response.status in _TAKES_NO_POST and not self._endpoint and self._listen(legacy=True):
                connection.close()
                self._post(line, body)
                return
            self._settle(connection, response, line, body)
        else:
            self._begin(self._hear, self._messages(connection, response))
        if isinstance(body, Notification) and body.method == "notifications/initialized" and not self._endpoint:
            self._listen(legacy=False)

    def _answer(self, connection: http.client.HTTPConnection, body: Request) -> None:
        """Pass the response to a request to the driver."""
        try:
            response = connection.getresponse()
        except _BROKEN as error:
            connection.close()
            self._fail(body, f"the connection broke: {error or type(error).__name__}")
            return
        self._hear(self._messages(connection, response))
        if not self._endpoint:  # else the response comes on the open stream
            self._fail(body, _without_answer(response))

    def _settle(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        line: bytes,
        body: Request,
    ) -> None:
        """Read the response to `initialize`, and store what applies to all later requests."""
        said = self._messages(connection, response)
        for raw in said:
            if raw == _ENDPOINT:  # a server of HTTP+SSE that accepts a POST in place of the GET for a stream
                self._begin(self._hear, said)
                self._post(line, body)
                return
            self.heard.put(raw)
            answers = [it for it in parse(raw) if isinstance(it, Result | Error) and it.id == body.id]
            if answers and not self._endpoint:
                revision = member(answers[0].value.get("result"), "protocolVersion")
                session = response.getheader("Mcp-Session-Id")
                self._session = {"MCP-Protocol-Version": revision} if isinstance(revision, str) else {}
                self._session |= {"Mcp-Session-Id": session} if session else {}
                self._begin(self._hear, said)  # the stream should end here, but a server may keep it open
                return
        if not self._endpoint:
            self._fail(body, _without_answer(response))

    def _listen(self, *, legacy: bool) -> bool:
        """Open the session's own stream; with `legacy`, wait for the endpoint and return whether it came."""
        connection = self._connection()
        connection.request(
            "GET", target(self._url), headers={"Accept": "text/event-stream", **self._headers, **self._session}
        )
        response = connection.getresponse()
        if response.status != 200:
            response.close()
            connection.close()
            return False
        self._begin(self._hear, self._messages(connection, response))
        return self._told.wait(_REACH) if legacy else True

    def _hear(self, said: Iterator[bytes]) -> bool:
        """Pass the messages of a stream to the driver; return False if there were none."""
        some = False
        try:
            for raw in said:
                if raw != _ENDPOINT:
                    some = True
                    self.heard.put(raw)
        except _BROKEN:  # or `hang_up` has closed the connection
            pass
        return some

    def _messages(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yield the messages of a response, and `_ENDPOINT` for the event that names the endpoint.

        Close the connection.
        """
        with closing(connection), response:
            kind = (response.getheader("Content-Type") or "").partition(";")[0]
            if kind == "text/event-stream":
                yield from self._events(response)
            elif kind == "application/json":
                yield b"".join(self._chunks(response))

    def _chunks(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        """Yield the body of a response, up to the limit of bytes."""
        while chunk := response.read1(65536):
            self._room -= len(chunk)
            if self._room < 0:
                self.heard.put(Ended(FLOODS))
                return
            yield chunk

    def _events(self, response: http.client.HTTPResponse) -> Iterator[bytes]:
        events = Events()
        block: list[bytes] = []
        for chunk in self._chunks(response):
            for raw, more, _ in events.feed(chunk):
                block.append(raw)
                if more:
                    continue
                event = parse_event(b"".join(block))
                block.clear()
                if event.name == "endpoint" and event.data:
                    self._endpoint = urljoin(self._url, event.data.decode())
                    self._told.set()
                    yield _ENDPOINT
                elif event.name == "message" and event.data:
                    yield event.data

    def _fail(self, body: Any, why: str) -> None:
        if isinstance(body, Request):
            self.heard.put(Failed(body.id, why))

    def _connection(self) -> http.client.HTTPConnection:
        there = urlsplit(self._url)
        return http.client.HTTPConnection(there.hostname or "127.0.0.1", there.port)


def _without_answer(response: http.client.HTTPResponse) -> str:
    lacks = " without the answer" if response.status == 200 else ""
    return f"HTTP {response.status} {response.reason}{lacks}"


def heads_of(body: Body) -> dict[str, str]:
    """Return the headers of a request that states its revision (2026-07-28, basic/transports)."""
    params = body.value.get("params") if isinstance(body.value, dict) else None
    revision = member(params, "_meta", PROTOCOL_VERSION)
    if not isinstance(revision, str) or not isinstance(body, Request | Notification):
        return {}
    name = subject(body.method, params) if body.method in _NAMED else None
    heads = {"MCP-Protocol-Version": revision, "Mcp-Method": body.method}
    return heads | ({"Mcp-Name": _header_text(name)} if name else {})


def _header_text(text: str) -> str:
    """Return a value for a header: unchanged if possible, else in base64 (2026-07-28, basic/transports)."""
    if text.isascii() and text.isprintable() and text == text.strip():
        return text
    return f"=?base64?{b64encode(text.encode()).decode()}?="


def parsed_header(text: str) -> tuple[str, str]:
    """Return the name and the value of a `--header` option. Raises UsageError."""
    name, colon, value = text.partition(":")
    if not colon or not _TOKEN.fullmatch(name.strip()):
        raise UsageError(f"--header takes 'Name: value', not {text!r}")
    if not (value.isascii() and value.strip().isprintable()):
        raise UsageError(f"--header {name.strip()!r} has a value that no header can have: it takes printable ASCII")
    return name.strip(), value.strip()


def reach(url: str) -> None:
    """Check that a server accepts connections at a URL. Raises UsageError."""
    try:
        there = urlsplit(url)
        port = there.port or (443 if there.scheme == "https" else 80)
    except ValueError:
        there, port = urlsplit(""), 0
    if there.scheme not in ("http", "https") or not there.hostname:
        raise UsageError(f"{shown(url)!r} is not a URL of a server, such as http://127.0.0.1:8000/mcp")
    try:
        with socket.create_connection((there.hostname, port), _REACH):
            pass
    except OSError as error:
        raise UsageError(f"cannot reach {shown(url)}: {error.strerror or error}") from error


def target(url: str) -> str:
    """Return the request target for a URL: its path and query."""
    there = urlsplit(url)
    return (there.path or "/") + (f"?{there.query}" if there.query else "")


def hang_up(connection: http.client.HTTPConnection) -> None:
    """Close a connection; a read on another thread ends."""
    shut(connection)
    connection.close()


def shut(connection: http.client.HTTPConnection) -> None:
    """End a read on a connection; another thread closes the connection itself."""
    try:
        if connection.sock:
            connection.sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
