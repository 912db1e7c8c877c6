r"""A recorded message as text for other programs: JSON, a `curl` command, a program with the Python SDK, a file.

The rules. The output is pasted into a shell or an interpreter, and its names, arguments and headers come from
strangers. So each captured text is one quoted word or one literal. No control, format or other invisible character is
ever written, because a terminal would act on it during a paste. In JSON it becomes `\uXXXX`, which is equivalent, and a
header that contains one is left out. Secrets were replaced when the capture was written and stay replaced; a comment at
the top names the values that the user has to fill in.
"""

import json
import os
import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from mcpspy.capture.records import Header, Open
from mcpspy.errors import UsageError
from mcpspy.text import printable
from mcpspy.timeline import Row

_LARGEST = 100_000  # bytes of a body in a command line: Linux accepts 128 KiB per word
_REDACTED = ("«redacted:", "«withheld:")
_OF_THE_WAY = frozenset(
    "connection content-length host keep-alive proxy-connection te trailer transfer-encoding upgrade expect"
    " accept-encoding content-encoding".split()
)  # headers that the next client sets itself; bodies were recorded without their coding
_OF_THE_SDK = frozenset(
    "accept content-type mcp-session-id mcp-protocol-version mcp-method mcp-name user-agent last-event-id origin"
    " accept-language sec-fetch-mode cache-control pragma".split()
)  # headers that the SDK sets itself
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")  # RFC 9110, 5.6.2

_PROGRAM = """\
{notes}import asyncio

{imports}

server = {server}


async def main():
    async with Client(server) as client:
        print({call})


asyncio.run(main())
"""


def as_json(row: Row) -> str:
    """Return a frame as recorded, JSON on one line. Raises UsageError if it is incomplete."""
    if len(row.raw) < row.size:
        raise UsageError(f"#{row.n} is too large to be copied: save it")
    if not row.raw:
        raise UsageError(f"#{row.n} is not a message")
    return _as_text(row)


def curl(header: Header, row: Row, opened: Open | None) -> str:
    """Return the HTTP request that carried a message, as a command for a POSIX shell.

    Raises UsageError if there was no such request.
    """
    head = opened.head if opened else None
    if opened is None or opened.role != "request" or not isinstance(head, dict):
        raise UsageError(f"#{row.n} came over {header.transport}, not in an HTTP request of the client")
    if row.sender != "client":
        raise UsageError(f"#{row.n} was sent by the {row.sender}: curl is a client")
    method = str(head.get("method", "POST"))
    if not method.isascii() or not method.isalpha():
        raise UsageError(f"the method {printable(method, 40)} cannot be written on a command line")
    words = [["curl", "--globoff", "--path-as-is", "--no-buffer", "--include"], ["--request", method]]
    words.append(["--url", _url(header, opened)])
    kept = _headers(opened, _OF_THE_WAY)
    words += [["--header", f"{name}: {value}" if value else f"{name};"] for name, value in kept]
    missing = _missing(words[2][1], kept)
    if row.raw:
        words.append(["--data-raw", _body(row)])
        missing += ["the body"] if _is_redacted(words[-1][1]) else []
    return _notes(missing) + " \\\n  ".join(shlex.join(part) for part in words) + "\n"


def python(header: Header, row: Row, opened: Open | None) -> str:
    """Return a program that makes the same request with the Python SDK 2.x.

    Raises UsageError if that has no such call.
    """
    if row.kind != "request" or row.sender != "client":
        raise UsageError(f"#{row.n} is not a request of a client")
    call = _call(row)
    imports, server, notes = _stdio(header) if header.transport == "stdio" else _web(header, opened)
    program = _PROGRAM.format(notes=f"# For the Python SDK 2.x.\n{notes}", imports=imports, server=server, call=call)
    try:
        compile(program, "program", "exec")
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # nested too deeply, or a number of too many digits
        raise UsageError(f"the arguments of #{row.n} cannot be written in Python") from None
    return program


def save(pieces: Iterable[bytes], name: str) -> None:
    """Write the pieces of a frame to a new file in the current directory, which only the user can read.

    The bytes are unchanged. Raises UsageError if the name is invalid or taken, or if the file cannot be written
    completely; then there is no file.
    """
    if not name.strip() or os.path.basename(name) != name or name in (".", ".."):
        raise UsageError(f"not the name of a file in this directory, give it without a path: {name!r}")
    try:
        file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    except FileExistsError:
        raise UsageError(f"the file exists, {_free(name)} is free: {name!r}") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot be created, {getattr(error, 'strerror', None) or error}: {name!r}") from error
    try:
        with os.fdopen(file, "wb") as opened:
            opened.writelines(pieces)
    except OSError as error:  # the disk is full, or a quota is reached
        with suppress(OSError):
            os.unlink(name)
        raise UsageError(f"cannot be written, {error.strerror}: {name!r}") from error


def _as_text(row: Row) -> str:
    """Return a frame as text to paste, without invisible characters."""
    text = row.raw.decode(errors="replace")
    if row.value is None or row.refused is not None:
        return "\n".join(printable(line, len(line) * 10 + 1) for line in text.split("\n"))
    return pasteable(text)


def pasteable(text: str) -> str:
    """Return equivalent JSON without invisible characters."""
    return text if text.isprintable() else "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(character: str) -> str:
    """Return the JSON escape of a character; outside strings there is only white space to escape."""
    return " " if character in "\n\r\t" else json.dumps(character)[1:-1]


def _body(row: Row) -> str:
    text = _as_text(row)
    if len(row.raw) < row.size or len(text.encode()) > _LARGEST:
        raise UsageError(f"#{row.n} is too large for a command line: save it, and send it with --data-binary @FILE")
    if (row.value is None or row.refused is not None) and text.encode() != row.raw:
        raise UsageError(f"#{row.n} is not text: save it, and send it with --data-binary @FILE")
    return text


def _url(header: Header, opened: Open) -> str:
    """Return the URL of a request: the upstream's origin, and the target that was forwarded."""
    head, sent = opened.head or {}, opened.sent or {}
    upstream = urlsplit(str(header.url))
    target = str(sent.get("target", head.get("target", "/")))
    if "://" in target.partition("?")[0]:
        found = urlsplit(target)
        target = f"{found.path or '/'}{'?' + found.query if found.query else ''}"
    url = f"{upstream.scheme}://{upstream.netloc}/{target.removeprefix('/')}"
    plain = url.isprintable() and not any(character.isspace() for character in url)
    if upstream.scheme not in ("http", "https") or not upstream.netloc or not plain:
        raise UsageError(f"{printable(url, 100)} is not a URL that a command line can request")
    return url


def _headers(opened: Open, without: frozenset[str]) -> list[tuple[str, str]]:
    """Return the forwarded headers, without those that another client sets itself and those that are not plain text."""
    changed = {str(name).lower(): value for name, value in _fields(opened.sent)}
    found = []
    for name, came in _fields(opened.head):
        value = changed.get(str(name).lower(), came)
        usable = isinstance(name, str) and isinstance(value, str) and value.isprintable()
        if usable and name and set(name) <= _TOKEN and name.lower() not in without:
            found.append((name, value))
    return found


def _fields(head: dict[str, Any] | None) -> list[list[Any]]:
    found = head.get("headers") if head else None
    return [field for field in found if isinstance(field, list) and len(field) == 2] if isinstance(found, list) else []


def _is_redacted(text: str) -> bool:
    return any(mark in text for mark in _REDACTED)


def _missing(url: str, headers: list[tuple[str, str]]) -> list[str]:
    """Return what was redacted of a request: names of headers, and the URL."""
    return [name for name, value in headers if _is_redacted(value)] + (["the URL"] if _is_redacted(url) else [])


def _notes(missing: list[str]) -> str:
    """Return a comment that names what was redacted; an empty string if nothing was."""
    return f"# Fill in what was redacted in the capture: {', '.join(missing)}\n" if missing else ""


def _stdio(header: Header) -> tuple[str, str, str]:
    """Return the imports, the server, and a comment, for a command."""
    command, *arguments = header.argv or ("",)
    cwd = f", cwd={header.cwd!r}" if header.cwd else ""
    server = f"StdioServerParameters(command={command!r}, args={arguments!r}{cwd})"
    return (
        "from mcp import Client, StdioServerParameters",
        server,
        _notes(["the command"] if any(map(_is_redacted, header.argv)) else []),
    )


def _web(header: Header, opened: Open | None) -> tuple[str, str, str]:
    """Return the same for a URL, with only the headers that the SDK does not send by itself."""
    url = _url(header, opened) if opened else str(header.url)
    headers = _headers(opened, _OF_THE_WAY | _OF_THE_SDK) if opened else []
    legacy = "session_id=" in url  # HTTP with SSE: a client of that URL learns where to POST
    if legacy:
        url = str(header.url)
    notes = _notes(_missing(url, headers))
    given = f", headers={dict(headers)!r}" if headers else ""
    if legacy:
        return "from mcp import Client\nfrom mcp.client.sse import sse_client", f"sse_client({url!r}{given})", notes
    if not headers:
        return "from mcp import Client", repr(url), notes
    imports = "import httpx2\nfrom mcp import Client\nfrom mcp.client.streamable_http import streamable_http_client"
    client = f"httpx2.AsyncClient(headers={dict(headers)!r})"
    return imports, f"streamable_http_client({url!r}, http_client={client})", notes


def _call(row: Row) -> str:
    """Return the expression that makes the request; `client` is the client of the SDK."""
    make = _CALLS.get(row.method or "")
    if make is None:
        raise UsageError(f"the SDK has no call for {printable(row.method or row.kind, 60)}")
    if len(row.raw) < row.size:
        raise UsageError(f"#{row.n} is too large to be copied: save it")
    try:
        value = json.loads(row.raw)
        params = (value[row.part] if isinstance(value, list) else value).get("params")
        return make(params if isinstance(params, dict) else {})
    except (ValueError, KeyError, TypeError, RecursionError):
        raise UsageError(f"the params of #{row.n} are not those of {row.method}") from None


def _named(call: str, name: str, *more: str) -> Callable[[dict[str, Any]], str]:
    """Return a call whose first argument is required and must be a string."""

    def make(params: dict[str, Any]) -> str:
        if not isinstance(params[name], str):
            raise TypeError
        given = [_literal(params[key]) for key in (name, *more) if key in params]
        return f"await client.{call}({', '.join(given)})"

    return make


def _paged(call: str) -> Callable[[dict[str, Any]], str]:
    """Return a call that may continue at a cursor."""

    def make(params: dict[str, Any]) -> str:
        cursor = f"cursor={_literal(params['cursor'])}" if "cursor" in params else ""
        return f"await client.{call}({cursor})"

    return make


_CALLS: dict[str, Callable[[dict[str, Any]], str]] = {
    "initialize": lambda _: "client.server_info",
    "server/discover": lambda _: "client.server_info",
    "ping": lambda _: "await client.send_ping()",
    "tools/call": _named("call_tool", "name", "arguments"),
    "tools/list": _paged("list_tools"),
    "prompts/get": _named("get_prompt", "name", "arguments"),
    "prompts/list": _paged("list_prompts"),
    "resources/read": _named("read_resource", "uri"),
    "resources/list": _paged("list_resources"),
    "resources/templates/list": _paged("list_resource_templates"),
    "resources/subscribe": _named("subscribe_resource", "uri"),
    "resources/unsubscribe": _named("unsubscribe_resource", "uri"),
    "logging/setLevel": _named("set_logging_level", "level"),
}


def _literal(value: Any) -> str:
    """Return a JSON value as a Python literal."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_literal(member)}" for key, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_literal, value)) + "]"
    if isinstance(value, float) and not isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _free(name: str) -> str:
    """Return a similar name that is not taken."""
    stem, suffix = os.path.splitext(name)
    return next(other for n in count(2) if not os.path.lexists(other := f"{stem}-{n}{suffix}"))
