"""Definitions as they stand in a lock file: without secrets, in one form, and with a hash.

The theory. A lock file is committed, and two people with the same server have to get the same file. So a token of a
known kind, and a default under a secret name, is replaced by one text that does not depend on the token, the machine or
the user. What a capture shows is cleaned in the same way before it is compared: a secret that changes is no change of
the server. A default with a blank in it is never a secret here, or a server could hide words from the comparison.

Values come from a peer: what is nested more deeply than `LEVELS` stands as the hash of its JSON.
"""

import hashlib
import json
from typing import Any

from mcpspy.cost import compact_json
from mcpspy.json_values import Number
from mcpspy.secrets.patterns import is_secret_name
from mcpspy.secrets.tokens import replaced

WITHHELD = "«withheld»"
"""What stands in for a secret."""
LEVELS = 100
"""Levels of a definition; a schema of more than 64 is not evaluated anywhere."""
_SAMPLES = ("default", "const", "examples", "enum")
_SHORTEST = 6  # characters of a default that may be a secret


def clean(value: Any, *, levels: int = LEVELS, secret: bool = False) -> Any:
    """A definition, or what a server tells of itself, without secrets; `secret`: it belongs to a secret name."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return f"(nested too deeply) {digest(value)}"
    if isinstance(value, list):
        return [clean(item, levels=levels - 1, secret=secret) for item in value]
    return {
        _text(name): _sample(inner, levels - 1)
        if secret and name in _SAMPLES
        else clean(inner, levels=levels - 1, secret=isinstance(inner, dict) and is_secret_name(name))
        for name, inner in value.items()
    }


def _sample(value: Any, levels: int) -> Any:
    """A default of a secret name, or several."""
    if isinstance(value, list):
        return [_sample(item, levels) for item in value]
    word = isinstance(value, str) and len(value) >= _SHORTEST and not any(map(str.isspace, value))
    return WITHHELD if word else clean(value, levels=levels)


def _text(text: str) -> str:
    return replaced(text, lambda _: WITHHELD, full=True)


def canonical(value: Any) -> bytes:
    """A cleaned value as JSON in one form: compact, the members sorted by name."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def digest(value: Any) -> str:
    """The hash of a value as it stands in a lock file: `sha256:` and 64 hex digits of its canonical JSON."""
    try:
        text = canonical(value)
    except RecursionError:
        text = compact_json(value)
    return f"sha256:{hashlib.sha256(text).hexdigest()}"
