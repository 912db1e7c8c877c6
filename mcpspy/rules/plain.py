"""Which messages are plain: those in which the rules about one aspect of a message have nothing to find.

The theory. A hundred rules could look at every message, and nearly every message is beyond reproach. So each aspect
has one quick test (`ASPECTS`), and a message that passes it is not shown to the rules about that aspect. The test may
send a message the long way for nothing; it must never keep one from it that a rule would find something in.
"""

from collections.abc import Callable
from typing import Any

import orjson

from mcpspy.conversation.history import SessionHistory
from mcpspy.conversation.model import Message
from mcpspy.rules.jsonrpc.values import LONG_NUMBER
from mcpspy.rules.pairing import answers_by_id
from mcpspy.rules.rule import Aspect
from mcpspy.rules.schema import fits, is_extended
from mcpspy.rules.security import ESCAPED
from mcpspy.secrets.tokens import in_frame
from mcpspy.spec.methods import methods
from mcpspy.wire.jsonrpc import Error, Invalid, Notification, Request, Result

_LARGE = 1 << 20  # bytes
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_MANY_DIGITS = b"0" * 16  # as many as a long number has at least
_CALLS = (Request, Notification)
_RESPONSES = (Result, Error)


def in_bytes(message: Message, history: SessionHistory) -> bool:
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
    if raw[:1] != b"{" or raw[-1:] != b"}" or (b"\\u" in raw and ESCAPED.search(raw)):
        return False
    if _MANY_DIGITS in raw.translate(_DIGITS) and LONG_NUMBER.search(raw):  # the regex alone takes ten times as long
        return False
    return raw.count(b'":') == written.count(b'":')


def _is_ascii(value: Any) -> bool:
    try:
        return orjson.dumps(value).isascii()
    except TypeError:
        return False


def in_shape(message: Message, history: SessionHistory) -> bool:
    """Exactly what its definition says, and no extension has more to say."""
    return not isinstance(message.body, Invalid) and fits(message) and not is_extended(message, history)


def in_meta(message: Message, history: SessionHistory) -> bool:
    """No `_meta`, and not `initialize`: nothing is said about revisions, progress or subscriptions."""
    body = message.body
    if isinstance(body, _CALLS):
        params = body.params
        return body.method != "initialize" and not (isinstance(params, dict) and "_meta" in params)
    return message.exchange is None or message.exchange.method != "initialize"


def in_pairing(message: Message, history: SessionHistory) -> bool:
    """No response, or one to a request that waits for it, under its id."""
    if not isinstance(message.body, _RESPONSES):
        return True
    exchange = message.exchange
    if exchange is None or exchange.cancelled:
        return False
    return message.http is None or answers_by_id(message)


def in_handshake(message: Message, history: SessionHistory) -> bool:
    """The session has begun in order."""
    return history.initialized and history.agreed is not None


def in_http(message: Message, history: SessionHistory) -> bool:
    """It came over something else."""
    return message.http is None


def in_direction(message: Message, history: SessionHistory) -> bool:
    """No call, or one whose method its sender may send."""
    body = message.body
    if not isinstance(body, _CALLS):
        return True
    known = methods(message.revision).get(body.method) if message.revision else None  # of an extension: the long way
    return known is not None and message.sender in known.senders


ASPECTS: dict[Aspect, Callable[[Message, SessionHistory], bool]] = {
    "bytes": in_bytes,
    "shape": in_shape,
    "meta": in_meta,
    "pairing": in_pairing,
    "handshake": in_handshake,
    "http": in_http,
    "direction": in_direction,
}
"""By aspect: whether a message is plain in it."""
