"""Scrubbed texts: a string of a message, a line of stderr, a value of a head.

`mcpspy.secrets` defines what is a secret, by its form and by the name beside it; here its places become known values.
Then come e-mail addresses, home directories, what the user names, and finally all values that are known from elsewhere.
In a sentence, a word after a secret name is a secret only if it looks like one.

In a table the name of the secret stands in another line than its values: at the head of a column of CSV or Markdown, or
of a table of TOML, or above the lines of a mapping of YAML. A value is a secret if it looks like one. Below the name of
a password, any single word is one.

A private key (PEM) in several lines may have something around each line: the prefix of a logger, quotes, colours
(`KeyLines`). A key without it is found as a whole, by its form.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from urllib.parse import unquote

from mcpspy.errors import UsageError
from mcpspy.secrets.patterns import (
    FOREIGN_NAMES,
    FOREIGN_WORDS,
    ORACLE_PROGRAMS,
    PASSWORD_OPTIONS,
    PROGRAM_STEMS,
    is_secret_name,
)
from mcpspy.secrets.redactor import Redactor
from mcpspy.secrets.text import redacted_fields, redacted_text
from mcpspy.secrets.tokens import kind_of, may_hold_token, replaced
from mcpspy.sharing.scrub.values import (
    EMAIL,
    HOME,
    LABEL,
    MATCH,
    SESSION,
    VALUE,
    Category,
    KnownValues,
    is_personal,
    is_placeholder,
    is_word_of,
    looks_random,
    looks_secret,
    looks_secret_below,
    of_token,
)

_POINTER = re.compile(r"(?:/(?:[^/~]|~[01])*)*")


@dataclass(frozen=True, slots=True)
class ScrubOptions:
    """What is replaced besides secrets, and what is not. Raises UsageError for an invalid pointer."""

    only_secrets: bool = False
    """Keep e-mail addresses, home directories and user names."""
    replace: tuple[re.Pattern[str], ...] = ()
    """Further patterns to replace."""
    keep: tuple[str, ...] = ()
    """JSON Pointers into messages; the values there stay."""

    def __post_init__(self) -> None:
        for pointer in self.keep:
            if not _POINTER.fullmatch(pointer):
                raise UsageError(f"--keep {pointer!r} is not a JSON Pointer; one is /params/arguments/path")


_PASSWORD_COLUMN = re.compile(
    rf"(?i)(?:passw(?:or)?d|pwd|passphrase|{'|'.join((*FOREIGN_NAMES, *FOREIGN_WORDS))})s?\d*$"
)
_TABLE_RULE = re.compile(r"[\s|:+=-]*-[\s|:+=-]*")
_TABLE = re.compile(r"\s{0,64}\[{1,2}(?P<name>[\w.\" -]{1,128})\]{1,2}\s*(?:#.*)?")
_MAPPING = re.compile(r"(?P<indent> {0,64}(?:- )?)['\"]?(?P<name>[\w.-]{1,64})['\"]?:\s*(?:#.*)?")
_ENTRY = re.compile(
    r"(?P<before>(?P<indent>\s{0,64})(?:- )?(?:['\"]?(?P<name>[\w.-]{1,64})['\"]?\s{0,8}[:=]\s{0,8})?['\"]?)"
    r"(?P<value>[^\s'\",#][^\s'\",]*)(?P<after>['\"]?,?\s*(?:#.*)?)"
)
_CSV_HEADING = re.compile(r"(?!\s*\d+\s*$)\s{0,8}[\"']?[\w.-]{1,40}[\"']?\s{0,8}")
_MARKDOWN_HEADING = re.compile(r"\s*|(?!\s*\d+\s*$)\s*[\"'`*]{0,2}[\w.-]{1,40}(?: [\w.()-]{1,40}){0,2}[\"'`*]{0,2}\s*")
"""The head of a column: of CSV, and of Markdown, where it may have several words or be empty."""
_DESCRIPTIVE_ENTRIES = frozenset(
    "type description title format in scheme ref example minlength maxlength length policy hash hashing algorithm"
    " encryption encoding name label hint rule rules rounds rotation strength".split()
)
"""Entries that describe the secret, without punctuation: the value must look random."""
_MOST_COLUMNS = 64  # columns
_LONGEST_LINE = 4096  # characters of a line


def redacted_tables(text: str, mark: Callable[[str], str]) -> str:
    """Redact the values of tables in a text of several lines."""
    if "\n" not in text:
        return text
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        at = max(at + 1, _columns(lines, at, mark), _entries(lines, at, mark))
    return "\n".join(lines)


def _columns(lines: list[str], at: int, mark: Callable[[str], str]) -> int:
    """Redact the rows below a line that is the head of a table with a secret column. Return where the table ends."""
    head = lines[at]
    separator = next((sign for sign in ("|", "\t", ";", ",") if sign in head), "") if len(head) < _LONGEST_LINE else ""
    names = head.split(separator) if separator else []
    if not names or len(names) > _MOST_COLUMNS:
        return at
    secret = [(n, name) for n, cell in enumerate(names) if is_secret_name(name := cell.strip().strip("\"'`* "))]
    form = _MARKDOWN_HEADING if separator == "|" else _CSV_HEADING
    if not secret or not all(form.fullmatch(name) for name in names):
        return at
    row = at + 1
    if separator == "|":
        if row >= len(lines) or not _TABLE_RULE.fullmatch(lines[row]):
            return at
        row += 1
    while row < len(lines) and len(cells := lines[row].split(separator)) == len(names):
        for n, name in secret:
            cells[n] = _cell(name, cells[n], mark)
        lines[row] = separator.join(cells)
        row += 1
    return row


def _cell(name: str, cell: str, mark: Callable[[str], str]) -> str:
    value = cell.strip().strip("\"'`")
    return cell.replace(value, mark(value)) if is_secret_cell(name, value) else cell


def _entries(lines: list[str], at: int, mark: Callable[[str], str]) -> int:
    """Redact the entries below a line that begins a table or mapping with a secret name. Return where it ends."""
    table, mapping = _TABLE.fullmatch(lines[at][:_LONGEST_LINE]), _MAPPING.fullmatch(lines[at][:_LONGEST_LINE])
    found = table or mapping
    if found is None or not is_secret_name(name := found["name"].rpartition(".")[2].strip('" ')):
        return at
    row = at + 1
    while row < len(lines):
        line = lines[row]
        entry = _ENTRY.fullmatch(line) if len(line) < _LONGEST_LINE else None
        if table and line.lstrip().startswith("["):
            break
        if mapping and line.strip() and len(line) - len(line.lstrip()) <= len(mapping["indent"]):
            break
        if entry and _is_secret_entry(name, entry["name"] or "", entry["value"]):
            lines[row] = entry["before"] + mark(entry["value"]) + entry["after"]
        row += 1
    return row


def _is_secret_entry(table: str, name: str, value: str) -> bool:
    if name.lower().replace("_", "").replace("-", "") in _DESCRIPTIVE_ENTRIES:
        return looks_random(value) and not is_placeholder(value)
    return is_secret_cell(table, value)


def is_secret_cell(name: str, value: str) -> bool:
    """Return whether a value is a secret in a column, or a table, with the name of a secret."""
    if name.lower() == "token":  # a word of a language, or a symbol, as well
        return looks_random(value) and not is_placeholder(value)
    if looks_secret_below(name, value):
        return True
    word = _PASSWORD_COLUMN.search(name) is not None and len(value) > 1 and not re.search(r"[\s(){}<>\[\]]", value)
    return word and not is_placeholder(value) and not value.isdecimal() and "redacted" not in value


Found = Callable[[Category, str], None]
"""Called for each replaced place, with its category and label."""

_WRAPPED = re.compile("«redacted:\ufdd0([^»]*)»")
_EMAIL = re.compile(  # also after an escape in a URL or in JSON
    r"(?:(?<![\w%\\])|(?<=%[0-9A-Fa-f]{2})|(?<=\\)(?![bfnrtu])|(?<=\\[bfnrt])|(?<=\\u[0-9A-Fa-f]{4}))"
    r"\w[\w.+-]{0,63}(?P<at>@|%40)(?!redacted\.invalid|v?\d+\.\d|\dx\.)"
    r"(?:[^\W_](?:[^\W_]|-){0,62}\.){1,8}(?:[^\W\d_]{2,24}|xn--[a-z0-9-]{2,59})(?![\w@-]|\.\w)"
)
_LONGEST_USER = 200  # characters between `//` and the host of a URL
_IN_NAME = r"""[^\\/\s"'`<>|:;,?*&=#%()\[\]{}$]"""
_HOME = re.compile(
    r"(?P<before>(?<![\w.])(?:/(?:var|usr|export|nfs|mnt|cygdrive)(?:/[a-z])?|/[a-z])?(?:/|%2[Ff])(?:home|Users)(?:/|%2[Ff])"
    r"|\b[A-Za-z](?::|%3[Aa])(?:/|%2[Ff])(?i:Users)(?:/|%2[Ff])"
    r"|(?P<windows>(?:\\{1,8}|%5[Cc])(?i:Users)(?:\\{1,8}|%5[Cc])))"
    rf"(?P<user>(?!%){_IN_NAME}{{1,64}}(?(windows)(?:(?: {_IN_NAME}{{1,32}}){{1,3}}(?=\\))?))"
)
_SESSION = re.compile(r"(?i)((?:[?&]|%3F|%26)session_?id(?:=|%3D))([^&#\s\"'\\%]+)")
_SESSION_HEADER = re.compile(r"(?i)(mcp-session-id[\"']?\s{0,8}[:=]\s{0,8}[\"']?)([\x21\x23-\x26\x28-\x7e]+)")
_BESIDE = re.compile(
    r"(?i)(?<![a-z])(?:(?:api|access|secret|private|signing|license)[ _-]?keys?|pass(?:word|phrase|code)s?|secrets?"
    rf"|mot de passe|{'|'.join(FOREIGN_NAMES)}|credentials?|(?:access |auth |bearer |refresh |api )?token)\b"
    r"(?:[^\w\n]{1,3}[A-Za-z]{1,8}){0,5}?[^\w\n]{1,4}(?P<value>[\w.~+/!@#$%^&*=-]{8,512})"
)
_LINK = re.compile(r"(?i)(?:\b(?:is|was)\b|[:=])[^\w\n]*$")
_WORDS = (
    *"pass pwd token secret key auth cred signature cookie jwt bearer basic otp assertion".split(),
    *"mnemonic phrase seed kty securestring".split(),
    "machine ",  # a .netrc on several lines of stderr: its password comes in a later one
)
_PLACE_STEMS = ("users", "home")
_PLACES = ("/home/", "/users/", "\\users", "2fhome", "2fusers", "5cusers", ":/users")
_AFTER_SIGN = {"-": ("-u ", "--user"), "=": ("code=", "sig="), "@": ("@tcp(", "@tcp6(", "@unix(", "@udp(", "@cloudsql")}
"""By a character that is found quickly: words with it."""
_NAMES = (*FOREIGN_NAMES, *FOREIGN_WORDS)
_FOREIGN_STEMS = tuple("senha rasena senord slo sifre elszo salasana gangs kennw wachtw".split())
_COMMANDS = (
    " login ",
    *(f"{name}{space}" for name in (*PASSWORD_OPTIONS, *ORACLE_PROGRAMS) for space in " \"'"),
)
_COMMAND_STEMS = (" login ", *PROGRAM_STEMS)
"""Stems: each rare word has one of them, or one of `_WORDS`. Fewer searches take less time."""
_MAIL_HINT = re.compile(r"[\w+-](?:@|%40)[\w\\-]+\.\w")
_STORAGE_KEY = re.compile(r"[A-Za-z0-9+/]{64}==")
_ORACLE_LOGIN = re.compile(r"/[^\s/@\"]{1,128}@(?:[\w.-]{1,253}:\d|//|\()")
_PHRASE = re.compile(
    r"(?i)(?P<before>(?:mnemonic|(?:seed|recovery|secret|backup)[ _-]?(?:phrase|words))\W{1,8}(?:is\W{1,3})?)"
    r"(?P<value>(?:[a-z]{3,8}[ ,]{1,3}){11,23}[a-z]{3,8})\b"
)
_COLOUR = re.compile(r"(?:\x1b\[[0-9;:]*[A-Za-z])+")
_XML = re.compile(r"<(?P<name>[\w.:-]{1,64})>(?P<value>[^<>\s]{1,512})(?=</)")


def is_suspicious(line: str, *, only_secrets: bool) -> bool:
    """Return whether a text, or a line of a capture, may contain any secret of this module except tokens.

    It is never wrongly False.
    """
    lower = line.lower().replace("progresstoken", "")
    for word in _WORDS:
        if word in lower:
            return True
    for sign, words in _AFTER_SIGN.items():
        if sign in lower and _has_any(lower, words):
            return True
    if ("-" in lower or "/" in lower) and _has_rare(lower, _COMMAND_STEMS, _COMMANDS):
        return True
    if (not lower.isascii() and _has_any(lower, _NAMES)) or _has_rare(lower, _FOREIGN_STEMS, _NAMES):
        return True
    if not only_secrets and _has_rare(lower, _PLACE_STEMS, _PLACES):
        return True
    if "=" in line and "==" in line and _STORAGE_KEY.search(line):
        return True
    if "@" in lower and (
        "://" in lower or _ORACLE_LOGIN.search(lower) or (not only_secrets and _MAIL_HINT.search(lower) is not None)
    ):
        return True
    return "session" in lower or "requeststate" in lower or ("%" in lower and "%40" in lower and not only_secrets)


def _has_any(text: str, words: Iterable[str]) -> bool:
    return any(word in text for word in words)


def _has_rare(text: str, stems: Iterable[str], words: Iterable[str]) -> bool:
    """Return whether a text has one of the words; the stems are searched for first."""
    for stem in stems:
        if stem in text:
            return _has_any(text, words)
    return False


class _Heads(Redactor):
    """The redactor of heads and command lines, with wrapped labels in place of its marks."""

    def __init__(self, wrapped: Callable[[str], str]) -> None:
        super().__init__()
        self._wrapped = wrapped

    def mark(self, secret: str) -> str:
        """Return the replacement of a secret."""
        return self._wrapped(secret)


class Texts:
    """Removes secrets, personal data and known values from texts; `found` is called for each place."""

    def __init__(
        self, known: KnownValues, found: Found, done: Callable[[str], None] | None, options: ScrubOptions
    ) -> None:
        """`done` is called with each text that is finished."""
        self._known = known
        self._found = found
        self._done = done
        self._only_secrets = options.only_secrets
        self._replace = options.replace
        self._heads = _Heads(self._wrapped)

    def text(self, text: str, *, form: bool = False) -> str:
        """Return a scrubbed text; `form` means that it begins with a field of a form.

        Terminal colours may be inside words, so a text in which something is replaced loses them.
        """
        if "\x1b[" in text:
            plain = _COLOUR.sub(_gap, text)
            clean = self._text(plain, form=form)
            return text if clean == plain else clean
        return self._text(text, form=form)

    def _text(self, text: str, *, form: bool) -> str:
        if whole := self._known.whole(text):
            return self._counted(*whole)
        if self._replace:
            text = self._known.replaced(text, self._found)
        for pattern in self._replace:
            labels = [found.span() for found in LABEL.finditer(text)]
            text = pattern.sub(partial(self._match, labels), text)
        if is_suspicious(text, only_secrets=self._only_secrets):
            text = self._personal(self._sessions(self._secrets(text, form=form)))
        elif len(text) > _SHORTEST and may_hold_token(text):
            text = _unwrapped(replaced(text, self._wrapped, full=True))
        text = self._known.replaced(text, self._found)
        if self._done:
            self._done(text)
        return text

    def key(self, text: str) -> str:
        """Return a member name without tokens, personal data and known values; other names are not secrets."""
        if whole := self._known.whole(text):
            return self._counted(*whole)
        if len(text) <= _SHORTEST:
            return self._known.replaced(text, self._found, users=False)
        changed = text
        if may_hold_token(text):
            changed = _unwrapped(replaced(text, self._wrapped, full=True))
        if is_suspicious(changed, only_secrets=self._only_secrets):
            changed = self._personal(changed)
        return self._known.replaced(changed, self._found, users=False)

    def secret(self, value: str) -> str:
        """Return the label of a value that is below a secret name, or is a token; placeholders stay."""
        if is_placeholder(value):
            return value
        kind = None if len(value) <= _SHORTEST else kind_of(value)
        label = self.label(of_token(kind) if kind else VALUE, value)
        for part in () if kind else _parts(value):
            self.learn(part)
        return label

    def learn(self, value: str) -> None:
        """Learn a secret without replacing it here."""
        if not is_placeholder(value):
            self._known.label(VALUE, value)

    def label(self, category: Category, value: str) -> str:
        """Return the label of a value of a category."""
        label = self._known.label(category, value)
        self._found(category, label)
        return label

    def argv(self, words: list[str]) -> list[str]:
        """Return a scrubbed command line."""
        return [self.text(_unwrapped(word)) for word in self._heads.argv(words)]

    def field(self, name: str, value: str) -> str:
        """Return the scrubbed value of a field of a head; `target` and `reason` are fields too."""
        if name.lower() == "mcp-session-id":
            return value if is_placeholder(value) else self.label(SESSION, value)
        if is_word_of(_STANDARD_FIELDS.get(name.lower(), ""), value):  # as in the message
            return value
        if value.startswith(_BASE64[0]) and value.endswith(_BASE64[1]):
            return self._encoded_field(name, value)
        head = {name: value} if name in ("target", "reason") else {"headers": [[name, value]]}
        clean = _Heads(self._wrapped).head(head)  # a new redactor each time: one that remembers would skip a place
        value = clean["headers"][0][1] if "headers" in clean else clean[name]
        return self.text(_unwrapped(value))

    def _encoded_field(self, name: str, value: str) -> str:
        """Return a scrubbed value in base64 (2026-07-28, transports: Mcp-Name, Mcp-Param-*)."""
        try:
            plain = b64decode(value[len(_BASE64[0]) : -len(_BASE64[1])]).decode()
        except ValueError:
            return self.text(value)
        clean = self.field(name, plain)
        if clean == plain:
            return value
        return clean if clean.isascii() else _BASE64[0] + b64encode(clean.encode()).decode() + _BASE64[1]

    def _counted(self, category: Category, label: str) -> str:
        self._found(category, label)
        return label

    def _match(self, labels: Sequence[tuple[int, int]], found: re.Match[str]) -> str:
        """Return the label of a match of --replace; what is part of a label stays."""
        start, end = found.span()
        inside = start == end or any(first <= start and end <= last for first, last in labels)
        return found[0] if inside else self.label(MATCH, found[0])

    def _wrapped(self, value: str) -> str:
        """Return the label in the form of a recording's mark, which later searches skip."""
        if is_placeholder(value):
            return value
        return f"«redacted:\ufdd0{self.secret(value)}»"

    def _prose(self, name: str, value: str) -> str:
        """Return the replacement of the words after a name in a text: the first one may be a secret."""
        word = re.match(r"[\"'`]?([^\s\"'`,;]+)", value)
        secret = word[1].rstrip(".)]}") if word else ""
        line = value.partition("\n")[0].strip("\"'` \r")
        alone = _PASSWORD.search(name) and secret == line != name and len(secret) >= _LONG_WORD
        if word is None or not (looks_secret_below(name, secret) or (alone and not is_placeholder(secret))):
            return value
        return value[: word.start(1)] + self._wrapped(secret) + value[word.start(1) + len(secret) :]

    def _secrets(self, text: str, *, form: bool) -> str:
        if "\ufdd0" in text:
            text = text.replace("\ufdd0", "\ufffd")
        start = "&" if form else ""
        text = redacted_fields(start + text, self._wrapped, oauth=False)
        text = redacted_fields(
            text, lambda value: self._wrapped(value) if looks_secret(value) or looks_random(value) else value
        )
        text = redacted_tables(text, self._wrapped)
        text = _PHRASE.sub(lambda it: it["before"] + self._wrapped(it["value"]), text)
        text = redacted_text(text, self._wrapped, self._prose)[len(start) :]
        if "</" in text:
            text = _XML.sub(self._element, text)
        text = _BESIDE.sub(self._beside, text)
        return _unwrapped(text)

    def _element(self, found: re.Match[str]) -> str:
        """Return an XML element, with its value replaced if its name is that of a secret."""
        value = found["value"]
        if "redacted:" in value or not is_secret_name(found["name"]) or not looks_secret(value):
            return found[0]
        return f"<{found['name']}>{self._wrapped(value)}"

    def _beside(self, found: re.Match[str]) -> str:
        value = found["value"].rstrip(".!")
        looks = looks_secret if _LINK.search(found[0][: found.start("value") - found.start()]) else looks_random
        if "redacted" in value or is_placeholder(value) or not looks(value):
            return found[0]
        start = found.start("value") - found.start()
        return found[0][:start] + self._wrapped(value) + found[0][start + len(value) :]

    def _sessions(self, text: str) -> str:
        if "ession" not in text:
            return text
        for pattern in (_SESSION, _SESSION_HEADER):
            text = pattern.sub(
                lambda it: it[1] + (it[2] if is_placeholder(it[2]) else self.label(SESSION, it[2])), text
            )
        return text

    def _personal(self, text: str) -> str:
        if self._only_secrets:
            return text
        if "@" in text or "%40" in text:
            text = _EMAIL.sub(self._email, text)
        lower = text.lower()
        if _has_any(lower, _PLACES):
            text = _HOME.sub(self._home, text)
        return text

    def _email(self, found: re.Match[str]) -> str:
        address = found[0].replace("%40", "@")
        before = found.string[max(found.start() - _LONGEST_USER, 0) : found.start()]
        if address.startswith("git@") or _USER_OF_URL.search(before):
            return found[0]
        return self.label(EMAIL, address).replace("@", found["at"])

    def _home(self, found: re.Match[str]) -> str:
        user = unquote(found["user"])
        bare = user.rstrip(".")
        if not is_personal(bare):
            return found[0]
        return found["before"] + self.label(HOME, bare) + user[len(bare) :]


def _parts(value: str) -> Iterator[str]:
    """Yield the secrets inside a secret: in the value of a `Cookie`, and in `Basic` credentials (RFC 7617)."""
    if "=" in value[1:-2]:
        for cookie in _COOKIE.finditer(value):
            if looks_secret(cookie[1]):
                yield cookie[1]
    elif _BASIC.fullmatch(value):
        with suppress(ValueError):
            _, colon, password = b64decode(value).decode().partition(":")
            if colon and looks_secret(password):
                yield password


def _gap(colours: re.Match[str]) -> str:
    """Return the replacement of colours: a space between words."""
    text, end = colours.string, colours.end()
    before, after = text[max(colours.start() - 1, 0) : colours.start()], text[end : end + 1]
    return " " if before.isalnum() and after.isalnum() else ""


_COOKIE = re.compile(r"(?:\A|; ?)[\w.-]{1,64}=([^;,\s\"]{6,4096})")
_BASIC = re.compile(r"[A-Za-z0-9+/]{8,1024}={0,2}")
_USER_OF_URL = re.compile(r"//[^\s/?#]*\Z")
_PASSWORD = re.compile(r"(?i)(?:passw(?:or)?d|pwd|passphrase)\d*$")
_LONG_WORD = 8  # minimum length of a word that may be a password if nothing follows it
_BASE64 = ("=?base64?", "?=")
_STANDARD_FIELDS = {"mcp-method": "method", "mcp-protocol-version": "protocolVersion"}
"""Fields of heads with a value of the message: the member that has it."""
_SHORTEST = 9  # characters of a text without a suspicious word that may contain a token


def _unwrapped(text: str) -> str:
    return _WRAPPED.sub(r"\1", text) if "«redacted:\ufdd0" in text else text


_PEM_BEGINS = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?-----(?:\\[nr]|\W){0,16}$")
_PEM_BODY = re.compile(r"[\w+/=:,. -]{0,200}\s*")
_PEM_RUN = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}|[A-Za-z0-9+/]{2,}={1,2}(?![\w=])")
_PEM_ENDS = re.compile(r"-----END [A-Z0-9 ]{0,40}-----")
_PEM = Category("scrub/secret", "private key (PEM)", "redacted-private-key-line-")
_PEM_LINES = 200


class KeyLines:
    """The lines of one text or channel; some of them may belong to a key."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._left = 0  # lines that the key may still have

    @property
    def busy(self) -> bool:
        """Whether the next line may belong to a key."""
        return self._left > 0

    def line(self, text: str) -> str | None:
        """Return a scrubbed line of a key; None for another line, also one between those of a key."""
        if text.lstrip().startswith(("{", "[{")):
            return None
        plain = _COLOUR.sub("", text)
        if not self._left:
            self._left = _PEM_LINES if _PEM_BEGINS.search(plain) else 0
            return None
        self._left = 0 if _PEM_ENDS.search(plain) else self._left - 1
        if not self._left:
            return None
        if _PEM_BODY.fullmatch(plain):
            body = plain.strip()
            return text if is_placeholder(body) else plain.replace(body, self._texts.label(_PEM, body))
        if not _PEM_RUN.search(plain):
            return None
        clean = _PEM_RUN.sub(lambda it: self._texts.label(_PEM, it[0]), plain)
        return self._texts.text(clean)  # what is around the key may hold other secrets


def without_keys(text: str, texts: Texts) -> str:
    """Return a scrubbed text of several lines without the keys that have no form as a whole."""
    if "PRIVATE KEY" not in text or "\n" not in text:
        return text
    key = KeyLines(texts)
    return "\n".join(line if (new := key.line(line)) is None else new for line in text.split("\n"))
