"""JSON encoding for the writer: values that a JSON library refuses, and bytes that are not text.

On the `wrap` path: only built-in modules are imported.
"""

from _json import encode_basestring
from binascii import b2a_base64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def to_json(value: object) -> bytes:
    """Encode plain values as compact JSON; parts of a path or argument that are not UTF-8 become U+FFFD."""
    if isinstance(value, str):
        return encode_basestring(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")).encode()
    if value is None or isinstance(value, bool):
        return b"null" if value is None else b"true" if value else b"false"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return repr(value).encode() if value - value == 0 else b"null"  # JSON has neither infinity nor NaN
    if isinstance(value, dict):
        return b"{" + b",".join(to_json(key) + b":" + to_json(member) for key, member in value.items()) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b",".join(map(to_json, value)) + b"]"
    raise TypeError(type(value).__name__)


def as_sent(frame: bytes | None) -> "str | dict[str, str] | None":
    """Return the value of `sent`: text, base64 if the bytes are not UTF-8, None for no bytes."""
    if frame is None:
        return None
    try:
        return frame.decode()
    except UnicodeDecodeError:
        return {"b64": base64_text(frame)}


def base64_text(raw: bytes) -> str:
    """Return bytes in base64."""
    return b2a_base64(raw, newline=False).decode()


def written(rest: "dict[str, Any]") -> "dict[str, Any]":
    """Return the fields of a frame or a release as they are written; `sent` is passed as bytes, or None for nothing."""
    return rest | {"sent": as_sent(rest["sent"])} if "sent" in rest else rest
