"""What a word looks like: a placeholder, a secret, something random. Pure guesses from characters.

There are two thresholds. Beside the name of a secret, a word with letters and digits is enough (`looks_secret`).
Without a name, a word must look random (`looks_random`), and then it is only shown to the user.
"""

import re

from mcpspy.secrets.patterns import is_secret_name
from mcpspy.secrets.tokens import placeholder
from mcpspy.sharing.scrub.categories import LABEL

LONGEST = 200
"""Maximum length of an examined word: longer ones are binary data in base64."""
VAGUE = frozenset("key keys tokens signature".split())
"""Names that more often mean something else: the value must look random."""
_PLACEHOLDER = re.compile(
    r"""\$(?:\{[\w.:-]*\})?|\$\{(?:env|input):[\w.-]*|(?-i:\$(?:env:|\{)?[A-Z_][A-Z0-9_]*|%[A-Z_][A-Z0-9_]*%)"""
    r"""|\{\{?\s*[\w.:-]*\s*\}?\}|[*.•…xX_-]+|[<\[]?redacted[>\]]?|[<\[](?:hidden|masked|filtered)[>\]]"""
    r"""|(?:null|none|nil|true|false|yes|no|undefined|required|optional|string|number|object|bearer|basic)"""
    r"""|(?:[~^]|[<>]=?\s?)?v?\d{1,4}\.\d{1,4}\.\d{1,4}(?:-[a-z]{1,10}(?:\.\d{1,4})?)?""",  # a version
    re.IGNORECASE | re.DOTALL,
)
_TECHNICAL = re.compile(
    r"(?:sha|md|utf|base|aes|rsa|ed|hs|rs|es|ps|oauth|http|ipv|x|v|h|p|rfc|iso|win|int|uint|float|i|u|f|c)-?\d+\w{0,3}"
    r"|\d+(?:\.\d+)*[a-z]{0,8}|\d{4}-\d\d.*|v?\d+(?:\.\d+)+.*|#\d+|#[0-9a-f]{3,8}",
    re.IGNORECASE,
)
_PATH = re.compile(r"[\w+.-]*:?//|[./~\\]|\w:\\|\w[\w.-]*/\w")
_PIECES = re.compile(r"[A-Za-z0-9]+")
_TURN = re.compile(r"(?<=[A-Za-z])[0-9]|(?<=[0-9])[A-Za-z]|(?<=[a-z])[A-Z]|(?<=[A-Z]{2})[a-z]")
_MONOTONE = re.compile(r"(.{1,4}?)\1*+.{0,3}", re.DOTALL)


def is_placeholder(value: str) -> bool:
    """Return whether a value below a secret name is not a secret: a variable, an example, or redacted already."""
    if not value.strip() or LABEL.fullmatch(value) or placeholder(value):
        return True
    return len(value) < LONGEST and _PLACEHOLDER.fullmatch(value.strip()) is not None and not looks_random(value)


def is_phrase(text: str) -> bool:
    """Return whether a text may be a recovery phrase of a wallet: 12 to 24 short words (BIP 39)."""
    words = text.split()
    return 12 <= len(words) <= 24 and all(word.isalpha() and len(word) <= 10 for word in words)


def looks_secret(word: str) -> bool:
    """Return whether a word beside a secret name may be the secret: letters and digits, or letters and signs."""
    if not 6 <= len(word) <= 4096 or is_placeholder(word) or _TECHNICAL.fullmatch(word) or _PATH.match(word):
        return False
    if not word.isascii() or not any(map(str.isdigit, word)) or not any(map(str.isalpha, word)):
        return looks_random(word)
    return not re.fullmatch(r"[\w.-]*\(.*|[a-z]+(?:[_-][a-z]+)+[_-]?\d{1,2}", word)  # a call, or `page_size_10`


def looks_secret_below(name: str, word: str) -> bool:
    """Return whether a word may be the secret that a name announces. Below a vague name it must look random."""
    return looks_random(word) if name.lower() in VAGUE else looks_secret(word)


def looks_random(word: str) -> bool:
    """Return whether a word looks like a key, a token or a digest rather than like joined words."""
    for piece in _PIECES.findall(word[:LONGEST]):
        if len(piece) < 8 or _MONOTONE.fullmatch(piece):
            continue
        turns = len(_TURN.findall(piece))
        if (turns >= 4 or (len(piece) >= 16 and turns >= 3)) and any(map(str.isdigit, piece)):
            return True
        if len(piece) >= 20 and turns >= 6:  # only letters whose case changes again and again
            return True
    return False


def is_distinctive(value: str) -> bool:
    """Return whether a value is found anywhere in a text, not only as a whole word."""
    solid = value.strip()
    return len(solid) >= 16 and (not solid.isalpha() or looks_random(solid)) and not solid.isdecimal()


def is_word(value: str) -> bool:
    """Return whether a value is found only as a whole word, because it is too short or too plain for more."""
    if value.isalpha():
        return len(value) >= 8 and not is_secret_name(value) and value.lower() not in _VOCABULARY
    return len(value) >= 6 and (len(value) >= 8 or not value.isdecimal())


_VOCABULARY = frozenset(
    "password passphrase username disabled enabled default unknown anonymous required optional undefined resource"
    " resources boolean integer function response structured description properties additional example placeholder"
    " localhost development production staging database postgres postgresql internal external standard read-only"
    " authorization authentication application javascript typescript document documents message messages account"
    " accounts customer customers customer administrator assistant elicitation completed cancelled arguments".split()
)
"""Words that are usual in messages; below a secret name they are replaced, elsewhere they stay."""
