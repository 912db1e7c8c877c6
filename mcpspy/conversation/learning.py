"""How the facts about a session grow: each message adds to them after the rules have examined it.

This is the only place that changes what is known of requests, listings, progress and subscriptions and, over HTTP, how
the session got its id and how it ended. Nothing is judged here.
"""

from collections.abc import Callable
from typing import Any

from mcpspy.conversation import bounds
from mcpspy.conversation.bounds import keep
from mcpspy.conversation.context import CLIENT_CAPABILITIES, asked, is_about, other, subscription
from mcpspy.conversation.facts import CreatedTask, Given, Listen, Over, Progress, Tool
from mcpspy.conversation.model import Exchange, HttpChannel, HttpUnit, Judged, Message, ServerExit, Session, StreamEnd
from mcpspy.conversation.offers import page
from mcpspy.json_values import member
from mcpspy.spec.extensions import declared
from mcpspy.spec.revisions import HANDSHAKE, STATELESS, TASKS, Revision
from mcpspy.wire.http_head import authority, header, status
from mcpspy.wire.jsonrpc import Id, Invalid, Notification, Request, Result

_ENDS = (StreamEnd, ServerExit)
_LARGE = ("tools/call", "resources/read", "prompts/get", "sampling/createMessage")
"""Requests that never change what is known of a session; neither do their responses."""


def learn(event: Judged, session: Session) -> None:
    """Add a message, or an HTTP event without a message, to the facts."""
    if event.http and not isinstance(event, _ENDS):
        _learn_http(event, event.http, session)
    if type(event) is not Message:
        return
    body = event.body
    if event.frame.omitted:
        _learn_undecoded(event, session)
    elif type(body) is Request:
        _learn_request(event, body, session)
    elif type(body) is Notification:
        known = _NOTIFICATIONS.get(body.method)
        if known:
            known(event, session)
    elif event.exchange:
        _learn_answer(event, event.exchange, session)
        if type(body) is Result:
            answer = _ANSWERS.get(event.exchange.method)
            if answer:
                answer(event, body.result, session)
            _learn_task(event, body, event.exchange.method, session)
    elif isinstance(body, Invalid):
        if isinstance(body.value, dict) and "id" in body.value:
            keep(session.malformed, (event.sender, Id.of(body.value["id"])), event.n)
    elif session.malformed and event.id:
        session.malformed.pop((other(event.sender), event.id), None)


def _learn_http(event: Message | HttpUnit, place: HttpChannel, session: Session) -> None:
    """Add what a response shows of its session: that it has an id, that it has ended, that it goes on."""
    agreed = isinstance(event, Message) and isinstance(event.body, Result) and event.exchange
    if agreed and agreed.method == "initialize" and place.request and header(place.opened.head, "mcp-session-id"):
        session.given = Given(event.n, event.t, place.request.opened.peer, _hides_id(place.request, place))
    request, code = asked(event), status(place.opened.head)
    if request is None or not request.named:
        return
    if request.summary["method"] == "DELETE" and code in (200, 204):
        session.over = Over(event.n, event.t, by_client=True, peer=request.opened.peer)
    elif code == 404 and _asks(request) and member(_value(event), "error", "code") != -32601:
        session.over = session.over or Over(event.n, event.t, by_client=False, peer=request.opened.peer)
    elif 200 <= code < 300 and session.over and not session.over.by_client:
        session.over = None  # the 404 was about something else


def _asks(request: HttpChannel) -> bool:
    """Return whether a POST carries a request: a 404 to a GET, or to a notification, need not end the session."""
    return any(type(it.body) is Request for it in request.carried)


def _hides_id(request: HttpChannel, answer: HttpChannel) -> bool:
    """Return whether a client in a browser cannot read the session id: it comes from another origin (CORS)."""
    origin = authority(header(request.opened.head, "origin") or "")
    exposed = (header(answer.opened.head, "access-control-expose-headers") or "").lower()
    elsewhere = origin not in ("", authority(f"//{header(request.opened.head, 'host')}"))
    return elsewhere and "mcp-session-id" not in exposed and exposed.strip() != "*"


def _value(event: Message | HttpUnit) -> object:
    return event.body.value if isinstance(event, Message) else None


def _learn_undecoded(message: Message, session: Session) -> None:
    """Forget what a message that is too large to decode may have changed."""
    exchange, calls = message.exchange, isinstance(message.body, Request)
    if exchange and not calls:
        _learn_answer(message, exchange, session)
    session.progress_forgotten = session.progress_forgotten or calls  # the request may have a token
    if not exchange or exchange.revision not in HANDSHAKE or exchange.method not in _LARGE:
        session.lossy = message.session.partial = True


def _learn_answer(message: Message, exchange: Exchange, session: Session) -> None:
    if message.t > session.answered:  # noqa: PLR1730 (`max` takes four times as long)
        session.answered = message.t
    if session.called:
        session.called.pop((exchange.request.n, exchange.request.part), None)
    if session.progress:
        _end_progress(message, session)


def _learn_request(message: Message, body: Request, session: Session) -> None:
    params = body.params
    meta = member(params, "_meta")
    token = None
    if meta:
        extensions, token = member(meta, CLIENT_CAPABILITIES, "extensions"), member(meta, "progressToken")
        if extensions and len(session.extensions) < bounds.FACTS:
            session.extensions |= declared({"extensions": extensions})
    if token is not None:
        key = message.side, Id.of(token)
        before = session.progress.get(key)
        if before:
            before.before = None
        before = before if before and before.ended is None else None
        keep(session.progress, key, Progress(message.n, before=before))
        if len(session.progress) == bounds.FACTS:
            _forget_progress(session)
    if body.method == "tools/call":
        tool = session.listing.now(message.name, message.t)
        if tool and isinstance(tool.definition.get("outputSchema"), dict):
            keep(session.called, (message.n, message.part), tool)
        if tool and "_meta" in tool.definition and (tool.called is None or tool.called.outcome != "ok"):
            tool.called = message.exchange
    elif body.method == "initialize" and message.side == "client":
        session.first_initialize = session.first_initialize or message.n
        found = member(params, "capabilities")
        session.client = found if isinstance(found, dict) else {}
    elif body.method == "subscriptions/listen":
        _learn_listen(message, body, session)
    elif body.method == "tools/list" and member(params, "cursor") is None:
        session.listing.complete = False


def _learn_listen(message: Message, body: Request, session: Session) -> None:
    wanted = member(body.params, "notifications")
    asked = frozenset(name for name, value in wanted.items() if value) if isinstance(wanted, dict) else frozenset()
    acknowledged = session.acknowledged.pop(body.id, False) is None
    before = session.listens.get(body.id)
    if before and not before.ended:  # its notifications may still come, and have the same id
        asked |= before.asked
        acknowledged |= before.acknowledged
    keep(session.listens, body.id, Listen(message.n, asked, acknowledged))


def _end_listen(message: Message, result: Any, session: Session) -> None:  # noqa: ARG001 (table signature)
    request = message.exchange.request if message.exchange else message
    listen = session.listens.get(request.body.id) if isinstance(request.body, Request) else None
    if listen and listen.request == request.n:
        listen.ended = True


def _learn_initialize(message: Message, result: Any, session: Session) -> None:
    session.agreed = message.t
    found = member(result, "capabilities")
    session.server = found if isinstance(found, dict) else {}


def _learn_discover(message: Message, result: Any, session: Session) -> None:  # noqa: ARG001 (table signature)
    versions = member(result, "supportedVersions")
    session.discovered = isinstance(versions, list) and any(Revision.of(name) in STATELESS for name in versions)
    found = member(result, "capabilities")
    session.server = found if isinstance(found, dict) else {}


def _learn_initialized(message: Message, session: Session) -> None:  # noqa: ARG001 (table signature)
    session.initialized = True


def _learn_tools(message: Message, result: Any, session: Session) -> None:  # noqa: ARG001 (table signature)
    listing, found = session.listing, page(message)
    assert found
    for tool in found.entries or ():
        name = member(tool, "name")
        if isinstance(name, str):
            known = listing.tools.get(name)
            if known is None or known.definition != tool:
                keep(listing.tools, name, Tool(tool, message.n))
    listing.t = message.t
    if found.first:
        listing.begun = message.n
    if found.last and found.entries is not None:
        if listing.changed is not None and listing.changed < listing.begun:
            listing.changed = None
        listing.complete = listing.changed is None and len(listing.tools) < bounds.FACTS


def _forget_tools(message: Message, session: Session) -> None:
    session.listing.complete = False
    session.listing.changed = message.n


def _forget_progress(session: Session) -> None:
    """Make room for more entries; entries that have ended are removed first."""
    session.progress_forgotten = True
    for old in sorted(session.progress, key=lambda key: session.progress[key].ended is None)[: bounds.FORGOTTEN_FACTS]:
        del session.progress[old]


def _end_progress(message: Message, session: Session) -> None:
    assert message.exchange
    request = message.exchange.request
    token = member(request.body.value, "params", "_meta", "progressToken")
    if token is not None:
        known = session.progress.get((request.side, Id.of(token)))
        if known and known.before and known.before.request == request.n:
            known = known.before
        if known and known.request == request.n:
            known.ended, known.cancelled = message.t, message.exchange.cancelled
            known.task = member(message.body.value, "result", "task") is not None


def _learn_progress(message: Message, session: Session) -> None:
    params = member(message.body.value, "params")
    known = session.progress.get((other(message.side), Id.of(member(params, "progressToken"))))
    value = member(params, "progress")
    if known and type(value) in (int, float) and is_about(message, known.request):
        known.last, known.t = value, message.t


def _learn_cancel(message: Message, session: Session) -> None:
    if message.cancels:
        token = member(message.cancels.request.body.value, "params", "_meta", "progressToken")
        known = session.progress.get((message.side, Id.of(token)))
        if known:
            known.cancelled = True


def _learn_acknowledgement(message: Message, session: Session) -> None:
    number = Id.of(subscription(message))
    listen = session.listens.get(number)
    if listen and not listen.ended:
        listen.acknowledged = True
    else:
        keep(session.acknowledged, number, None)


def _learn_task(message: Message, body: Result, method: str, session: Session) -> None:
    if session.tasks and message.side == "server":
        session.tasks.pop(body.id, None)  # the task of an earlier request with this id
    if method != "tools/call":
        return
    if message.revision in TASKS:
        task = member(body.result, "task", "taskId")
    else:
        task = member(body.result, "taskId") if member(body.result, "resultType") == "task" else None
    if isinstance(task, str):
        created = CreatedTask(message.n, message.t, task)
        keep(session.tasks, body.id, created)
        keep(session.tasks, task, created)


_ANSWERS: dict[str, Callable[[Message, Any, Session], None]] = {
    "initialize": _learn_initialize,
    "server/discover": _learn_discover,
    "tools/list": _learn_tools,
    "subscriptions/listen": _end_listen,
}
_NOTIFICATIONS: dict[str, Callable[[Message, Session], None]] = {
    "notifications/initialized": _learn_initialized,
    "notifications/tools/list_changed": _forget_tools,
    "notifications/progress": _learn_progress,
    "notifications/cancelled": _learn_cancel,
    "notifications/subscriptions/acknowledged": _learn_acknowledgement,
}
