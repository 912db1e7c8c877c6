"""The values that a scrub replaces: their categories and labels, what a word looks like, where a known value stands.

A label is lower-case ASCII without a space, so it stays unchanged in JSON, in URLs and in HTTP heads. No label matches
the table of secrets: a scrubbed capture passes the check, and a second scrub changes nothing.

What a word looks like is guessed from its characters, with two thresholds. Beside the name of a secret, a word with
letters and digits is enough (`looks_secret`). Without a name, a word must look random (`looks_random`), and then it is
only shown to the user (`Leftovers`).

The words that the specification defines stay: closed sets of values, and names of members. Such a word is no secret
where the specification puts it, even if it is somebody's password. Everything else that was once a secret is replaced
under any name.

Equal values have equal labels, numbered in the order in which they first appear. A value that was once below a secret
name is a secret everywhere. A long or random value is found wherever its characters are, also percent-encoded or
escaped for JSON; a shorter one only as a whole word; any other only as a whole string. One search per value would take
longer with each value. So from a certain number on, the positions in a text are compared with the beginnings of all
values at once.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, get_args
from urllib.parse import quote, quote_plus

from mcpspy.capture.records import Framing, How, Role, Sender, Target
from mcpspy.secrets.patterns import Kind, is_secret_name
from mcpspy.secrets.tokens import placeholder
from mcpspy.spec.extensions import all_definitions
from mcpspy.spec.methods import RESULT_TYPES
from mcpspy.spec.revisions import Revision


class Category(NamedTuple):
    """A category of replaced values."""

    rule: str
    """The id in reports of `scrub --check`; empty for values that a scrub renames without a finding."""
    title: str
    """The name for people."""
    stem: str
    """The beginning of a label."""
    ending: str = ""
    """The end of a label."""


VALUE = Category("scrub/value-under-secret-name", "value under a secret name", "redacted-value-")
EMAIL = Category("scrub/email", "e-mail address", "email-", "@redacted.invalid")
HOME = Category("scrub/home-directory", "home directory", "user-")
USER = Category("scrub/user-name", "user name", "user-")
MATCH = Category("scrub/replaced", "match of --replace", "redacted-match-")
SESSION = Category("", "session id", "session-")
STATE = Category("", "requestState", "state-")
WITHHELD = Category("scrub/not-decoded", "frame that was not decoded", "withheld-")

RULES = {
    "scrub/secret": "A capture holds a secret of a known kind.",
    VALUE.rule: "A capture holds a value under the name of a secret.",
    EMAIL.rule: "A capture holds an e-mail address.",
    HOME.rule: "A capture holds a path in the home directory of a person.",
    USER.rule: "A capture holds the name of a user.",
    MATCH.rule: "A capture holds what --replace names.",
    WITHHELD.rule: "A capture holds a frame that cannot be searched: it was not decoded.",
}
"""The summary of each rule of `scrub --check`."""


def of_token(kind: Kind) -> Category:
    """Return the category of a kind of token."""
    if kind.kept:  # behind a host: the label must be shorter than a secret there
        return Category("scrub/secret", kind.name, "redacted-url-")
    plain = kind.name.rpartition("similar ")[2]
    return Category("scrub/secret", kind.name, f"redacted-{'-'.join(re.findall('[a-z0-9]+', plain.lower()))}-")


LABEL = re.compile(
    r"redacted-(?:[a-z0-9]+-)+\d+|(?:user|session|state)-\d+|email-\d+@redacted\.invalid|«(?:redacted|withheld):[^»]*»"
)
"""A replacement made by a recording or a scrub."""


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


_SCHEMA_TYPES = "null array boolean integer number object string".split()
_FORMATS = (
    "date date-time duration email hostname idn-email idn-hostname ipv4 ipv6 iri iri-reference json-pointer password"
    " regex relative-json-pointer time uri uri-reference uri-template uuid byte binary int32 int64 float double"
).split()
_OTHER = {
    "type": [*_SCHEMA_TYPES, "password", "basic", "bearer", "oauth2", "apiKey", "http"],
    "format": _FORMATS,
    "resultType": RESULT_TYPES,
    "method": "GET HEAD POST PUT PATCH DELETE OPTIONS".split(),  # of a head
    "protocolVersion": [revision.value for revision in Revision],
    "io.modelcontextprotocol/protocolVersion": [revision.value for revision in Revision],
    "$schema": [f"http://json-schema.org/draft-0{n}/schema{end}" for n in (4, 6, 7) for end in ("", "#")]
    + [f"https://json-schema.org/draft/{draft}/schema" for draft in ("2019-09", "2020-12")],
    "from": get_args(Sender),
    "role": get_args(Role),
    "framing": get_args(Framing),
    "how": get_args(How),
    "to": get_args(Target),
    "transport": ("stdio", "http", "mitm"),
    "kind": "frame release gates open close gap signal end continued".split(),
}
"""Words that no definition lists: those of JSON Schema, of HTTP, and of captures."""
_KEYWORDS = frozenset(
    "$schema $id $ref $defs $anchor $comment definitions type format enum const default examples title description"
    " properties required items prefixItems additionalItems additionalProperties patternProperties propertyNames"
    " minProperties maxProperties minItems maxItems uniqueItems contains minLength maxLength pattern minimum maximum"
    " exclusiveMinimum exclusiveMaximum multipleOf allOf anyOf oneOf not if then else dependentRequired"
    " dependentSchemas unevaluatedItems unevaluatedProperties readOnly writeOnly deprecated contentEncoding"
    " contentMediaType nullable headers target version message code".split()
)


def is_word_of(member: str | int, text: str) -> bool:
    """Return whether a string is one of the words that the specification defines for a member."""
    return isinstance(member, str) and text in _words().get(member, ())


def is_member(name: str) -> bool:
    """Return whether the specification, or JSON Schema, has a member with this name."""
    return name in members()


@cache
def members() -> frozenset[str]:
    """Return the names of all members of the specification, of JSON Schema and of captures."""
    return _KEYWORDS | {name for revision in Revision for name, _ in _shapes(all_definitions(revision))}


@cache
def _words() -> dict[str, frozenset[str]]:
    found = {name: set(words) for name, words in _OTHER.items()}
    for revision in Revision:
        definitions = all_definitions(revision)
        for name, shape in _shapes(definitions):
            found.setdefault(name, set()).update(_closed_set(shape, definitions))
    return {name: frozenset(words) for name, words in found.items() if words}


def _shapes(node: Any) -> Iterator[tuple[str, Any]]:
    """Yield each member in a schema, with its own schema."""
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _shapes(inner)
    properties = node.get("properties") if isinstance(node, dict) else None
    if isinstance(properties, dict):
        yield from properties.items()


def _closed_set(shape: Any, definitions: dict[str, Any]) -> set[str]:
    """Return the strings that a schema allows, if it lists them."""
    if not isinstance(shape, dict):
        return set()
    found = {value for value in (shape.get("const"), *shape.get("enum", ())) if isinstance(value, str)}
    if reference := shape.get("$ref"):
        shape = definitions.get(reference.rpartition("/")[2], {})
        found |= {value for value in shape.get("enum", ()) if isinstance(value, str)}
    for part in (shape.get("items"), *shape.get("anyOf", ()), *shape.get("oneOf", ())):
        found |= _closed_set(part, definitions)
    return found


_FEW_FORMS = 100  # number of forms up to which one search each is faster
_GRAM = 6  # minimum length of a value that is searched for
_ANCHOR = 3  # minimum length of the part of a value that is searched for to find the value
_PERCENT = re.compile("%[0-9A-F]{2}")
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")  # no encoding changes these characters
_NAMES = frozenset(
    "admin administrator api app apps backup bin build cache code codespace coder data default dev developer docker"
    " email git guest home host jenkins key linuxbrew local mcp media me name node nobody public redacted root runner"
    " sandbox secret service session shared src state system temp test testuser tmp token ubuntu user username users"
    " value var vagrant vscode web work workspace www x xxx you your".split()
)
"""Names of accounts that belong to no person, and words that are not names."""


def is_personal(name: str) -> bool:
    """Return whether the name of a home directory may be that of a person."""
    plain = name.lower().strip(".")
    return plain not in _NAMES and any(map(str.isalpha, plain)) and not re.fullmatch(r"user-\d+", plain)


class KnownValues:
    """The values that were found so far."""

    def __init__(self) -> None:
        self._labels: dict[tuple[str, str], str] = {}  # by stem and value
        self._numbers: dict[str, int] = {}
        self._whole: dict[str, tuple[Category, str]] = {}
        self._forms: dict[str, tuple[str, bool]] = {}  # the value, and whether it must be a whole word
        self._grams: set[str] = set()  # the beginnings of forms
        self._anchors: set[str] = set()  # the longest part of each form and user name that no encoding changes
        self._anchor_grams: set[str] = set()
        self._foreign = False  # whether a value has characters that JSON may escape
        self._wholes: set[str] = set()  # values that are found only as a whole string
        self._users: dict[str, re.Pattern[str]] = {}

    def label(self, category: Category, value: str) -> str:
        """Return the replacement of a value, which is known from now on."""
        key = (category.stem, value)
        found = self._labels.get(key)
        if found is None:
            if value in self._whole and category not in (HOME, USER):  # known before as another kind
                return self._whole[value][1]
            number = self._numbers[category.stem] = self._numbers.get(category.stem, 0) + 1
            found = self._labels[key] = f"{category.stem}{number}{category.ending}"
            if category in (HOME, USER):
                self._add_user(value)
            else:
                self._add(category, value, found)
        return found

    def whole(self, text: str) -> tuple[Category, str] | None:
        """Return the category and label of a whole string."""
        return self._whole.get(text)

    def may_stand_in(self, line: str) -> bool:
        """Return whether a line of a capture may contain a value or user name in any encoding; never wrongly False."""
        if self._foreign and ("\\u" in line or "%" in line):
            return True
        if self._wholes and not self._wholes.isdisjoint(part.rstrip("\\") for part in line.split('"')):
            return True
        if len(self._anchors) <= _FEW_FORMS:
            return any(anchor in line for anchor in self._anchors)
        grams = self._anchor_grams
        return any(line[at : at + _ANCHOR] in grams for at in range(len(line) - _ANCHOR + 1))

    def __len__(self) -> int:
        return len(self._labels)

    def replaced(self, text: str, found: Callable[[Category, str], None], *, users: bool = True) -> str:
        """Return a text without the values in it, and without user names unless `users` is false.

        `found` is called for each with its label.
        """
        for form, value, word in self._present(text):
            category, label = self._whole[value]
            if word:
                text, times = re.subn(rf"(?<![A-Za-z0-9]){re.escape(form)}(?![A-Za-z0-9])", label, text)
            else:
                times = text.count(form)
                text = text.replace(form, label)
            for _ in range(times):
                found(category, label)
        for user, pattern in self._users.items() if users else ():
            if user in text:
                label = self._labels[USER.stem, user]
                text, times = pattern.subn(label, text)
                for _ in range(times):
                    found(USER, label)
        return text

    def _present(self, text: str) -> Iterator[tuple[str, str, bool]]:
        """Yield the forms in a text, long ones first, with their values."""
        if len(self._forms) <= _FEW_FORMS:
            found = [form for form in self._forms if form in text]
        else:
            grams = {text[at : at + _GRAM] for at in range(len(text) - _GRAM + 1)} & self._grams
            found = [form for form in self._forms if form[:_GRAM] in grams and form in text] if grams else []
        for form in sorted(found, key=len, reverse=True):
            value, word = self._forms[form]
            yield form, value, word

    def _add(self, category: Category, value: str, label: str) -> None:
        self._whole[value] = category, label
        distinctive = is_distinctive(value)
        if not distinctive and not is_word(value):
            self._foreign = self._foreign or not value.isascii()
            self._wholes.add(value.rstrip("\\"))
            return
        for form in (value,) if _PLAIN.fullmatch(value) else _forms(value):
            if len(form) >= _GRAM and form not in self._forms:
                self._forms[form] = value, not distinctive
                self._grams.add(form[:_GRAM])
        self._add_anchor(value)

    def _add_user(self, name: str) -> None:
        if len(name) >= 3:
            self._users[name] = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])")
            self._add_anchor(name)

    def _add_anchor(self, value: str) -> None:
        anchor = max(_PLAIN.findall(value), key=len, default="")
        if len(anchor) < _ANCHOR:  # then any line with a character of it is examined
            self._foreign = True
            anchor = value[:_ANCHOR]
        self._foreign = self._foreign or not value.isascii()
        self._anchors.add(anchor)
        self._anchor_grams.add(anchor[:_ANCHOR])


def _forms(value: str) -> Iterator[str]:
    """Yield a value as it is, and as written in JSON and in URLs."""
    escaped = [json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]]
    yield from (value, *escaped, *(json.dumps(form)[1:-1] for form in escaped))  # JSON in a string of JSON
    if value.isprintable() and _encodable(value):
        yield from _in_urls(value)


def _in_urls(value: str) -> Iterator[str]:
    """Yield a value as written in URLs by Python, `encodeURIComponent` and forms; hexadecimal digits in either case."""
    for form in (quote(value), quote(value, safe=""), quote(value, safe="!'()*"), quote_plus(value)):
        yield form
        yield _PERCENT.sub(lambda it: it[0].lower(), form)


def _encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False
    return True


_MOST_LEFTOVERS = 1000  # different words that are kept
_BINARY_TEXT = 500  # characters of a text without a space that counts as base64 data
_OF_LEFTOVER = "A-Za-z0-9_+=-"
_SHORTEST_LEFTOVER = 20  # minimum length of such a word
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?:[_-]\d+)?")
_LEFTOVER = re.compile(rf"(?<![{_OF_LEFTOVER}])[{_OF_LEFTOVER}]{{{_SHORTEST_LEFTOVER},{LONGEST}}}(?![{_OF_LEFTOVER}])")
_OTHERS_BLANK = bytes(
    code if chr(code).isascii() and re.match(f"[{_OF_LEFTOVER}]", chr(code)) else 0x20 for code in range(256)
)  # bytes of words unchanged, others as spaces


@dataclass(frozen=True, slots=True)
class Leftover:
    """A word that looks random and was not replaced."""

    n: int
    """The number of the first record that contains it."""
    where: str
    text: str
    length: int
    count: int


class Leftovers:
    """Collects such words, each once; `look` at each text after its secrets were replaced."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[int, str, int]] = {}

    def look(self, text: str, n: int, where: str) -> None:
        """Add the words of a text that look random."""
        if len(text) < _SHORTEST_LEFTOVER or (len(text) > _BINARY_TEXT and not re.search(r"\s", text)):
            return
        for match in _LEFTOVER.finditer(text):
            word = match[0].strip("=")
            if word in self._found:
                first, place, count = self._found[word]
                self._found[word] = first, place, count + 1
            elif len(self._found) < _MOST_LEFTOVERS and _is_left(word):
                self._found[word] = n, where, 1

    def of(self, known: KnownValues) -> tuple[Leftover, ...]:
        """Return the words that were not replaced in the end, the most frequent first."""
        left = [
            Leftover(n, where, word, len(word), count)
            for word, (n, where, count) in self._found.items()
            if known.replaced(word, lambda *_: None) == word and known.whole(word) is None
        ]
        return tuple(sorted(left, key=lambda it: (-it.count, it.n)))


def _is_left(word: str) -> bool:
    """Return whether a word is a leftover; a UUID is not, because sessions are full of ids."""
    return looks_random(word) and not LABEL.search(word) and not _UUID.fullmatch(word)


def may_have_leftovers(line: bytes) -> bool:
    """Return whether a line of a capture has a word that is long enough."""
    return max(map(len, line.translate(_OTHERS_BLANK).split()), default=0) >= _SHORTEST_LEFTOVER
