"""Rules about the headers that repeat values of a request (2026-07-28), so that intermediaries need not read bodies.

Every request needs `MCP-Protocol-Version` and `Mcp-Method`, and some need `Mcp-Name`. `Mcp-Param-*` repeat the
arguments that a tool's `inputSchema` marks with `x-mcp-header`. They are checked against the latest listing that this
client received. A value that is not valid in a header is base64 between `=?base64?` and `?=`. Headers whose names look
like those of secrets are redacted in the capture, and not checked.
"""

import binascii
from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.context import annotated, missing_meta, posted
from mcpspy.conversation.facts import Tool
from mcpspy.conversation.model import HttpChannel, Message, Session
from mcpspy.json_values import excerpt, member, pointer
from mcpspy.rules.rule import Fault, rule
from mcpspy.spec.revisions import PROTOCOL_VERSION, Revision, since
from mcpspy.wire.http_head import Head, header
from mcpspy.wire.jsonrpc import Error, Request, Result

_NAMED = {  # the member that Mcp-Name repeats; for tasks see SEP-2663
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_REFUSED = {"": ("Mcp-Method",)} | dict.fromkeys(
    ("tools/call", "prompts/get", "resources/read"), ("Mcp-Method", "Mcp-Name")
)
"""By method, with `""` for all others: the headers without which servers must refuse a request."""
_ALL = ("MCP-Protocol-Version", "Mcp-Method", "Mcp-Name")
_MISMATCH = -32020
_STANDARD = "basic/transports#standard-request-headers"
_VALIDATION = "basic/transports#server-validation"
_BEGIN, _END = "=?base64?", "?="
_REDACTED = "«redacted:"  # see mcpspy.secrets.redactor


@rule(
    "http/header-missing",
    "error",
    """Every POST of a request needs the headers `MCP-Protocol-Version` and `Mcp-Method`, and `Mcp-Name` for a tool, a
    prompt, a resource or a task. Servers must refuse a request without them. An argument with `x-mcp-header` in the
    tool's inputSchema needs that header too. If it is missing, that is only a warning, because this client may not have
    listed the tool itself.""",
    fix="""Send `MCP-Protocol-Version` and `Mcp-Method` with each POST, and `Mcp-Name` for a tool, a prompt, a
    resource or a task.""",
    meanwhile="Answer with the status 400 and the error -32020.",
    blame="client",
    spec=_STANDARD,
    about="http",
    revisions=since(Revision.R2026_07_28),
    fails="""
        >> [mcp-name:] 1 tools/call {META "name":"echo","arguments":{}}
    """,
    passes="""
        >> [mcp-name: echo] 1 tools/call {META "name":"echo","arguments":{}}
        << 200 1 = {"resultType":"complete","content":[]}
    """,
    on=(Request,),
)
def header_missing(message: Message, session: Session) -> Iterator[Fault]:
    """Report a request without a required header."""
    place = posted(message)
    if place is None:
        return
    missing = _missing(message, place)
    if missing:
        yield Fault(f"the request has no {' and no '.join(missing)}")
    for name, where, listed in _missing_parameters(message, place, session):
        yield Fault(f"the request has no {name}, which the tool's inputSchema asks for", where, (listed,),
                    severity="warning")  # fmt: skip


def _missing(message: Message, place: HttpChannel) -> list[str]:
    """Return the standard headers that a request needs but does not have."""
    needed = ["MCP-Protocol-Version", "Mcp-Method"]
    if isinstance(_name(message), str):
        needed.append("Mcp-Name")
    return [name for name in needed if header(place.opened.head, name.lower()) is None]


def _missing_parameters(message: Message, place: HttpChannel, session: Session) -> Iterator[tuple[str, str, int]]:
    """Yield the headers of a called tool that are not set: name, pointer to the argument, line of the listing."""
    for name, where, value, listed in _parameters(message, session):
        if value is not None and header(place.opened.head, name.lower()) is None:
            yield name, where, listed


@rule(
    "http/header-mismatch",
    "error",
    """A header must repeat a value of the body, but the two differ. Servers must refuse such a request, because
    intermediaries have already acted on the header. A header for a missing argument must be left out.""",
    fix="""Write `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` from the body that you send. Encode characters outside ASCII
    as `=?base64?…?=`.""",
    meanwhile="Answer with the status 400 and the error -32020.",
    blame="client",
    spec=_VALIDATION,
    about="http",
    revisions=since(Revision.R2026_07_28),
    fails="""
        >> [mcp-name: ls] 1 tools/call {META "name":"rm","arguments":{}}
        << 400 1 ! {"code":-32020,"message":"Header mismatch"}
    """,
    passes="""
        >> [mcp-name: =?base64?w6ljaG8=?=] 1 tools/call {META "name":"écho","arguments":{}}
        << 200 1 = {"resultType":"complete","content":[]}
    """,
    on=(Request,),
)
def header_mismatch(message: Message, session: Session) -> Iterator[Fault]:
    """Report a header that differs from the body."""
    yield from _mismatches(message, session)


@rule(
    "http/mismatch-accepted",
    "error",
    """The server answered a request whose headers do not match its body, or that lacks `Mcp-Method` or `Mcp-Name`. It
    must refuse such a request (400 and -32020). Otherwise a client can bypass a gateway that routes or filters by the
    header.""",
    fix="""Compare the headers with the body, and answer a mismatch or a missing header with the status 400 and the
    error -32020.""",
    meanwhile="Write the headers from the body that you send.",
    blame="server",
    spec=_VALIDATION,
    about="http",
    revisions=since(Revision.R2026_07_28),
    fails="""
        >> [mcp-name: ls] 1 tools/call {META "name":"rm","arguments":{}}
        << 200 1 = {"resultType":"complete","content":[]}
    """,
    passes="""
        >> [mcp-name: rm] 1 tools/call {META "name":"rm","arguments":{}}
        << 200 1 = {"resultType":"complete","content":[]}
    """,
    on=(Result,),
)
def mismatch_accepted(message: Message, session: Session) -> Iterator[Fault]:
    """Report the result of a request that the server had to refuse.

    `Mcp-Param-*` are not checked, because the tool's definition may have changed in the meantime.
    """
    request = message.exchange.request if message.exchange else None
    place = posted(request) if request else None
    if request is None or place is None or message.sender != "server":
        return
    missing = [name for name in _missing(request, place) if name in _REFUSED.get(request.method or "", _REFUSED[""])]
    if missing:
        yield Fault(f"the request is answered, although it has no {' and no '.join(missing)}", related=(request.n,))
        return
    for fault in _mismatches(request, None):
        yield Fault(f"the request is answered, although {fault.sentence}", related=(request.n,))
        return


@rule(
    "http/match-refused",
    "error",
    """The server refused a request with -32020, as if its headers did not match its body, but they do. Often the server
    compares the encoded value: `Mcp-Name` of characters outside ASCII is base64 between `=?base64?` and `?=`, and must
    be decoded first.""",
    fix="Decode `=?base64?…?=` before you compare `Mcp-Name` and `Mcp-Param-*` with the body.",
    meanwhile="Use names and URIs of ASCII characters.",
    blame="server",
    spec=_VALIDATION,
    about="http",
    revisions=since(Revision.R2026_07_28),
    explains=("error",),
    fails="""
        >> [mcp-name: =?base64?w6ljaG8=?=] 1 prompts/get {META "name":"écho"}
        << 400 1 ! {"code":-32020,"message":"Mcp-Name does not match"}
    """,
    passes="""
        >> [mcp-name: =?base64?w6ljaG8=?=] 1 prompts/get {META "name":"écho"}
        << 200 1 = {"resultType":"complete","messages":[]}
    """,
    on=(Error,),
)
def match_refused(message: Message, session: Session) -> Iterator[Fault]:
    """Report a request that is refused for headers that match.

    What a redacted header has is not known. Neither is what a tool asks for, unless it is listed. But if the error
    names the header that it means, only that one counts.
    """
    request = message.exchange.request if message.exchange else None
    place = posted(request) if request else None
    if request is None or place is None or member(message.body.value, "error", "code") != _MISMATCH:
        return
    text = member(message.body.value, "error", "message")
    said = text.lower() if isinstance(text, str) else ""
    own = [name for name, _, _, _ in _parameters(request, session)] if "mcp-param-" in said else []
    named = [it for it in (*_ALL, *own) if it.lower() in said]
    values = {name: header(place.opened.head, name.lower()) for name in named or _ALL}
    known = bool(named) or request.method != "tools/call" or request.name in session.listing.tools
    if not known or any(_REDACTED in (value or "") for value in values.values()):
        return
    if "mcp-param-" in said and request.name not in session.listing.tools:
        return
    if missing_meta(request) or _missing(request, place) or any(_missing_parameters(request, place, session)):
        return
    if any(True for _ in _mismatches(request, session)):
        return
    told = ", ".join(f"{name} is {excerpt(value)}" for name, value in values.items() if value is not None)
    yield Fault(f"the request is refused with -32020, but its headers match its body: {told}", "/error/code",
                (request.n,))  # fmt: skip


def _mismatches(message: Message, session: Session | None) -> Iterator[Fault]:
    """Yield the headers that differ from the body of a request. Without a `session`, skip `Mcp-Param-*`."""
    place = posted(message)
    if place is None or not isinstance(message.body, Request):
        return
    head, params = place.opened.head, message.body.params
    stated = member(params, "_meta", PROTOCOL_VERSION)
    pairs = [("Mcp-Method", "/method", message.body.method), ("Mcp-Name", _place_of_name(message), _name(message))]
    pairs.append(("MCP-Protocol-Version", pointer("params", "_meta", PROTOCOL_VERSION), stated))
    for name, where, value in pairs:
        if isinstance(value, str):
            yield from _compared(head, name, where, value)
    for name, where, value, _ in _parameters(message, session) if session else ():
        yield from _compared(head, name, where, value)


def _name(message: Message) -> Any:
    """Return the value that `Mcp-Name` repeats, or None if the method has none."""
    return member(message.body.value, "params", _NAMED.get(member(message.body.value, "method"), ""))


def _place_of_name(message: Message) -> str:
    return pointer("params", _NAMED.get(member(message.body.value, "method"), ""))


def _compared(head: Head | None, name: str, where: str, value: Any) -> Iterator[Fault]:
    """Yield what is wrong with a header that repeats a value of the body, if the header is set."""
    found = header(head, name.lower())
    if found is None or _REDACTED in found:
        return
    said = found if name in ("Mcp-Method", "MCP-Protocol-Version") else decoded(found)
    if said is None:
        yield Fault(f"{name} is not valid base64", where)
    elif said is found and not found.isascii():
        yield Fault(f"{name} has characters that must be encoded as base64", where)
    elif value is None:
        yield Fault(f"{name} is set, but the body does not have its value", where)
    elif not _same(said, value):
        yield Fault(f"{name} is {excerpt(said)}, but the body has {excerpt(value)}", where)


def decoded(value: str) -> str | None:
    """Decode the value of a header. Return None if its base64 is damaged."""
    if not (value.startswith(_BEGIN) and value.endswith(_END) and len(value) >= len(_BEGIN) + len(_END)):
        return value
    try:
        return binascii.a2b_base64(value[len(_BEGIN) : -len(_END)].encode(), strict_mode=True).decode()
    except ValueError:
        return None


def _same(said: str, value: Any) -> bool:
    if type(value) in (int, float):
        try:
            return bool(float(said) == value)
        except (ValueError, OverflowError):
            return False
    return said == _text(value)


def _text(value: Any) -> str:
    """Return a value as it is written in a header."""
    return {True: "true", False: "false"}[value] if type(value) is bool else str(value)


def _parameters(message: Message, session: Session) -> Iterator[tuple[str, str, Any, int]]:
    """Yield the headers of a called tool: name, pointer to the argument, value or None, line number of the listing."""
    name = message.exchange.name if message.exchange and message.exchange.method == "tools/call" else None
    tool = session.listing.tools.get(name) if name is not None and session.listing.complete else None
    for header_name, path in _marked(tool) if tool else ():
        value = member(message.body.value, "params", "arguments", *path)
        if value is None or type(value) in (str, int, float, bool):
            where = pointer("params", "arguments", *path)
            yield f"Mcp-Param-{header_name}", where, value, tool.listed if tool else 0


def _marked(tool: Tool) -> list[tuple[str, tuple[str, ...]]]:
    """Return header and path of each marked argument, or nothing if one mark is not valid (see `tools/`)."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for path, schema in annotated(tool.definition.get("inputSchema")):
        mark = schema["x-mcp-header"]
        if not isinstance(mark, str) or schema.get("type") not in ("string", "integer", "boolean"):
            return []
        found.append((mark, tuple(map(str, path[1::2]))))
    unique = {mark.lower() for mark, _ in found}
    return found if len(unique) == len(found) else []
