"""JSON as our writer writes it before it imports a library for that.

On the `wrap` path: nothing but a built-in module.
"""

from _json import encode_basestring


def to_json(value: object) -> bytes:
    """Encode plain values as compact JSON; what is not UTF-8 in a path or argument becomes U+FFFD."""
    if isinstance(value, str):
        return encode_basestring(value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")).encode()
    if value is None or isinstance(value, bool):
        return b"null" if value is None else b"true" if value else b"false"
    if isinstance(value, int):
        return b"%d" % value
    if isinstance(value, dict):
        return b"{" + b",".join(to_json(key) + b":" + to_json(member) for key, member in value.items()) + b"}"
    if isinstance(value, (list, tuple)):
        return b"[" + b",".join(map(to_json, value)) + b"]"
    raise TypeError(type(value).__name__)
