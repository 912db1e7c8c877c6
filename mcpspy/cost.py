"""An estimate of how much of a model's context tools use.

The theory. Clients put the definitions of all tools before each conversation: name, description and `inputSchema`,
which are the members that the APIs of models accept. Clients do not send titles, annotations, `outputSchema`, icons and
`_meta` to the model. Each model has its own tokenizer, so tokens are estimated: one per four bytes of compact JSON. A
model does not read the base64 of an image, of audio or of a blob as text, so that is not counted.
"""

import hashlib
import json
from typing import Any

import orjson

from mcpspy.json_values import member

TOKEN = 4
"""Bytes per estimated token."""
_SENT = ("name", "description", "inputSchema")


def tokens(size: float) -> int:
    """Return the estimated number of tokens of `size` bytes."""
    return int(size // TOKEN)


def tokens_text(size: float) -> str:
    """Return the estimated tokens as text; `~` marks an estimate."""
    return f"~{tokens(size):,}"


def compact_size(value: Any) -> int:
    """Return the bytes of a value as compact JSON; 0 if it cannot be encoded."""
    return len(compact_json(value))


def encoded_size(result: Any) -> int:
    """Return the bytes of base64 in a result, as compact JSON: of its images, audio and blobs."""
    found = 0
    for name in ("content", "contents"):
        blocks = member(result, name)
        for block in blocks if isinstance(blocks, list) else ():
            media = member(block, "type") in ("image", "audio")
            data = member(block, "data") if media else member(block, "blob") or member(block, "resource", "blob")
            found += max(compact_size(data) - 2, 0) if isinstance(data, str) else 0
    return found


def context_size(definition: Any) -> int:
    """Return the bytes of the part of a tool's definition that a client gives to a model."""
    return compact_size(_members(definition, _SENT))


def fingerprint(definition: Any) -> bytes:
    """Return a hash that is equal for tools with equal description and `inputSchema`; empty without a description."""
    told = _members(definition, _SENT[1:])
    if not told.get("description"):
        return b""
    try:
        text = orjson.dumps(told, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        text = compact_json(told)
    return hashlib.blake2b(text, digest_size=8).digest() if text else b""


def _members(definition: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: definition[name] for name in names if name in definition} if isinstance(definition, dict) else {}


def compact_json(value: Any) -> bytes:
    """Return a value as compact JSON; empty if it cannot be encoded."""
    try:
        return orjson.dumps(value)
    except TypeError:  # large integers, lone surrogates
        pass
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return b""
