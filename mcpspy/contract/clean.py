"""Definitions as they are written to a lock file: without secrets, in one form, and with a hash.

The theory. A lock file is committed, and two people with the same server must get the same file. So a token of a known
kind, or a default under a secret name, is replaced by one text that does not depend on the token, the machine or the
user. The definitions in a capture are cleaned in the same way before they are compared, so a secret that changes does
not count as a change of the server. A server could hide words from the comparison in this way. Therefore a default with
white space or with an instruction to a model is never a secret here, and neither is a token that contains a sentence.
In a text, the word after a secret name is a secret only if it has a digit and is not the name of a method (`oauth2`).
The same applies to strings below a secret name at any depth, except for the words of a schema.

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
from mcpspy.secrets.text import redacted_fields, redacted_text
from mcpspy.secrets.tokens import replaced

WITHHELD = "«withheld»"
"""The text that replaces a secret."""
LEVELS = 100
"""The levels of a definition that are kept. A schema of more than 64 levels is not evaluated anywhere."""
_SAMPLES = ("default", "const", "examples")  # not `enum`: a choice without a digit is not a secret
_KEYWORDS = frozenset(
    "$anchor $comment $dynamicAnchor $dynamicRef $id $ref $schema contentEncoding contentMediaType description format"
    " pattern required title type".split()
)
"""Members of a schema whose strings are never the value of its property."""
_SHORTEST = 6  # characters of a default that may be a secret
_BETWEEN_WORDS = re.compile(r"[\W_]+|(?<=[a-z])(?=[A-Z])")  # separators that can replace white space
_SEPARATORS = re.compile(r"[\W_]+")
_HEAD = re.compile(r"-----(?:BEGIN|END)[A-Z0-9 ]{0,40}")  # of a key: it has words too
_SENTENCE = re.compile(r"(?:\b[^\W\d_]+ ){4}")  # words where a key should be
_DIGIT = re.compile("[0-9]")
_URL = re.compile(r"[A-Za-z][\w+.-]*://\S*")
_FIRST_WORD = re.compile(r"""["'`]?(?P<word>[^\s"'`,;]+)""")
_NO_SECRET = re.compile(  # a placeholder; a method or a format; a version or a date; a name such as `page_size_10`
    r"""<[^<>]*>|\$?\{+[^{}]*\}+|(?-i:\$[A-Z][A-Z0-9_]*)|%\w+%|[*.…xX-]+|your[_-].*
    |(?:db[_-]?)?(?:password|passwd|secret|token|api[_-]?key|username)
    |(?:oauth|openid|saml|http|base|utf|md|aes|rsa|ed|hs|rs|es|ps|(?:aws4-)?(?:hmac-|scram-)*sha)
    -?v?\d{1,5}(?:\.\d)?(?:[_-][a-z]{2,12}){0,3}|x\.?509
    |\d{4}-\d\d-\d\d|v?\d+\.\d+(?:\.\d+)?|(?-i:[a-z]+(?:[_-][a-z]+)+[_-]?\d{1,2})""",
    re.IGNORECASE | re.VERBOSE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def clean(value: Any, *, levels: int = LEVELS, secret: bool = False) -> Any:
    """Return a definition, or a server's description of itself, without secrets.

    `secret` means that the value stands below a secret name.
    """
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return _below(_text(value)) if secret else _text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return f"(nested too deeply) {digest(value)}"
    if isinstance(value, list):
        return [clean(item, levels=levels - 1, secret=secret) for item in value]
    return {_text(name): _member(name, inner, levels - 1, secret=secret) for name, inner in value.items()}


def _member(name: str, value: Any, levels: int, *, secret: bool) -> Any:
    """Clean the value of a member. `secret` means that a name above it is secret."""
    if not is_secret_name(name):
        keyword = name in _KEYWORDS and not isinstance(value, dict)
        return clean(value, levels=levels, secret=secret and not keyword)
    if isinstance(value, str):
        return _sample(value, levels) if _DIGIT.search(value) else clean(value, levels=levels)
    if isinstance(value, dict) and levels:
        samples = {sample: _sample(value[sample], levels - 1) for sample in _SAMPLES if sample in value}
        value = {**value, **samples}
    return clean(value, levels=levels, secret=True)


def _below(text: str) -> str:
    """Return the replacement of a string below a secret name. A URL stays: the secrets in it were replaced before."""
    return text if _URL.match(text) else _beside(text)


def _sample(value: Any, levels: int) -> Any:
    """Clean a default of a secret name, or a list of them."""
    if isinstance(value, list):
        return [_sample(item, levels) for item in value]
    if not isinstance(value, str):
        return clean(value, levels=levels, secret=True)
    cleaned = clean(value, levels=levels)  # cleaned first, because a value from a lock file is cleaned again
    return WITHHELD if _may_be_secret(cleaned) else cleaned


def _may_be_secret(text: str) -> bool:
    """Return whether a default of a secret name may be a secret: no white space, no instruction to a model."""
    if len(text) < _SHORTEST or any(map(str.isspace, text)) or _NO_SECRET.fullmatch(text):
        return False
    return not instruction_in(text) and not instruction_in(_BETWEEN_WORDS.sub(" ", text))


def _text(text: str) -> str:
    if not text.isascii():
        text = _SURROGATE.sub(lambda it: f"\\u{ord(it[0]):04x}", text)
    text = replaced(text, lambda token: token if _SENTENCE.search(_HEAD.sub("", token)) else WITHHELD, full=True)
    text = redacted_fields(text, _beside)
    return redacted_text(text, _in_url if _URL.fullmatch(text) else _beside, _after_name)


def _in_url(value: str) -> str:
    """Return the replacement of a secret in a URL that stands alone. It needs no digit, but must not be a sentence."""
    sentence = not _DIGIT.search(value) and _SENTENCE.search(_SEPARATORS.sub(" ", value))
    return value if WITHHELD in value or sentence or not _may_be_secret(value) else WITHHELD


def _after_name(_: str, value: str) -> str:
    """Return the replacement of the words after a secret name in a text: the first one may be a secret."""
    found = _FIRST_WORD.match(value)
    if found is None:
        return value
    word = found["word"].rstrip(".)]}")
    start = found.start("word")
    return value[:start] + _beside(word) + value[start + len(word) :]


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
