"""Which response belongs to which request, which request continues which response, and which revision applies.

Pairing uses the direction and the typed id, because both peers count from 1. Messages come in the order of their times,
so each request precedes its response. If several requests in flight have the same id, a response answers the first one
that was sent before it. Over HTTP, a response belongs to the HTTP request that carried its request, and that decides.

The revision belongs to the exchange, not to the connection. It is the first of these that is known: the request's own
`_meta`; what its session negotiated; what earlier requests without a handshake stated; what the transport indicates.
Otherwise the revision is unknown.

Some messages belong to a request without being its response. A request may ask for progress by a token that its sender
chooses; the latest request with a token owns it. A notification of a subscription names the `subscriptions/listen`
request by its id (2026-07-28). A cancellation names a request of its own sender. If a request is answered by a task,
its result is in the response to `tasks/result` (2025-11-25). The link is the ordinal of the exchange, because such a
message may come long after the response, and a finished exchange is not kept for it.

A server that needs input answers a request by a result `input_required`, and the client sends the request again with
the input (2026-07-28, basic/patterns/mrtr). Each round is an exchange of its own. A request and its retry have the same
method and params, except for `inputResponses`, `requestState` and `_meta`. If several such responses match, the state
identifies the one that a retry continues. A request without `inputResponses` and `requestState` starts over: it
continues the latest response that no request has continued yet. The responses are kept in their session, which forgets
the oldest of them.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from mcpspy.conversation import bounds
from mcpspy.conversation.facts import Round
from mcpspy.conversation.model import ENDLESS, Exchange, Fate, Message, Session
from mcpspy.json_values import member, text_of
from mcpspy.spec.revisions import (
    NEWEST_HANDSHAKE,
    PROTOCOL_VERSION,
    ROUNDS,
    STATELESS,
    SUBSCRIPTION_ID,
    TASKS,
    Revision,
)
from mcpspy.wire.jsonrpc import Error, Id, Notification, Request, Result, Undecoded, exact_id
from mcpspy.wire.subject import subject

INPUT_REQUIRED = "input_required"
_OF_A_ROUND = ("_meta", "inputResponses", "requestState")


def begin_round(message: Message, exchange: Exchange, result: Any) -> None:
    """Store the methods that a result `input_required` requests in its exchange, and the round in its session."""
    if message.frame.omitted:
        return
    found = member(result, "inputRequests")
    wanted = found if isinstance(found, dict) else {}
    methods = (member(request, "method") for request in wanted.values())
    exchange.inputs = frozenset(method for method in methods if isinstance(method, str))
    rounds, subject = message.session.rounds, (exchange.method, exchange.name)
    alike = rounds.pop(subject, None) or deque(maxlen=bounds.SAME_ROUNDS)
    state, key = mark(member(result, "requestState")), round_key(exchange.request)
    alike.append(Round(message.n, message.t, exchange.key[1], key, state, frozenset(wanted)))
    rounds[subject] = alike
    if len(rounds) > bounds.ROUNDS + bounds.FORGOTTEN:
        bounds.forget(rounds)


def follow_round(message: Message, exchange: Exchange) -> None:
    """Store in the exchange of a request the response that it continues, if there is one."""
    alike = message.session.rounds.get((exchange.method, exchange.name))
    if not alike or message.frame.omitted:
        return
    params = member(message.body.value, "params")
    if member(params, "inputResponses") is not None or member(params, "requestState") is not None:
        found = rounds_before(message)
        found = _of_state(found, message) or found
    elif all(known.continued for known in alike):
        return
    else:
        found = [known for known in rounds_before(message) if not known.continued]
    if found:
        found[-1].continued = True
        exchange.continues = found[-1].answer


def rounds_before(message: Message) -> list[Round]:
    """Return the responses that a retry may continue, the oldest first.

    These are the responses that the client had when it sent the retry.
    """
    alike = message.session.rounds.get((message.method or "", message.name))
    if not alike:
        return []
    key = round_key(message)
    return [known for known in alike if known.key == key and known.t <= message.t]


def continued(message: Message) -> list[Round]:
    """Return those of `rounds_before` whose state the retry echoes."""
    return _of_state(rounds_before(message), message)


def _of_state(rounds: list[Round], message: Message) -> list[Round]:
    echoed = mark(member(message.body.value, "params", "requestState"))
    return [known for known in rounds if known.state == echoed]


def mark(value: Any) -> int | None:
    """Return a hash of a `requestState`, which may be large; None for None."""
    return None if value is None else hash(text_of(value))


def round_key(request: Message) -> int:
    """Return a hash of the params that a request and its retry share: all except the answers, the state and `_meta`."""
    params = member(request.body.value, "params")
    kept = params if isinstance(params, dict) else {}
    return hash(text_of([(name, value) for name, value in kept.items() if name not in _OF_A_ROUND]))


_PROBE = "server/discover"

_NAME = 200  # characters of the name of a client
_NO_ID = Id("null", "null")  # the id of an error whose request could not be parsed


def pair(message: Message, ordinal: int, carrier: int | None) -> None:
    """Enter the next message into its session: set its revision, its exchange, and what it cancels.

    `ordinal` is the number of requests before it. `carrier` is the channel of the HTTP request that it is a response
    to. At first the revision of the message is the one that the transport indicates; a revision that a message states
    replaces it.
    """
    body = message.body
    if type(body) is Request:
        _begin(message, body, ordinal)
    elif type(body) is Result or type(body) is Error:
        key = ("server" if message.side == "client" else "client", body.id or _NO_ID)
        exchange = _first_sent(message.session.pending.get(key, ()), message.t, carrier)
        if exchange:
            _join(message, key, exchange)
    elif isinstance(body, Notification):
        _follow(message, body)
    elif isinstance(body, Undecoded):
        _doubt(message.session, message.side)


def unanswered(carried: Iterable[Message], session: Session) -> list[Exchange]:
    """Return the exchanges of a session without a response that these messages began."""
    found = [it.exchange for it in carried if it.session is session and isinstance(it.body, Request)]
    return [it for it in found if it and it.response is None and not it.refused]


def refuse(exchanges: Iterable[Exchange], session: Session) -> None:
    """Record that exchanges of a session were refused without a message."""
    for exchange in exchanges:
        exchange.refused = True
        session.refused.append(exchange)
        _settle(exchange, exchange.key)


def join_refusal(message: Message, carried: Iterable[Message]) -> None:
    """Join an error with another id, or without one, to the request that it refuses, if only one can be meant."""
    exchanges = unanswered(carried, message.session)
    if len(exchanges) == 1:
        _join(message, exchanges[0].key, exchanges[0])


def _begin(message: Message, body: Request, ordinal: int) -> None:
    session, params = message.session, body.params
    meta = params.get("_meta") if type(params) is dict else None
    message.revision = revision = _stated(session, body, meta) or message.revision
    exchange = Exchange(ordinal, message, body.method, subject(body.method, params), revision)
    message.exchange = exchange
    session.pending.setdefault((message.side, body.id), []).append(exchange)
    if meta or body.method == ENDLESS:
        _enter(message, body, ordinal)
    if session.rounds and revision in ROUNDS:
        follow_round(message, exchange)
    if body.method == "initialize":
        session.initialize, session.requested = exchange, revision
        named = member(params, "clientInfo", "name")
        session.client_name = named[:_NAME] if isinstance(named, str) else ""


def _stated(session: Session, body: Request, meta: Any) -> Revision | None:
    """Return the revision that a request states in its `_meta`, or that its session has negotiated."""
    stated = Revision.of(member(meta, PROTOCOL_VERSION)) if meta else None
    if stated:
        if body.method != _PROBE:  # a server of the other era has not agreed to it yet
            session.stated = stated
        return stated
    if body.method == "initialize":
        return Revision.of(member(body.params, "protocolVersion")) or NEWEST_HANDSHAKE
    return session.negotiated or _without_handshake(session)


def _without_handshake(session: Session) -> Revision | None:
    """Return the revision that earlier requests stated, if the session needs no handshake."""
    return session.stated if session.stated in STATELESS and not session.begun else None


def _first_sent(pending: Sequence[Exchange], t: int, carrier: int | None) -> Exchange | None:
    """Return the first of the exchanges with one id whose request was sent before `t`.

    An exchange that `carrier` carried is preferred, then one that was not cancelled, because its sender still waits.
    """
    if len(pending) == 1:
        return pending[0] if pending[0].request.t <= t else None
    sent = [exchange for exchange in pending if exchange.request.t <= t]
    candidates = [exchange for exchange in sent if exchange.request.ch == carrier] or sent
    return next((it for it in candidates if not it.cancelled), next(iter(candidates), None))


def _settle(exchange: Exchange, key: tuple[str, Id]) -> None:
    """Remove an exchange from those that wait for a response."""
    session = exchange.request.session
    pending = session.pending[key]
    pending.remove(exchange)
    if not pending:
        del session.pending[key]
    if exchange is session.initialize:
        session.initialize = None


def _join(message: Message, key: tuple[str, Id], exchange: Exchange) -> None:
    """Make a message the response of an exchange; `key` is the sender and id of the request."""
    session = message.session
    _settle(exchange, key)
    exchange.response, exchange.answered = message, message.t
    exchange.undecoded = message.frame.omitted is not None
    if message.act and message.act.made and exchange.request.act and exchange.request.act.dropped:
        exchange.request.act.how = "answered"
    message.exchange = exchange
    message.revision = exchange.revision
    completed = session.completed
    completed.pop(key, None)  # so that the order is that of completion
    completed[key] = (exchange.request.n, message.n)
    if exchange.request.n > session.last_answered:  # noqa: PLR1730 (`max` takes four times as long)
        session.last_answered = exchange.request.n
    if len(completed) > bounds.EXCHANGES + bounds.FORGOTTEN:
        bounds.forget(completed)
    if type(message.body) is not Result:
        return
    result = message.body.result
    if exchange.revision in ROUNDS and member(result, "resultType") == INPUT_REQUIRED:
        begin_round(message, exchange, result)
    if exchange.method == "initialize":
        message.revision = session.negotiated = Revision.of(member(result, "protocolVersion"))
    elif exchange.revision in TASKS:
        if exchange.method == "tasks/result" or (type(result) is dict and "task" in result):
            _follow_task(key[0], exchange, result)
    elif exchange.method == _PROBE:
        session.stated = session.stated or exchange.revision or _supported(result)


def _supported(result: Any) -> Revision | None:
    """Return the newest revision without a handshake that a server lists in `supportedVersions`."""
    names = member(result, "supportedVersions")
    found = [Revision.of(name) for name in names] if isinstance(names, list) else []
    return next((revision for revision in reversed(STATELESS) if revision in found), None)


def _doubt(session: Session, sender: str) -> None:
    """Mark the requests that wait for this side: a frame that was not decoded may be the response to any of them."""
    session.partial = True
    for exchange in session.exchanges():
        if exchange.request.side != sender:
            exchange.in_doubt = exchange.undecoded = True


def _enter(message: Message, body: Request, ordinal: int) -> None:
    """Store the names by which later notifications may refer to a request."""
    session = message.session
    token = member(body.params, "_meta", "progressToken")
    if token is not None:
        session.tokens[message.side, Id.of(token)] = ordinal
        if len(session.tokens) > bounds.EXCHANGES + bounds.FORGOTTEN:
            bounds.forget(session.tokens)
    if body.method == ENDLESS:
        session.subscriptions[body.id] = ordinal
        if len(session.subscriptions) > bounds.EXCHANGES + bounds.FORGOTTEN:
            bounds.forget(session.subscriptions)


def _follow(message: Message, body: Notification) -> None:
    """Link a notification to the exchange that it names.

    Mark an exchange as cancelled if the notification cancels it.
    """
    session = message.session
    message.revision = session.negotiated or session.stated or message.revision
    subscription = member(body.params, "_meta", SUBSCRIPTION_ID)
    if subscription is not None:
        listen = exact_id(subscription, message.frame.raw, message.part, "params", "_meta", SUBSCRIPTION_ID)
        message.link = session.subscriptions.get(listen)
        for exchange in session.pending.get(("client", listen), ()):
            message.revision = exchange.revision
    elif body.method == "notifications/progress":
        token = member(body.params, "progressToken")
        if token is not None:
            message.link = session.tokens.get(("client" if message.side == "server" else "server", Id.of(token)))
    if body.method == "notifications/cancelled":
        requested = member(body.params, "requestId")
        target = exact_id(requested, message.frame.raw, message.part, "params", "requestId")
        reason = member(body.params, "reason")
        fate = Fate("cancelled", message.n, message.t, reason if isinstance(reason, str) else "")
        for exchange in session.pending.get((message.side, target), ()):
            left = exchange.fate is not None and exchange.fate.how == "left"  # the cancellation may tell why
            exchange.cancelled, exchange.fate = True, fate if left else exchange.fate or fate
            message.cancels = exchange


def _follow_task(sender: str, exchange: Exchange, result: Any) -> None:
    """Follow a request that was answered by a task: its result comes in response to `tasks/result`."""
    tasks = exchange.request.session.task_methods
    if exchange.method == "tasks/result":
        wanted = member(exchange.request.body.value.get("params"), "taskId")
        exchange.underlying = tasks.get((sender, wanted)) if isinstance(wanted, str) else None
        return
    given = member(result, "task", "taskId")
    if isinstance(given, str):
        tasks[sender, given] = exchange.method
        if len(tasks) > bounds.EXCHANGES:
            bounds.forget(tasks)
