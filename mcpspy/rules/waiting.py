"""Which request a response was meant for, if its id is wrong."""

from itertools import islice

from mcpspy.conversation.model import Exchange, Message
from mcpspy.spec.methods import methods, result_definition
from mcpspy.spec.schema import verdict
from mcpspy.wire.jsonrpc import Id

_EXAMINED = 32  # exchanges without an answer that are examined
_COMPARED = 8  # of these that a result is compared with
_FEW = 4  # of these that a finding names
_ABSENT = Id("absent", "")


def waiting_clause(message: Message, since: int | None = None) -> tuple[str, tuple[int, ...]]:
    """Return which requests wait while a response has a wrong id, as a clause, and the one that it was meant for.

    It was meant for the only one that waits, or the only one that it fits, apart from those whose answer is known to be
    lost. If `since` is given, that one must also be sent at this time or later, and fit the response.
    """
    asked = message.http.request if message.http else None
    carried = [it.exchange for it in asked.carried if it.exchange] if asked else []
    every = islice(carried or message.session.exchanges(), _EXAMINED)
    waiting = [it for it in every if it.request.sender != message.sender and it.response is None and not it.cancelled]
    left = [it for it in waiting if it.request.n not in message.session.explained]
    compared = 1 < len(left) <= _COMPARED and "result" in message.body.value
    fit = [it for it in left if _may_answer(message, it)] if compared else left
    meant = fit[0] if len(fit) == 1 else None
    if meant and since is not None and not (meant.request.t >= since and _may_answer(message, meant)):
        meant = None
    related = (meant.request.n,) if meant else ()
    if meant and len(left) > 1:
        told = f"#{meant.request.n} ({meant.method}, id {meant.key[1].beside(message.id or _ABSENT)})"
        return f"; of {len(left)} waiting requests it fits {told}", related
    if len(left) > 1:
        few = ", ".join(f"#{it.request.n} (id {it.key[1].excerpt})" for it in left[:_FEW])
        return f"; {few}{', …' if len(left) > _FEW else ''} are waiting", related
    which = "the request of its POST" if carried else "the only waiting request"
    told = f"; {which} is #{meant.request.n}, id {meant.key[1].beside(message.id or _ABSENT)}" if meant else ""
    return told, related


def _may_answer(message: Message, exchange: Exchange) -> bool:
    """Return whether a response has a shape that an answer to the request may have."""
    revision, value = exchange.revision, message.body.value
    method = methods(revision).get(exchange.method) if revision else None
    if revision is None or method is None or not method.result or "result" not in value:
        return True
    definition = result_definition(method, exchange.request.body.value.get("params"), value["result"])
    return verdict(revision, definition, value["result"])
