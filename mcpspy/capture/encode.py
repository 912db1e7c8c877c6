"""JSON for the writer, until it imports a library for that, and for the live directory.

On the `wrap` path: nothing but a built-in module.
"""

from _json import encode_basestring, make_scanner  # `json` imports `re`: 5 ms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def to_json(value: object) -> bytes:
    """Encode plain values as compact JSON; what is not UTF-8 in a path or argument becomes U+FFFD."""
    if isinstance(value, str):
        return encode_basestring(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")).encode()
    if value is None or isinstance(value, bool):
        return b"null" if value is None else b"true" if value else b"false"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, float):
        return repr(value).encode() if value - value == 0 else b"null"  # JSON has no infinity, and no NaN
    if isinstance(value, dict):
        return b"{" + b",".join(to_json(key) + b":" + to_json(member) for key, member in value.items()) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b",".join(map(to_json, value)) + b"]"
    raise TypeError(type(value).__name__)


class _Options:
    """The settings of the standard library's scanner: those of `json.loads`."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float
    memo: "dict[str, str]" = {}  # noqa: RUF012 (the scanner written in C has its own)


_scan: "Callable[[str, int], tuple[Any, int]]" = make_scanner(_Options)  # type: ignore[arg-type]


def from_json(raw: bytes) -> "Any":
    """The value of a JSON text. Raises ValueError or RecursionError."""
    text = raw.decode().strip(" \t\r\n")
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # Python 3.11 has no exception for it where nobody has imported `json`
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one value")
    return value


def as_sent(frame: bytes | None) -> "str | dict[str, str] | None":
    """The value of `sent`: a text, base64 where the bytes are not UTF-8, None for nothing."""
    if frame is None:
        return None
    try:
        return frame.decode()
    except UnicodeDecodeError:
        from binascii import b2a_base64

        return {"b64": b2a_base64(frame, newline=False).decode()}


def written(rest: "dict[str, Any]") -> "dict[str, Any]":
    """The fields of a frame or a release as they are written: `sent` comes as bytes, or None for nothing."""
    return rest | {"sent": as_sent(rest["sent"])} if "sent" in rest else rest
