"""Rules about extensions: only negotiated extensions are used, and the error for a missing extension names it.

`mcpspy.spec.extensions` lists the known extensions and what they add.
"""

from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.context import capabilities, undeclared_by, used_extension
from mcpspy.conversation.model import ENDLESS, Message, Session
from mcpspy.json_values import excerpt, member
from mcpspy.rules.rule import Fault, Severity, rule
from mcpspy.spec.extensions import Extension, declared, extension_methods
from mcpspy.spec.revisions import STATELESS
from mcpspy.text import series
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result

_MISSING_CAPABILITY = -32021
_OTHER_REASONS = (-32700, -32600, -32601, -32602, -32020, -32022)
"""Errors about the request itself. A server may detect them before it checks what the client declared."""
_FOR_BOTH = (
    ENDLESS,
    *(name for name, (extension, _) in extension_methods(STATELESS[-1]).items() if "client" in extension.needs),
)
"""The requests that may belong to an extension that the client has to declare."""
_NEGOTIATION = "https://modelcontextprotocol.io/extensions/overview#negotiation"


@rule(
    "extension/not-negotiated",
    "error",
    """The message belongs to an extension that one side did not declare. With a handshake, both sides declare their
    extensions in it. Without one (2026-07-28), the client declares them in the `_meta` of each request, and the server
    in its answer to `server/discover`. A peer without the extension cannot read the message.""",
    fix="Declare the extension under `extensions` in your capabilities, or do not use it for this request.",
    meanwhile="Declare the extension too if you support it.",
    spec=_NEGOTIATION,
    about="shape",
    fails="""
        > 1 tools/call {META "name":"build","arguments":{}}
        < 1 = {"resultType":"task","taskId":"t-1","status":"working","createdAt":"2026-11-20T10:00:00Z",\
"lastUpdatedAt":"2026-11-20T10:00:00Z","ttlMs":null}
    """,
    passes="""
        > 1 tools/call {META with io.modelcontextprotocol/tasks "name":"build","arguments":{}}
        < 1 = {"resultType":"task","taskId":"t-1","status":"working","createdAt":"2026-11-20T10:00:00Z",\
"lastUpdatedAt":"2026-11-20T10:00:00Z","ttlMs":null}
    """,
    on=(Request, Notification, Result),
)
def not_negotiated(message: Message, session: Session) -> Iterator[Fault]:
    """Report the use of a known extension that was not declared. A warning if the client need not declare it."""
    extension = used_extension(message)
    missing = undeclared_by(extension, message, session) if extension else []
    if extension and missing:
        what, pointer = _part(message)
        who = " and ".join(missing)
        severity: Severity | None = None if "client" in extension.needs else "warning"
        yield Fault(f"{what} belongs to {extension.id}, which the {who} did not declare", pointer, severity=severity)


def _part(message: Message) -> tuple[str, str]:
    """Return what part of a message belongs to an extension, and the pointer to it."""
    body = message.body
    if isinstance(body, Result):
        return f"the result type {excerpt(member(body.result, 'resultType'))}", "/result/resultType"
    if body.value["method"] == ENDLESS:
        return "the subscription", "/params/notifications"
    return body.value["method"], "/method"


@rule(
    "extension/required-error",
    "error",
    """If a request needs an extension that the client did not declare, the server must answer with the error -32021 and
    name the extension in `data.requiredCapabilities.extensions`, so that the client knows what to declare. A different
    error code is only a warning, and is not reported if the request has another fault that may explain it.""",
    fix="Answer with the error -32021, and name the extension in `data.requiredCapabilities.extensions`.",
    meanwhile="Declare the extension in the `_meta` of the request, and send it again.",
    blame="server",
    spec=_NEGOTIATION,
    revisions=STATELESS,
    fails="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}
        > 2 tasks/get {META "taskId":"t-1"}
        < 2 ! {"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{}}}
    """,
    passes="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}
        > 2 tools/call {META "name":"build","arguments":{}}
        < 2 ! {"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":\
{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
    """,
    on=(Error,),
)
def required_error(message: Message, session: Session) -> Iterator[Fault]:
    """Check errors for requests that need an undeclared extension, and errors that ask for a declared one."""
    request = message.exchange.request if message.exchange else None
    if request is None or message.sender != "server":
        return
    needed, error = _needed(request, session), member(message.body.value, "error")
    code, required = member(error, "code"), member(error, "data", "requiredCapabilities")
    extensions = member(required, "extensions")
    names = frozenset(extensions) if isinstance(extensions, dict) else frozenset()
    if code == _MISSING_CAPABILITY:
        if names and len(required) == 1 and names <= declared(capabilities("client", message, session)):
            yield Fault(f"{series(sorted(names)[:3])} is reported as missing, but the client declared it",
                        "/error/data/requiredCapabilities/extensions")  # fmt: skip
        elif needed and needed.id not in names:
            yield Fault(f"data.requiredCapabilities.extensions does not name {needed.id}", "/error/data")
    elif needed and needed.id in declared(session.server) and not _has_other_reason(code, request, session):
        yield Fault(f"expected the error {_MISSING_CAPABILITY}, because the client did not declare {needed.id}",
                    "/error/code", (request.n,), severity="warning")  # fmt: skip


def _has_other_reason(code: Any, request: Message, session: Session) -> bool:
    return code in _OTHER_REASONS or request.n in session.explained


@rule(
    "extension/served-undeclared",
    "error",
    """A server must refuse a request of an extension with the error -32021 if the client did not declare the extension.
    Such a client may not be able to read the result.""",
    fix="Answer with the error -32021 if the request does not declare the extension in its `_meta`.",
    meanwhile="Declare the extension in the `_meta` of each request that uses it.",
    blame="server",
    spec=_NEGOTIATION,
    revisions=STATELESS,
    fails="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}
        > 2 tasks/cancel {META "taskId":"t-1"}
        < 2 = {"resultType":"complete"}
    """,
    passes="""
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}
        > 2 tasks/cancel {META with io.modelcontextprotocol/tasks "taskId":"t-1"}
        < 2 = {"resultType":"complete"}
    """,
    on=(Result,),
    methods=_FOR_BOTH,
)
def served_undeclared(message: Message, session: Session) -> Iterator[Fault]:
    """Report a result for a client that did not declare the extension."""
    request = message.exchange.request if message.exchange else None
    needed = _needed(request, session) if request and message.sender == "server" else None
    if request and needed and needed.id in declared(session.server):
        yield Fault(f"{request.method} is answered, but the client did not declare {needed.id}; "
                    f"expected the error {_MISSING_CAPABILITY}", "/result", (request.n,))  # fmt: skip


def _needed(request: Message, session: Session) -> Extension | None:
    """Return the extension that a request belongs to, if its client has not declared it."""
    extension = used_extension(request)
    return extension if extension and "client" in undeclared_by(extension, request, session) else None
