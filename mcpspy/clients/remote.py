"""The checks of a remote server: its type, its headers, and what one request gets.

The request is what the client sends first: for Streamable HTTP a POST with `initialize`, for HTTP+SSE a GET of the
stream. It has the headers of the entry. Nothing else is sent, no redirect is followed, and nothing is sent at all if
the entry has a mistake. What came back is shown without the values of the headers, which a server may repeat.
"""

import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from mcpspy.clients.check import FINE, NOTE, PROBLEM, Check, as_member
from mcpspy.clients.mistakes import of_texts, placeholders
from mcpspy.clients.places import Machine
from mcpspy.clients.servers import Server, expanded, unresolved
from mcpspy.clients.table import BOTH, HTTP, SSE, WEBSOCKET
from mcpspy.errors import UsageError
from mcpspy.json_values import member
from mcpspy.network.dialer import Dialer, NotReached
from mcpspy.secrets.redactor import shown
from mcpspy.secrets.tokens import replaced
from mcpspy.transport.client import handshake, request_line
from mcpspy.transport.http_client import HEADERS, DialedConnection, request_target
from mcpspy.wire.jsonrpc import Error, Result, parse
from mcpspy.wire.sse import Events, parse_event

PATIENCE = 10.0
"""Seconds to connect, for each read, and for the whole response."""
_MOST = 256 << 10  # bytes of a response
_EXCERPT = 160  # characters of a body
_HELD = ("headers", "http_headers")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_LOGIN = "Authorization"
_KEEP_THE_METHOD = (307, 308)  # RFC 9110, 15.4
_SCHEMES = ("Bearer", "Basic", "bearer", "basic")
_SHORTEST = 4  # characters of a secret; shorter ones are parts of many words
_BROKEN = (OSError, http.client.HTTPException, ValueError)


@dataclass(slots=True)
class RemoteResponse:
    """What came back for the one request."""

    status: int = 0
    reason: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By names in lower case."""
    body: bytes = b""
    seconds: float = 0
    trouble: Exception | None = None
    """Why there is no response."""

    @property
    def kind(self) -> str:
        """The media type."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


def headers_of(server: Server) -> dict[str, str]:
    """Return the headers in the entry of a server, with its variables."""
    holder: Any = server.members.get("requestOptions")
    holders = [server.members, holder if isinstance(holder, dict) else {}]
    found = [one[key] for one in holders for key in _HELD if isinstance(one.get(key), dict)]
    return {name: str(value) for headers in found for name, value in headers.items() if value is not None}


def mistakes_of(server: Server, machine: Machine) -> Iterator[Check]:
    """Check the entry of a remote server, without sending anything."""
    yield from _of_type(server)
    yield from _of_headers(server, machine)
    if server.url is not None:
        yield from _of_url(server.url, server, machine)


def of_request(server: Server, machine: Machine) -> Iterator[Check]:
    """Send the one request to a server whose entry has no mistake, and check what comes back."""
    client = server.found.client
    if transport_of(server) == WEBSOCKET:
        yield Check(NOTE, "it is a server over WebSocket, which is not asked here")
        return
    url = expanded(server.url or "", client, machine)
    headers = {name: expanded(value, client, machine) for name, value in headers_of(server).items()}
    headers |= _from_environment(server, machine)
    yield from of_response(request(url, headers, transport_of(server)), url, headers, server)


def transport_of(server: Server) -> str:
    """Return the transport with which the client connects; empty if it does not."""
    client = server.found.client
    key = next((key for key in client.remote if key in server.members), "")
    kind = server.members.get("type")
    if key in client.typed:
        return client.typed[key]
    return client.types.get(kind, "") if client.types and isinstance(kind, str) else client.untyped


def _type_for(server: Server, transport: str) -> str:
    """Return what to write so that the client uses this transport."""
    client = server.found.client
    key = next((key for key, value in client.typed.items() if value == transport), "")
    if key:
        return f"rename its url to {key}"
    value = next((value for value, used in client.types.items() if used in (transport, BOTH)), "")
    return f"write {as_member('type', value)}" if value else "correct its URL"


def _of_type(server: Server) -> Iterator[Check]:
    client, kind = server.found.client, server.members.get("type")
    if transport_of(server):
        return
    if not client.types:
        yield Check(
            PROBLEM,
            f"{client.name} starts only stdio servers from this file",
            f"add it as a connector in {client.name}, or write"
            f" {as_member('command', 'npx')}, {as_member('args', ['-y', 'mcp-remote', shown(server.url or '')])}",
        )
    elif kind is None:
        yield Check(PROBLEM, f"{client.name} skips an entry that has a URL and no type", _type_for(server, HTTP))
    else:
        known = ", ".join(client.types)
        yield Check(PROBLEM, f"its type is {kind!r}, and {client.name} knows {known}", _type_for(server, HTTP))


def _of_headers(server: Server, machine: Machine) -> Iterator[Check]:
    headers = headers_of(server)
    yield from of_texts({f"the header {name}": value for name, value in headers.items()}, server)
    yield from placeholders({f"the header {name}": value for name, value in headers.items()})
    for name, value in headers.items():
        clean = expanded(value, server.found.client, machine)
        yield from _of_unset(f"the header {name}", value, server, machine)
        if not _HEADER_NAME.fullmatch(name):
            yield Check(PROBLEM, f"{name!r} is not a valid name of a header", "correct it")
        if not _HEADER_VALUE.fullmatch(clean) or clean != clean.strip():
            what = "a blank at an end, a line break, or a character that no header can have"
            yield Check(PROBLEM, f"the header {name} has {what}", "copy its value again")
        scheme = clean.split()[:1]
        if name.title() == _LOGIN and scheme and clean.split()[1:2] == scheme:
            yield Check(PROBLEM, f"the header {name} has {scheme[0]} twice", f"write {scheme[0]} once")
        elif name.title() == _LOGIN and len(clean.split()) == 1:
            yield Check(
                PROBLEM, f"the header {name} has a value without a scheme", "write Bearer and a blank before the value"
            )


def _of_url(url: str, server: Server, machine: Machine) -> Iterator[Check]:
    yield from of_texts({"its URL": url}, server)
    yield from placeholders({"its URL": re.sub(r"[/?&=:@#]", " ", url.replace("://", " "))})
    yield from _of_unset("its URL", url, server, machine)
    try:
        parts = urlsplit(expanded(url, server.found.client, machine))
        schemes = ("ws", "wss") if transport_of(server) == WEBSOCKET else ("http", "https")
        valid = parts.scheme in schemes and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid or re.search(r"\s", url):
        yield Check(
            PROBLEM, f"its URL is not valid: {shown(url)}", "write it in full: https://HOST/PATH, without blanks"
        )


def _of_unset(where: str, text: str, server: Server, machine: Machine) -> Iterator[Check]:
    client = server.found.client
    for name in unresolved(text, client, machine):
        if name.startswith(("env:", "input:")) or name.isidentifier():
            known = "asks for" if name.startswith("input:") else "needs"
            level = NOTE if name.startswith("input:") else PROBLEM
            variable = name.removeprefix("env:").removeprefix("input:")
            yield Check(
                level, f"{where} {known} {variable}, which is not set here",
                f"set that where {client.name} is started, and here",
            )  # fmt: skip


def _from_environment(server: Server, machine: Machine) -> dict[str, str]:
    """Return the headers whose values Codex takes from variables."""
    named = server.members.get("env_http_headers")
    headers = dict(named) if isinstance(named, dict) else {}
    found = {name: machine.environ.get(str(variable), "") for name, variable in headers.items()}
    token = machine.environ.get(str(server.members.get("bearer_token_env_var")), "")
    return {name: value for name, value in found.items() if value} | ({_LOGIN: f"Bearer {token}"} if token else {})


def request(url: str, headers: Mapping[str, str], transport: str) -> RemoteResponse:
    """Send the one request, and return what came back, up to the first message of a stream."""
    initialize = request_line(1, "initialize", handshake("mcpspy-doctor"))
    method, line = ("GET", None) if transport == SSE else ("POST", initialize)
    response, begun = RemoteResponse(), time.monotonic()
    try:
        dialer = Dialer(url)
        with closing(DialedConnection(dialer, PATIENCE)) as connection:
            sent = HEADERS[method] | {**headers} | dialer.headers()
            connection.request(method, dialer.target(request_target(url)), line, sent)
            with _limited(connection.sock, 2 * PATIENCE):
                got = connection.getresponse()
                response.status, response.reason = got.status, got.reason
                response.headers = {name.lower(): value for name, value in got.getheaders()}
                response.body = _body(got, response.kind, begun + PATIENCE)
    except NotReached as error:
        cause = error.__cause__
        response.trouble = cause if dialer.proxy is None and isinstance(cause, Exception) else error
    except (UsageError, *_BROKEN) as error:
        response.trouble = error
    response.seconds = time.monotonic() - begun
    return response


@contextmanager
def _limited(tcp: socket.socket, seconds: float) -> Iterator[None]:
    """End a read after so many seconds in all: a server can send its head byte by byte."""
    timer = threading.Timer(seconds, tcp.shutdown, [socket.SHUT_RDWR])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()  # a server is started only while there is one thread


def _body(got: http.client.HTTPResponse, kind: str, due: float) -> bytes:
    """Return the body, or the data of the first event that has some."""
    events, body, block = Events(), b"", b""
    while len(body) < _MOST and time.monotonic() < due:
        try:
            chunk = got.read1(65536)
        except TimeoutError:
            break
        if not chunk:
            break
        body += chunk
        if kind == "text/event-stream":
            for raw, more, _ in events.feed(chunk):
                block += raw
                if not more:
                    event, block = parse_event(block), b""
                    if event.data:
                        return event.data
    return b"" if kind == "text/event-stream" else body


def of_response(response: RemoteResponse, url: str, headers: Mapping[str, str], server: Server) -> Iterator[Check]:
    """Check what came back."""
    secrets = [*headers.values(), urlsplit(url).query]
    for check in _judged(response, url, headers, server):
        yield Check(check.level, _without(check.text, secrets), _without(check.fix, secrets))


def _judged(response: RemoteResponse, url: str, headers: Mapping[str, str], server: Server) -> Iterator[Check]:
    transport, status = transport_of(server), response.status
    got = f"HTTP {status} {response.reason}".rstrip()
    if response.trouble is not None:
        yield _of_trouble(response.trouble, url)
    elif 200 <= status < 300:
        yield from _of_success(response, url, server)
    elif 300 <= status < 400:
        yield _of_redirect(response, got, url, headers, transport)
    elif status in (401, 403):
        yield from _of_refusal(response, got, headers, server)
    elif transport == SSE and status in (400, 405, 406):
        yield Check(PROBLEM, f"it has no event stream here ({got}), so it may speak {HTTP}", _type_for(server, HTTP))
    elif transport != SSE and (refusal := _error_in(response.body)):
        yield Check(NOTE, f"it answered initialize with an error: {refusal} ({got})")
    elif transport == BOTH and status in (400, 404, 405):
        fix = "if that fails too, correct the path; most servers are at /mcp" if status == 404 else ""
        yield Check(NOTE, f"it accepts no POST ({got}); {server.found.client.name} then tries HTTP+SSE", fix)
    elif status == 405:
        yield Check(PROBLEM, f"it accepts no POST ({got}), so it may speak {SSE}", _type_for(server, SSE))
    elif status == 404:
        yield Check(PROBLEM, f"there is nothing at this path ({got})", "correct the path; most servers are at /mcp")
    else:
        yield Check(PROBLEM, f"it answered {got}{_excerpt(response)}", "see its log; the client gets the same answer")


def _of_redirect(response: RemoteResponse, got: str, url: str, headers: Mapping[str, str], transport: str) -> Check:
    """Clients follow a redirect, but not as a POST with each status, and not with credentials to another origin."""
    where = urljoin(url, response.headers.get("location", ""))
    moved, fix = f"it redirects to {shown(where)} ({got})", f"write that URL: {shown(where)}"
    if transport != SSE and response.status not in _KEEP_THE_METHOD:
        return Check(PROBLEM, f"{moved}, which makes a GET of a POST", fix)
    if urlsplit(where)[:2] != urlsplit(url)[:2] and headers:
        return Check(PROBLEM, f"{moved}, to which clients do not send the headers", fix)
    return Check(NOTE, f"{moved}, which clients follow", fix)


def _of_success(response: RemoteResponse, url: str, server: Server) -> Iterator[Check]:
    """Check a response that is not an error of HTTP."""
    transport = transport_of(server)
    if transport == SSE:
        if response.kind != "text/event-stream":
            yield Check(PROBLEM, f"it sent {response.kind or 'nothing'}, not an event stream", _type_for(server, HTTP))
            return
        endpoint = response.body.decode(errors="replace")
        path = urlsplit(urljoin(url, endpoint)).path  # the rest may be the id of the session
        if not endpoint:
            yield Check(PROBLEM, "its stream names no endpoint", _type_for(server, HTTP))
        elif urlsplit(urljoin(url, endpoint))[:2] != urlsplit(url)[:2]:
            yield Check(
                PROBLEM, f"its stream names an endpoint at another origin: {shown(endpoint)}",
                "configure the public URL of the server",
            )  # fmt: skip
        else:
            yield Check(FINE, f"the stream began after {response.seconds:.1f} s, its endpoint is {path}")
        return
    answer = next((body for body in parse(response.body) if isinstance(body, Result)), None)
    if answer:
        yield Check(FINE, f"initialize was answered after {response.seconds:.1f} s{_identity(answer.result)}")
    elif refusal := _error_in(response.body):
        yield Check(NOTE, f"it answered initialize with an error: {refusal}")
    else:
        what = "a web page" if "html" in response.kind else "no message of MCP"
        yield Check(
            PROBLEM, f"it answered with {what}{_excerpt(response)}", "correct the path; most servers are at /mcp"
        )


def _error_in(body: bytes) -> str:
    """Return the message of the error in a response; empty if it is not an error of MCP."""
    error = next((it.error for it in parse(body) if isinstance(it, Error)), None)
    message = member(error, "message")
    return message if isinstance(message, str) else "" if error is None else str(error)


def _of_refusal(response: RemoteResponse, got: str, headers: Mapping[str, str], server: Server) -> Iterator[Check]:
    sent = [name for name in headers if name.title() == _LOGIN or "key" in name.lower() or "token" in name.lower()]
    challenge = response.headers.get("www-authenticate", "")
    if sent:
        yield Check(PROBLEM, f"it does not accept the header {', '.join(sent)} ({got})", "write a valid token into it")
    elif "resource_metadata" in challenge:
        yield Check(NOTE, f"it requires a login, and names where; {server.found.client.name} may offer that ({got})")
    else:
        yield Check(
            PROBLEM, f"it requires credentials, and names no place to log in ({got})",
            'write "headers": {"Authorization": "Bearer TOKEN"} with your own token into its entry',
        )  # fmt: skip


def _of_trouble(error: Exception, url: str) -> Check:
    """Return why there is no response."""
    if isinstance(error, NotReached):
        return Check(PROBLEM, f"the server {error}", "the client needs that proxy too, or an exception in no_proxy")
    if isinstance(error, UsageError):
        return Check(PROBLEM, str(error), "correct it; the client may need the same")
    host, why = urlsplit(url).netloc.rpartition("@")[2], str(getattr(error, "strerror", None) or error)
    if isinstance(error, ConnectionRefusedError):
        return Check(PROBLEM, f"nothing listens on {host}", "start the server, or correct the URL")
    if isinstance(error, ssl.SSLCertVerificationError):
        return Check(
            PROBLEM, f"the certificate of {host} is not trusted: {error.verify_message}",
            "trust its authority in the client, or correct the name in the URL",
        )  # fmt: skip
    if isinstance(error, ssl.SSLError):
        return Check(PROBLEM, f"{host} does not speak TLS: {why}", "write http:// if the server is on this machine")
    if isinstance(error, TimeoutError):
        return Check(PROBLEM, f"{host} sent nothing for {PATIENCE:.0f} s", "is it up, and reachable from here?")
    if isinstance(error, http.client.HTTPException | ConnectionResetError):
        return Check(PROBLEM, f"{host} does not answer in HTTP", "write https:// if its port is one for TLS")
    return Check(PROBLEM, f"{host} cannot be reached: {why}", "correct the host in the URL")


def _excerpt(response: RemoteResponse) -> str:
    text = " ".join(response.body[:_MOST].decode(errors="replace").split())
    title = re.search(r"(?i)<title[^>]*>([^<]*)", text)
    return f": {(title[1] if title else text)[:_EXCERPT]}" if text else ""


def _without(text: str, secrets: list[str]) -> str:
    """Return a text without these secrets, which a server may have repeated, and without all that looks like one."""
    for secret in secrets:
        for word in (secret, *re.split(r"[\s=&]+", secret)):
            text = text.replace(word, "«withheld»") if len(word) >= _SHORTEST and word not in _SCHEMES else text
    return replaced(text, lambda _: "«withheld»")


def _identity(result: Any) -> str:
    """Return name, version and revision of a server, as far as they are texts."""
    named = [member(result, "serverInfo", "name"), member(result, "serverInfo", "version")]
    parts = [" ".join(it for it in named if isinstance(it, str)), member(result, "protocolVersion")]
    return "".join(f", {part}" for part in parts if part and isinstance(part, str))
