"""Which messages are plain: those in which the rules about one aspect of a message have nothing to find.

The theory. A hundred rules could look at every message, and nearly every message is beyond reproach. So each aspect
has one quick test, and a message that passes it is not shown to the rules about that aspect. The test may send a
message the long way for nothing; it must never keep one from it that a rule would find something in.
"""

import re
from typing import Any

import orjson

from mcpspy.conversation.model import Message
from mcpspy.rules.jsonrpc import LONG_NUMBER
from mcpspy.rules.schema import fits
from mcpspy.rules.security import ESCAPED
from mcpspy.rules.state import State
from mcpspy.secrets.tokens import in_frame
from mcpspy.spec.methods import methods
from mcpspy.spec.revisions import Revision
from mcpspy.wire.jsonrpc import Error, Invalid, Notification, Request, Result

_LARGE = 1 << 20  # bytes
_UNUSUAL = re.compile(b"|".join(pattern.pattern for pattern in (ESCAPED, LONG_NUMBER)))
_CALLS = (Request, Notification)
_RESPONSES = (Result, Error)


def in_bytes(message: Message) -> bool:
    """One object of ASCII text, not large, whole, with nothing in it that a rule looks for."""
    frame, body = message.frame, message.body
    raw, value = frame.raw, body.value
    if message.part:  # with the first of a batch the whole frame was looked at
        return _is_ascii(value)
    if body.refused or type(value) is not dict or not raw.isascii() or frame.cut or len(raw) > _LARGE:
        return False
    if in_frame(raw):
        return False
    try:
        written = orjson.dumps(value, None, orjson.OPT_STRICT_INTEGER)
    except (TypeError, orjson.JSONEncodeError):
        return False
    if written == raw:  # as most peers write it: no key twice, no number that changes, nothing escaped without need
        return True
    if raw[:1] != b"{" or raw[-1:] != b"}" or _UNUSUAL.search(raw):
        return False
    return raw.count(b'":') == written.count(b'":')


def _is_ascii(value: Any) -> bool:
    try:
        return orjson.dumps(value).isascii()
    except TypeError:
        return False


def in_shape(message: Message) -> bool:
    """Exactly what its definition says."""
    return not isinstance(message.body, Invalid) and fits(message)


def in_meta(message: Message) -> bool:
    """No `_meta`, and not `initialize`: nothing is said about revisions, progress or subscriptions."""
    body = message.body
    if isinstance(body, _CALLS):
        params = body.params
        return body.method != "initialize" and not (isinstance(params, dict) and "_meta" in params)
    return message.exchange is None or message.exchange.method != "initialize"


def in_pairing(message: Message) -> bool:
    """No response, or one to a request that waits for it."""
    if not isinstance(message.body, _RESPONSES):
        return True
    return message.exchange is not None and not message.exchange.cancelled


def in_handshake(state: State) -> bool:
    """The session has begun in order."""
    return state.initialized and state.agreed is not None and not state.early


def in_http(message: Message) -> bool:
    """It came over something else."""
    return message.http is None


def in_direction(revision: Revision | None, method: str | None, sender: str) -> bool:
    """A method that its sender may send."""
    known = methods(revision).get(method) if revision and method else None
    return known is not None and sender in known.senders
