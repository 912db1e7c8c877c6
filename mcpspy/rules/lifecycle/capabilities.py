"""Rules about capabilities: a side may use only what it declared itself, or what the other side declared.

In the handshake era both sides declare capabilities for a session, in `initialize` and its answer. In 2026-07-28 the
server declares them in its answer to `server/discover`, the client in the `_meta` of each request.
"""

from collections.abc import Iterator
from typing import Any

from mcpspy.conversation.context import ASKED, capabilities, other
from mcpspy.conversation.model import Message, Session
from mcpspy.json_values import member
from mcpspy.rules.rule import Fault, rule
from mcpspy.spec.methods import methods
from mcpspy.spec.revisions import TASKS, Revision, until
from mcpspy.wire.jsonrpc import Error, Notification, Request

_CALLS = (Request, Notification)
_WITHOUT_COMPLETIONS = until(Revision.R2024_11_05)  # the capability was added later than the method
_NEEDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "tools/list": ("server", ("tools",)),
    "tools/call": ("server", ("tools",)),
    "notifications/tools/list_changed": ("server", ("tools", "listChanged")),
    "resources/list": ("server", ("resources",)),
    "resources/templates/list": ("server", ("resources",)),
    "resources/read": ("server", ("resources",)),
    "resources/subscribe": ("server", ("resources", "subscribe")),
    "resources/unsubscribe": ("server", ("resources", "subscribe")),
    "notifications/resources/list_changed": ("server", ("resources", "listChanged")),
    "notifications/resources/updated": ("server", ("resources", "subscribe")),
    "prompts/list": ("server", ("prompts",)),
    "prompts/get": ("server", ("prompts",)),
    "notifications/prompts/list_changed": ("server", ("prompts", "listChanged")),
    "logging/setLevel": ("server", ("logging",)),
    "notifications/message": ("server", ("logging",)),
    "completion/complete": ("server", ("completions",)),
    "notifications/roots/list_changed": ("client", ("roots", "listChanged")),
    **{method: ("client", (name,)) for method, name in ASKED.items()},
}
"""By method: the side that must have declared the capability, and the path of the capability."""
_TASKS: dict[str, tuple[str, ...]] = {
    "tasks/get": ("tasks",),
    "tasks/result": ("tasks",),
    "tasks/list": ("tasks", "list"),
    "tasks/cancel": ("tasks", "cancel"),
}
"""By method: the capability that the receiver must have declared, whichever side that is (2025-11-25)."""
_OF_NAMES = ("tools/call", "resources/read", "prompts/get")
"""Methods that some servers refuse with -32601 if the name is unknown, not the method."""


@rule(
    "lifecycle/capability-missing",
    "warning",
    """A request needs a capability that its receiver did not declare (`tools/call`: the server;
    `sampling/createMessage`: the client), or a notification needs one that its sender did not declare
    (`notifications/tools/list_changed`: the server). Reported once per session and capability.""",
    fix="""Send a request only if the other side declared its capability, and a notification only if you declared its
    capability.""",
    meanwhile="""Declare the capability if you support it: `capabilities` is an option of `Server` and `Client` in
    the TypeScript SDK.""",
    spec="basic/lifecycle#capability-negotiation",
    fails="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        > 2 tools/list
    """,
    passes="""
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        > 2 tools/list
    """,
    on=(Request, Notification),
    methods=(*_NEEDS, *_TASKS),
)
def capability_missing(message: Message, session: Session) -> Iterator[Fault]:
    """Report a method whose capability was not declared. A request as a task needs one capability more."""
    body = message.body
    if not isinstance(body, _CALLS):
        return
    if message.revision in TASKS and (body.method in _TASKS or member(body.params, "task") is not None):
        yield from _task_missing(message, body, session)
    if body.method not in _NEEDS:
        return
    side, path = _NEEDS[body.method]
    if path[0] == "completions" and message.revision in _WITHOUT_COMPLETIONS:
        return
    declared = capabilities(side, message, session)
    if declared is None:
        return
    if side == "client" and body.method in ASKED:
        lacking = undeclared(body.method, body.params, declared)
    else:
        lacking = None if _declares(declared, path) else ".".join(path)
    if lacking and not session.is_unsure(message.revision) and session.once(f"capability {side} {lacking}"):
        yield Fault(f"the {side} did not declare the capability {lacking}, which {body.method} needs", "/method")


def _task_missing(message: Message, body: Request | Notification, session: Session) -> Iterator[Fault]:
    """Report a task that its receiver has not declared to support."""
    side = other(message.sender)
    path = _TASKS.get(body.method) or ("tasks", "requests", *body.method.split("/"))
    declared = capabilities(side, message, session)
    if declared is None or session.lossy or _declares(declared, path):
        return
    lacking = ".".join(path)
    if session.once(f"capability {side} {lacking}"):
        what = body.method if body.method in _TASKS else f"{body.method} as a task"
        where = "/method" if body.method in _TASKS else "/params/task"
        yield Fault(f"the {side} did not declare the capability {lacking}, which {what} needs", where)


@rule(
    "lifecycle/capability-not-served",
    "warning",
    """A side declared a capability, but answers a method of that capability with -32601 (method not found). Clients
    that rely on the capability call the method, and then show the error or drop the server. For resource templates this
    is an info, because many servers have resources but no templates. Reported once per session and method.""",
    fix="Answer with an empty list if there is nothing to list, or do not declare the capability.",
    meanwhile="Treat -32601 as an empty list here, and keep the connection.",
    spec="basic/lifecycle#capability-negotiation",
    fails="""
        = 2025-06-18
        > 2 resources/list
        < 2 ! {"code":-32601,"message":"Method not found"}
    """,
    passes="""
        = 2025-06-18
        > 2 resources/list
        < 2 = {"resources":[]}
    """,
    on=(Error,),
    methods=tuple(method for method in _NEEDS if method not in _OF_NAMES),
)
def capability_not_served(message: Message, session: Session) -> Iterator[Fault]:
    """Report a method that is missing although its capability was declared."""
    exchange = message.exchange
    if exchange is None or exchange.revision is None or exchange.method not in methods(exchange.revision):
        return
    side, path = _NEEDS[exchange.method]
    missing = member(message.body.value, "error", "code") == -32601
    if not missing or side != message.sender or not _declares(capabilities(side, message, session), path):
        return
    if session.once(f"not served {exchange.method}"):
        declared = ".".join(path)
        yield Fault(f"the {side} declared {declared}, but answers {exchange.method} with -32601 (method not found)",
                    "/error/code",
                    severity="info" if exchange.method == "resources/templates/list" else None)  # fmt: skip


def undeclared(method: str, params: Any, declared: Any) -> str | None:
    """Return the capability, such as `sampling.tools`, that a client lacks for a server's request in `ASKED`.

    Return None if the client declared all that is needed. `elicitation: {}` means forms (2025-11-25,
    client/elicitation).
    """
    name = ASKED[method]
    there = member(declared, name)
    if there in (None, False):
        return name
    if name == "sampling" and member(params, "tools") is not None and member(there, "tools") in (None, False):
        return "sampling.tools"
    if name == "elicitation":
        modes = [mode for mode in ("form", "url") if member(there, mode) not in (None, False)] or ["form"]
        mode = member(params, "mode") or "form"
        if mode not in modes and mode in ("form", "url"):
            return f"elicitation.{mode}"
    return None


def _declares(declared: object, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(declared, dict) or declared.get(name) in (None, False):
            return False
        declared = declared[name]
    return True
