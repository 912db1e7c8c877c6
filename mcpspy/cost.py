"""What tools take of a model's context: an estimate.

The theory. Clients put the definitions of all tools before each conversation: name, description and `inputSchema`,
which is what the APIs of models take. Titles, annotations, `outputSchema`, icons and `_meta` they keep to themselves.
Each model has a tokenizer of its own, so tokens are estimated: one for four bytes of compact JSON.
"""

import hashlib
import json
from typing import Any

import orjson

TOKEN = 4
"""Bytes for which one token is estimated."""
_SENT = ("name", "description", "inputSchema")


def tokens(size: float) -> int:
    """The tokens of that many bytes: an estimate."""
    return int(size // TOKEN)


def tokens_text(size: float) -> str:
    """The same for people; `~` says that it is an estimate."""
    return f"~{tokens(size):,}"


def compact_size(value: Any) -> int:
    """The bytes of a value as compact JSON; 0 where it cannot be written."""
    return len(compact_json(value))


def context_size(definition: Any) -> int:
    """The bytes of what a client gives a model of the definition of a tool."""
    return compact_size(_members(definition, _SENT))


def fingerprint(definition: Any) -> bytes:
    """The same for definitions that say the same to a model, whatever the name of the tool; empty if that is little."""
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
    """A value as compact JSON; empty where it cannot be written."""
    try:
        return orjson.dumps(value)
    except TypeError:  # large integers, lone surrogates
        pass
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return b""
