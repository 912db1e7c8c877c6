"""Which messages are plain: the rules about one aspect of such a message cannot find anything.

A hundred rules could look at every message, and nearly every message is correct. So each aspect has one quick test
(`aspects`). The rules about that aspect do not run on a message that passes it. The test may fail for a message without
a fault. It must never pass for a message in which a rule would find something.
"""

from typing import Any

import orjson

from mcpspy.conversation.model import HttpUnit, Message, Session
from mcpspy.rules.content import MARK
from mcpspy.rules.jsonrpc.values import LONG_NUMBER
from mcpspy.rules.pairing import answers_by_id
from mcpspy.rules.rule import Aspect
from mcpspy.rules.schema import facts, fits, is_extended
from mcpspy.rules.security import ESCAPED
from mcpspy.secrets.tokens import in_frame
from mcpspy.wire.jsonrpc import Error, Notification, Request, Result

_LARGE = 1 << 20  # bytes
_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_MANY_DIGITS = b"0" * 16  # a long number has at least as many digits

_REDIRECTION = 300

ASPECTS: tuple[Aspect, ...] = (
    *("bytes", "shape", "meta", "pairing", "handshake", "http", "direction"),
    *("refusal", "content", "listening", "login", "failure"),
)
"""The aspects with a test, in the order of `aspects`."""


def aspects(message: Message, method: str | None, session: Session) -> tuple[bool, ...]:
    """Return for each of `ASPECTS` whether a message is plain in it. `method` is its own or that of its request.

    - bytes: one complete JSON object in ASCII, not large, with nothing that a rule looks for;
    - shape: exactly what its definition allows, and no extension adds to it;
    - meta: no `_meta`, and not `initialize`: nothing about revisions, progress or subscriptions;
    - pairing: a notification, a request whose id is free, or the response to a waiting request, with its id, before the
      client leaves;
    - handshake: the session began in the right order;
    - http: not over HTTP;
    - direction: not a request or notification, or its sender may send its method; the methods of extensions never pass;
    - content: a result without an image or a sound;
    - failure: not an answer, or the outcome of its request is ok;
    - refusal, listening, login: never, because the rules about these look at few messages (see `unit_aspects`).
    """
    body, http, told = message.body, message.http, facts(method, message.revision)
    meta, pairing, direction, failure = method != "initialize", True, True, True
    if type(body) is Request or type(body) is Notification:
        params = body.value.get("params")
        if type(params) is dict and "_meta" in params:
            meta = False
        direction = message.sender in told.senders
        if type(body) is Request:
            pairing = len(message.session.pending.get((message.sender, body.id), ())) < 2
    elif type(body) is Result or type(body) is Error:
        exchange = message.exchange
        failure = exchange is None or exchange.outcome == "ok"
        pairing = exchange is not None and not exchange.cancelled and session.left is None
        pairing = pairing and (http is None or answers_by_id(message))
    else:
        pairing = False
    begun = session.initialized and session.agreed is not None
    shape = fits(message, told) and not (told.extended and is_extended(message, session))
    raw = message.frame.raw
    content = type(body) is Result and MARK not in raw and b"\\u" not in raw  # the mark may be escaped
    return (
        in_bytes(message),
        shape,
        meta,
        pairing,
        begun,
        http is None,
        direction,
        False,
        content,
        False,
        False,
        failure,
    )


def unit_aspects(unit: HttpUnit) -> tuple[bool, ...]:
    """Return the same for an HTTP event without a message. Of the aspects of messages, it is only not plain in HTTP.

    - refusal: it is not of an answer that refuses or redirects;
    - content: it is a head, or the end of a channel;
    - listening: it does not belong to a GET;
    - login: as for refusal, and it is of a request, or of the answer to one that carries messages.
    """
    place, request = unit.http, unit.http.request
    code = place.summary["status"]
    refusal = type(code) is not int or code < _REDIRECTION
    content, listening = unit.frame is None, place.summary["method"] != "GET"
    login = refusal and (request is None or bool(request.carried))
    return True, True, True, True, True, False, True, refusal, content, listening, login, True


def in_bytes(message: Message) -> bool:
    """Return whether a message is plain in its bytes."""
    frame, body = message.frame, message.body
    raw, value = frame.raw, body.value
    if message.part:  # the first message of a batch stands for the whole frame
        return _is_ascii(value)
    if body.refused or type(value) is not dict or not raw.isascii() or frame.cut or len(raw) > _LARGE:
        return False
    if in_frame(raw):
        return False
    try:
        written = orjson.dumps(value, None, orjson.OPT_STRICT_INTEGER)
    except (TypeError, orjson.JSONEncodeError):
        return False
    if written == raw:  # the usual case: no duplicate key, no number that changes, no needless escape
        return True
    if raw[:1] != b"{" or raw[-1:] != b"}" or (b"\\u" in raw and ESCAPED.search(raw)):
        return False
    if _MANY_DIGITS in raw.translate(_DIGITS) and LONG_NUMBER.search(raw):  # the regex alone is ten times slower
        return False
    return raw.count(b'":') == written.count(b'":')


def _is_ascii(value: Any) -> bool:
    try:
        return orjson.dumps(value).isascii()
    except TypeError:
        return False
