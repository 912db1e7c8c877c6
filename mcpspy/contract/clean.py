"""Definitions as they are written to a lock file: without secrets, in one form, and with a hash.

The theory. A lock file is committed, and two people with the same server must get the same file. So a token of a known
kind, or a default under a secret name, is replaced by one text that does not depend on the token, the machine or the
user. The definitions in a capture are cleaned in the same way before they are compared, so a secret that changes does
not count as a change of the server. A server could hide words from the comparison in this way. Therefore a default with
white space or with an instruction to a model is never a secret here, and neither is a token that contains a sentence.

Values come from a peer. A value that is nested more deeply than `LEVELS` is replaced by the hash of its JSON. What
strict JSON does not allow (a lone surrogate, an infinite number) becomes text, because the file must stay readable.
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
from mcpspy.secrets.text import redacted_text
from mcpspy.secrets.tokens import replaced

WITHHELD = "«withheld»"
"""The text that replaces a secret."""
LEVELS = 100
"""The levels of a definition that are kept. A schema of more than 64 levels is not evaluated anywhere."""
_SAMPLES = ("default", "const", "examples")  # not `enum`: a choice that everybody can see is not a secret
_SHORTEST = 6  # characters of a default that may be a secret
_BETWEEN_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")  # separators that can replace white space
_HEAD = re.compile(r"-----(?:BEGIN|END)[A-Z0-9 ]{0,40}")  # of a key: it has words too
_SENTENCE = re.compile(r"(?:\b[^\W\d_]+ ){4}")  # words where a key should be
_DIGIT = re.compile("[0-9]")
_SCHEME = re.compile(  # of authentication, an algorithm or a version: `oauth2`, `oauth2_client_credentials`, `HS256`
    r"(?i)(?:(?:aws\d|scram|hmac|rsa|ecdsa|http|api)[-_])*"
    r"(?:oauth|oidc|openid|http|sha|md|hmac|aes|rsa|tls|ssl|x|v|hs|rs|es|ps|ed|argon|base|utf)[-_]?\d[\d.]{0,4}"
    r"(?:[-_](?:pkce|basic|bearer|jwt|code|client|credentials|authorization|implicit|device|password|flow|gcm|cbc|plus))*"
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(value: Any, *, levels: int = LEVELS, secret: bool = False) -> Any:
    """Return a definition, or a server's description of itself, without secrets.

    `secret` means that the value belongs to a secret name.
    """
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
        _text(name): _sample(inner, levels - 1) if secret and name in _SAMPLES else _member(name, inner, levels - 1)
        for name, inner in value.items()
    }


def _member(name: str, value: Any, levels: int) -> Any:
    """Clean the value of a member. A string with a digit below a secret name may be a secret, as a default may be."""
    named = is_secret_name(name)
    if named and isinstance(value, str) and any(map(str.isdigit, value)):
        return _sample(value, levels)
    return clean(value, levels=levels, secret=named and isinstance(value, dict))


def _sample(value: Any, levels: int) -> Any:
    """Clean a default of a secret name, or a list of them."""
    if isinstance(value, list):
        return [_sample(item, levels) for item in value]
    cleaned = clean(value, levels=levels)  # cleaned first, because a value from a lock file is cleaned again
    return WITHHELD if isinstance(value, str) and _may_be_secret(cleaned) else cleaned


def _may_be_secret(text: str) -> bool:
    """Return whether a default of a secret name may be a secret: no white space, no instruction to a model."""
    if len(text) < _SHORTEST or any(map(str.isspace, text)) or _SCHEME.fullmatch(text):
        return False
    return not instruction_in(text) and not instruction_in(_BETWEEN_WORDS.sub(" ", text))


def _text(text: str) -> str:
    if not text.isascii():
        text = _SURROGATE.sub(lambda it: f"\\u{ord(it[0]):04x}", text)
    text = replaced(text, lambda token: token if _SENTENCE.search(_HEAD.sub("", token)) else WITHHELD, full=True)
    return redacted_text(text, _beside, lambda _, value: value if value.isalpha() else _beside(value))


def _beside(value: str) -> str:
    """Return the replacement of a value beside a secret name in a text, as `password=…` or in a URL."""
    known = WITHHELD in value or not _DIGIT.search(value)
    return value if known or not _may_be_secret(value) else WITHHELD


def canonical(value: Any) -> bytes:
    """Return a cleaned value as JSON in one form: compact, members sorted by name."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def digest(value: Any) -> str:
    """Return the hash of a value for a lock file: `sha256:` and 64 hex digits of its canonical JSON."""
    try:
        text = canonical(value)
    except RecursionError:
        text = compact_json(value)
    return f"sha256:{hashlib.sha256(text).hexdigest()}"
