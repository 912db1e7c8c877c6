"""Which request continues which response: the rounds of a request (2026-07-28, basic/patterns/mrtr).

The theory. A server that needs input answers a request by a result `input_required`, and the client sends the request
again with the input. Each round is an exchange of its own. A request and its retry have the same method and params,
except for `inputResponses`, `requestState` and `_meta`. If several such responses match, the state identifies the one
that a retry continues. A request without `inputResponses` and `requestState` starts over: it continues the latest
response that no request has continued yet.

The responses are kept in their session, which forgets the oldest of them.
"""

from collections import deque
from typing import Any

from mcpspy.conversation import bounds
from mcpspy.conversation.facts import Round
from mcpspy.conversation.model import Exchange, Message
from mcpspy.json_values import member, text_of

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
