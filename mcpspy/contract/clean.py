"""Definitions as they stand in a lock file: without secrets, in one form, and with a hash.

The theory. A lock file is committed, and two people with the same server have to get the same file. So a token of a
known kind, and a default under a secret name, is replaced by one text that does not depend on the token, the machine or
the user. What a capture shows is cleaned in the same way before it is compared: a secret that changes is no change of
the server. A server could hide words from the comparison that way: a default with a blank in it, or with an instruction
to a model, is never a secret here, and neither is a token with a sentence in it.

Values come from a peer: what is nested more deeply than `LEVELS` stands as the hash of its JSON, and what strict JSON
does not have (a lone surrogate, an infinite number) as a text, or nobody could read the file again.
"""

import hashlib
import json
import math
import re
from typing import Any

from mcpspy.cost import compact_json
from mcpspy.json_values import Number
from mcpspy.rules.instructions import instruction_in
from mcpspy.secrets.patterns import is_secret_name
from mcpspy.secrets.tokens import replaced

WITHHELD = "«withheld»"
"""What stands in for a secret."""
LEVELS = 100
"""Levels of a definition; a schema of more than 64 is not evaluated anywhere."""
_SAMPLES = ("default", "const", "examples")  # but no enum: a choice that everybody sees is no secret
_SHORTEST = 6  # characters of a default that may be a secret
_BETWEEN_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")  # whoever leaves out blanks
_SENTENCE = re.compile(r"(?:\b[^\W\d_]+ ){4}")  # where a key should be
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(value: Any, *, levels: int = LEVELS, secret: bool = False) -> Any:
    """A definition, or what a server tells of itself, without secrets; `secret`: it belongs to a secret name."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
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
    cleaned = clean(value, levels=levels)  # first: what is read from a lock file is cleaned once more
    return WITHHELD if isinstance(value, str) and _may_be_secret(cleaned) else cleaned


def _may_be_secret(text: str) -> bool:
    """Whether a default of a secret name may be one: a text without blanks that tells a model nothing."""
    if len(text) < _SHORTEST or any(map(str.isspace, text)):
        return False
    return not instruction_in(text) and not instruction_in(_BETWEEN_WORDS.sub(" ", text))


def _text(text: str) -> str:
    if not text.isascii():
        text = _SURROGATE.sub(lambda it: f"\\u{ord(it[0]):04x}", text)
    return replaced(text, lambda token: token if _SENTENCE.search(token) else WITHHELD, full=True)


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
