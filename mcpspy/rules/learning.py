"""How the rules come to know a session: each message, once it was judged, is added to the state (`state.State`).

This is the only place that changes what is known of requests, listings, progress, rounds and subscriptions; what
channels of HTTP tell is added by `mcpspy.rules.http.streams`. Nothing is judged here, and nothing raises.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from mcpspy.conversation.model import Exchange, Message
from mcpspy.json_values import member
from mcpspy.rules.state import (
    REMEMBERED,
    Listen,
    Progress,
    Round,
    State,
    Tool,
    is_about,
    keep,
    mark,
    other,
    round_key,
    subscription,
)
from mcpspy.spec.revisions import HANDSHAKE, STATELESS, Revision
from mcpspy.wire.jsonrpc import Id, Notification, Request, Result

_FORGOTTEN = 256  # reports of progress, at once
_LARGE = ("tools/call", "resources/read", "prompts/get", "sampling/createMessage")
"""Requests that change nothing that is known of a session, whatever is in them or in what answers them."""
_SAME = 16  # answers to the same request that are remembered


def learn(message: Message, state: State) -> None:
    """Add a message to what is known."""
    body = message.body
    if message.frame.omitted:
        _learn_undecoded(message, state)
    elif isinstance(body, Request):
        _learn_request(message, body, state)
    elif isinstance(body, Notification):
        known = _NOTIFICATIONS.get(body.method)
        if known:
            known(message, state)
    elif message.exchange:
        _learn_answer(message, message.exchange, state)
        if isinstance(body, Result):
            answer = _ANSWERS.get(message.exchange.method)
            if answer:
                answer(message, body.result, state)
            if member(body.result, "resultType") == "input_required":
                _learn_round(message, body.result, state)


def _learn_undecoded(message: Message, state: State) -> None:
    """Forget what a message that is too large to be decoded may have changed."""
    exchange, calls = message.exchange, isinstance(message.body, Request)
    if exchange and not calls:
        _learn_answer(message, exchange, state)
    state.progress_forgotten = state.progress_forgotten or calls  # it may have a token
    if not exchange or exchange.revision not in HANDSHAKE or exchange.method not in _LARGE:
        state.lossy = message.session.partial = True


def _learn_answer(message: Message, exchange: Exchange, state: State) -> None:
    state.answered = max(state.answered, message.t)
    request = exchange.request
    state.called.pop((request.n, request.part), None)
    if state.progress:
        _end_progress(message, state)


def _learn_request(message: Message, body: Request, state: State) -> None:
    meta = member(body.params, "_meta")
    token = member(meta, "progressToken")
    if token is not None:
        key = message.sender, Id.of(token)
        before = state.progress.get(key)
        if before:
            before.before = None
        before = before if before and before.ended is None else None
        keep(state.progress, key, Progress(message.n, before=before))
        if len(state.progress) == REMEMBERED:
            _forget_progress(state)
    if body.method == "tools/call":
        tool = state.listing.now(member(body.params, "name"), message.t)
        if tool:
            keep(state.called, (message.n, message.part), tool)
    elif body.method == "initialize" and message.sender == "client":
        state.initialize = state.initialize or message.n
        found = member(body.params, "capabilities")
        state.client = found if isinstance(found, dict) else {}
    elif body.method == "subscriptions/listen":
        _learn_listen(message, body, state)
    elif body.method == "tools/list" and member(body.params, "cursor") is None:
        state.listing.complete = False
    if member(meta, "io.modelcontextprotocol/logLevel") is not None:
        state.log_levels = True


def _learn_listen(message: Message, body: Request, state: State) -> None:
    wanted = member(body.params, "notifications")
    asked = frozenset(name for name, value in wanted.items() if value) if isinstance(wanted, dict) else frozenset()
    acknowledged = state.acknowledged.pop(body.id, False) is None
    before = state.listens.get(body.id)
    if before and not before.ended:  # its notifications may still come, and have the same id
        asked |= before.asked
        acknowledged |= before.acknowledged
    keep(state.listens, body.id, Listen(message.n, asked, acknowledged))


def _end_listen(message: Message, result: Any, state: State) -> None:
    request = message.exchange.request if message.exchange else message
    listen = state.listens.get(request.body.id) if isinstance(request.body, Request) else None
    if listen and listen.request == request.n:
        listen.ended = True


def _learn_initialize(message: Message, result: Any, state: State) -> None:
    state.agreed = message.t
    found = member(result, "capabilities")
    state.server = found if isinstance(found, dict) else {}


def _learn_discover(message: Message, result: Any, state: State) -> None:
    versions = member(result, "supportedVersions")
    state.discovered = isinstance(versions, list) and any(Revision.of(name) in STATELESS for name in versions)
    found = member(result, "capabilities")
    state.server = found if isinstance(found, dict) else {}


def _learn_initialized(message: Message, state: State) -> None:
    state.initialized = True


def _learn_page(message: Message, result: Any, state: State) -> None:
    cursor = member(result, "nextCursor")
    if isinstance(cursor, str) and message.exchange:
        keep(state.cursors.setdefault(message.exchange.method, {}), cursor, None)


def _learn_tools(message: Message, result: Any, state: State) -> None:
    _learn_page(message, result, state)
    listing = state.listing
    state.checked.clear()
    found = member(result, "tools")
    for tool in found if isinstance(found, list) else ():
        name = member(tool, "name")
        if isinstance(name, str):
            known = listing.tools.get(name)
            if known is None or known.definition != tool:
                keep(listing.tools, name, Tool(tool, message.n))
    assert message.exchange
    listing.t = message.t
    if member(message.exchange.request.body.value, "params", "cursor") is None:
        listing.begun = message.n
    if member(result, "nextCursor") is None:
        if listing.changed is not None and listing.changed < listing.begun:
            listing.changed = None
        listing.complete = listing.changed is None and len(listing.tools) < REMEMBERED


def _forget_tools(message: Message, state: State) -> None:
    state.listing.complete = False
    state.listing.changed = message.n


def _forget_progress(state: State) -> None:
    """Make room for more, at the cost of those that have ended, where there are any."""
    state.progress_forgotten = True
    for old in sorted(state.progress, key=lambda key: state.progress[key].ended is None)[:_FORGOTTEN]:
        del state.progress[old]


def _end_progress(message: Message, state: State) -> None:
    assert message.exchange
    request = message.exchange.request
    token = member(request.body.value, "params", "_meta", "progressToken")
    if token is not None:
        known = state.progress.get((request.sender, Id.of(token)))
        if known and known.before and known.before.request == request.n:
            known = known.before
        if known and known.request == request.n:
            known.ended, known.cancelled = message.t, message.exchange.cancelled
            known.task = member(message.body.value, "result", "task") is not None


def _learn_progress(message: Message, state: State) -> None:
    params = member(message.body.value, "params")
    known = state.progress.get((other(message.sender), Id.of(member(params, "progressToken"))))
    value = member(params, "progress")
    if known and type(value) in (int, float) and is_about(message, known.request):
        known.last = value


def _learn_cancel(message: Message, state: State) -> None:
    if message.cancels:
        token = member(message.cancels.request.body.value, "params", "_meta", "progressToken")
        known = state.progress.get((message.sender, Id.of(token)))
        if known:
            known.cancelled = True


def _learn_acknowledgement(message: Message, state: State) -> None:
    number = Id.of(subscription(message))
    listen = state.listens.get(number)
    if listen and not listen.ended:
        listen.acknowledged = True
    else:
        keep(state.acknowledged, number, None)


def _learn_round(message: Message, result: Any, state: State) -> None:
    assert message.exchange
    asked = member(result, "inputRequests")
    keys = frozenset(asked) if isinstance(asked, dict) else frozenset()
    request = message.exchange.request
    key = round_key(request)
    rounds = state.rounds.get(key) or deque(maxlen=_SAME)  # the same request may be in flight more than once
    number = request.body.id if isinstance(request.body, Request) else Id("absent", "")
    rounds.append(Round(message.n, message.t, number, mark(member(result, "requestState")), keys))
    keep(state.rounds, key, rounds)


_ANSWERS: dict[str, Callable[[Message, Any, State], None]] = {
    "initialize": _learn_initialize,
    "server/discover": _learn_discover,
    "tools/list": _learn_tools,
    "resources/list": _learn_page,
    "resources/templates/list": _learn_page,
    "prompts/list": _learn_page,
    "tasks/list": _learn_page,
    "subscriptions/listen": _end_listen,
}
_NOTIFICATIONS: dict[str, Callable[[Message, State], None]] = {
    "notifications/initialized": _learn_initialized,
    "notifications/tools/list_changed": _forget_tools,
    "notifications/progress": _learn_progress,
    "notifications/cancelled": _learn_cancel,
    "notifications/subscriptions/acknowledged": _learn_acknowledgement,
}
