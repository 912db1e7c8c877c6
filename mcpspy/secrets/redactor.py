"""Redacts what is written to a capture: command lines, URLs, HTTP heads, forms, OAuth bodies, logins.

A secret becomes `«redacted:8hex»`: eight hex digits of a hash keyed with the user's key, which is 32 random bytes in
`~/.mcpspy/key`, readable only by the user. Equal secrets look equal, and nobody can guess the secret.
`mcpspy.secrets.patterns` defines what counts as a secret. Session ids stay, because pairing and replay need them, and
they authenticate nobody. Placeholders stay (`mcpspy.secrets.tokens`): they are no secrets, and the user has to see
them.

Imported on the `wrap` path: `re` (9 ms) is imported only if a word may contain a secret.
"""

from mcpspy.capture.user_key import user_key
from mcpspy.secrets.patterns import (
    KINDS,
    LOGIN_OPTION,
    LOGIN_PROGRAMS,
    ORACLE_PROGRAMS,
    OTHER_OPTIONS,
    PASSWORD_OPTIONS,
    SCHEMES,
    is_port,
    is_run,
    is_secret_name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


__all__ = [
    "LARGEST_BODY",
    "Redactor",
    "Withheld",
    "is_form",
    "is_oauth_endpoint",
    "is_secret_name",
    "shown",
    "unquoted",
    "untitled",
    "withheld",
]

_OAUTH_ENDPOINTS = frozenset(
    "token tokens register registration introspect introspection revoke revocation par"
    " access_token device_authorization device_code devicecode".split()
)
_FORMS = ("x-www-form-urlencoded", "multipart/form-data", "html")
_SUBPROTOCOLS = frozenset("mcp bearer json jsonrpc graphql-ws graphql-transport-ws".split())
_SESSION_HEADERS = frozenset(("mcp-session-id", "last-event-id"))
_USER_OPTIONS = frozenset(("-u", "-U", "--user", "--proxy-user"))
_LITERALS = [literal for kind in KINDS for literal in kind.literals]
_AUTH_SCHEMES = frozenset(
    (
        *SCHEMES,
        *"digest dpop gnap hoba mutual negotiate ntlm oauth privatetoken vapid scram-sha-1 scram-sha-256".split(),
        *"token apikey api-key key jwt aws4-hmac-sha256 sharedkey sharedaccesssignature".split(),
    )
)
"""Words before credentials that are shown: the registered schemes, and others in use."""
_TITLED, _QUOTE = ', title "', '"'
_REMEMBERED = 4096  # fields and targets that are cached: they repeat in every request
_LONGEST_REMEMBERED = 1024  # characters of a name and a value
_FIELD = 32  # the cost of a field of a head in addition to its characters
_BEFORE = 16  # words before a program that tell whether it is run
LARGEST_BODY = 65536
"""The largest body that is parsed, in bytes. A larger one is withheld completely."""
LARGEST_HEAD = 32768
"""The characters of names and values of one head that are searched. Values beyond are withheld (A-01)."""


def is_oauth_endpoint(target: str) -> bool:
    """Return whether the last segment of a request's target is that of an endpoint for OAuth secrets in bodies."""
    path = target.partition("?")[0]
    if "%" in path:
        from urllib.parse import unquote

        path = unquote(path)
    parent, _, last = path.rstrip("/").lower().rpartition("/")
    last = last.partition(";")[0].partition(".")[0]  # also `/token.php`
    return last in _OAUTH_ENDPOINTS or (last == "code" and parent.endswith("/device"))


def is_form(media_type: str) -> bool:
    """Return whether a body of this `Content-Type` is a submitted form, or a page, which may contain one."""
    return any(kind in media_type.lower() for kind in _FORMS)


def withheld(size: int, title: str = "") -> bytes:
    """Return the replacement of `size` bytes that are not recorded; `title` is that of a page, without secrets."""
    return f"«withheld: {size} bytes{_TITLED if title else ''}{title}{_QUOTE if title else ''}»".encode()


def untitled(raw: bytes) -> bytes:
    """Return the replacement of a body without the title of its page; other bytes as they are."""
    size, titled, _ = raw.partition(_TITLED.encode())
    return size + "»".encode() if titled and raw.startswith("«withheld: ".encode()) else raw


class Redactor:
    """Replaces secrets. The key is read, or created, when the first secret is found."""

    def __init__(self) -> None:
        self._key: bytes | None = None
        self._fields: dict[tuple[str, str], tuple[str, str]] = {}

    def mark(self, secret: str) -> str:
        """Return the replacement of `secret`; a placeholder, or what is a replacement already, stays as it is."""
        from _blake2 import blake2b  # the import of `hashlib` takes 3 ms

        from mcpspy.secrets.tokens import placeholder

        if placeholder(secret) or (secret.startswith("«redacted:") and secret.endswith("»")):
            return secret
        if self._key is None:
            self._key = user_key()
        return "«redacted:" + blake2b(secret.encode("utf-8", "replace"), key=self._key, digest_size=4).hexdigest() + "»"

    def argv(self, words: list[str]) -> list[str]:
        """Redact a command line, word by word: `--k v`, `--k=v`, `K=v`, `Name: v`, `-u user:v`, URLs, JSON, tokens.

        After the name of some programs, also their own options: `mysql -pPASSWORD`.
        """
        clean: list[str] = []
        secret_next = False
        option = password = ""
        separate = False  # whether the password may be the word after its option
        oracle = login = False
        run: bool | None = False  # whether the program of `password` is run, as far as it is known
        for place, word in enumerate(words):
            if secret_next and word.lower() in SCHEMES:  # `--header Authorization: Bearer x`, without quotes
                clean.append(word)
                continue
            if secret_next and not (word.startswith("--") and word[2:3] != "-"):
                port = option == password and not run and is_port(word)
                clean.append(word if port else self.mark(word))
                secret_next = False
                continue
            folder, slash, program = word.replace("\\", "/").removesuffix(".exe").rpartition("/")
            if program in PASSWORD_OPTIONS:
                if (now := is_run(words[max(place - _BEFORE, 0) : place], folder + slash)) is not False:
                    run = now
                    password, separate = PASSWORD_OPTIONS[program]
            elif word == "login" and login:
                password, separate, run = *LOGIN_OPTION, True
            login = login or program in LOGIN_PROGRAMS
            oracle = oracle or program in ORACLE_PROGRAMS
            if password and word.startswith(password) and _has_value(word, password, run=run):
                clean.append(password + self.mark(word[len(password) :]))
            elif oracle and program not in ORACLE_PROGRAMS and _is_oracle_login(word):
                clean.append(self._oracle(word))
                oracle = False
            else:
                clean.append(self._user(word) if option in _USER_OPTIONS else self._text(word))
            secret_next = is_secret_name(_name(word)) or word.lower() in SCHEMES or (separate and word == password)
            option = word
        return clean

    def _oracle(self, word: str) -> str:
        """Redact a word `user/password@database`."""
        login, at, database = word.rpartition("@") if "@" in word else (word, "", "")
        user, _, password = login.partition("/")
        return f"{user}/{self.mark(password)}{at}{database}"

    def url(self, url: str) -> str:
        """Redact a URL, a request's target, or a text with URLs: passwords, values of secret query keys, tokens."""
        from mcpspy.secrets.text import redacted_url

        return redacted_url(url, self.mark)

    def head(self, head: "dict[str, Any]") -> "dict[str, Any]":
        """Redact an HTTP head in the form of `relay.http`, whole or in part: `target`, `reason` and `headers`.

        Only `LARGEST_HEAD` characters are searched, so that no head blocks an event loop.
        """
        clean = dict(head)
        left = LARGEST_HEAD
        for key in ("reason", "target"):
            if key in head:
                left -= len(head[key])
                clean[key] = self._field(key, head[key])[1] if left >= 0 else withheld(len(head[key])).decode()
        if "headers" in head:
            clean["headers"] = self._headers(head["headers"], left)
        return clean

    def _headers(self, headers: "list[Any]", left: int) -> "list[Any]":
        """Redact the fields of a head. At most `left` characters of them are searched."""
        if left >= len(headers) * (_LONGEST_REMEMBERED + _FIELD):  # the fast path: all fields are cached
            fields: list[Any] = list(map(self._fields.get, map(tuple, headers)))
            if None not in fields:
                return fields
        fields = []
        for name, value in headers:
            if value is None:  # in `sent`: a field that was removed
                fields.append((name, None))
                continue
            cost = len(name) + len(value) + _FIELD
            if cost <= left or (len(name) < 20 and name.lower() in _SESSION_HEADERS):
                left -= cost
                fields.append(self._field(name, value))
            else:
                fields.append((name, f"«withheld: {len(value)} bytes»"))
        return fields

    def _field(self, name: str, value: str) -> tuple[str, str]:
        """Redact a field of a head. The scheme of an Authorization stays."""
        field = self._fields.get((name, value))
        if field is None:
            field = name, self._header(name, value)
            if len(name) + len(value) <= _LONGEST_REMEMBERED:
                if len(self._fields) >= _REMEMBERED:
                    self._fields.clear()
                self._fields[name, value] = field
        return field

    def body(self, raw: bytes) -> bytes:
        """Redact a whole body of an OAuth endpoint, a form or a page.

        If it cannot be parsed, keep only its size, and the title of a page.
        """
        from mcpspy.secrets.body import oauth_body

        clean = oauth_body(raw, self.mark)
        return withheld(len(raw), self.title(raw)) if clean is None else clean

    def title(self, raw: bytes) -> str:
        """Return the title of a page that is withheld, unless it may hold a secret."""
        from mcpspy.secrets.body import page_title

        return page_title(raw, self.mark)

    def body_elsewhere(self, raw: bytes) -> bytes:
        """Redact a whole body of at most `LARGEST_BODY` bytes from anywhere else.

        Return `raw` itself if it has no secret. A JSON-RPC message is never changed.
        """
        from mcpspy.secrets.body import login_body

        clean = login_body(raw, self.mark)
        return withheld(len(raw)) if clean is None else clean

    def _header(self, name: str, value: str) -> str:
        lower = name.lower()
        if lower in _SESSION_HEADERS or not value:
            return value
        if "@" in value and lower.endswith(("host", "authority")):
            user, _, host = value.rpartition("@")
            return f"{self.mark(user)}@{host}"
        if lower == "sec-websocket-protocol":  # browsers can send a token in no other header
            from mcpspy.secrets.text import ITEM

            return ITEM.sub(lambda it: it[0] if it[0].lower() in _SUBPROTOCOLS else self.mark(it[0]), value)
        if not is_secret_name(name):
            return self.url(value)
        scheme, _, credentials = value.partition(" ")
        if credentials.strip() and scheme.lower() in _AUTH_SCHEMES:
            return f"{scheme} {self.mark(credentials)}"
        if scheme.lower() in SCHEMES:  # nothing follows
            return value
        return self.mark(value)

    def _user(self, word: str) -> str:
        """Redact the value of `-u`: `user:password`, unless it is a numeric user and group, or a URL."""
        user, colon, password = word.partition(":")
        if not colon or (user + password).isdigit() or password.startswith(("/", "\\")):
            return self._text(word)
        return f"{user}:{self.mark(password)}" if password else f"{self.mark(user)}:"

    def _text(self, text: str) -> str:
        if not _suspect(text):
            return text
        from mcpspy.secrets.text import redacted_fields, redacted_text

        clean = redacted_text(text, self.mark)
        return redacted_fields(clean, self.mark, oauth=False) if "%" in clean else clean


def _has_value(word: str, option: str, *, run: bool | None) -> bool:
    """Return whether a word is an option for a password with its value: `-pPASSWORD`."""
    value = word[len(option) :]
    return bool(value) and word.partition("=")[0].lower() not in OTHER_OPTIONS and (run is True or not is_port(value))


def _is_oracle_login(word: str) -> bool:
    """Return whether a word is `user/password` or `user/password@database`, not a path or a URL."""
    user, slash, rest = word.partition("/")
    password = rest.partition("@")[0]
    plain = user.replace("_", "").replace("$", "").replace("#", "")
    return bool(slash and password) and plain.isalnum() and "/" not in password


def _name(word: str) -> str:
    """Return the name of an option or header whose value is the next word, or an empty string."""
    if word.startswith("-") and "=" not in word and ":" not in word:
        return word.lstrip("-")
    name = word[:-1]
    return name if word.endswith(":") and name.replace("-", "").replace("_", "").isalnum() else ""


def _suspect(text: str) -> bool:
    """Return whether a text may contain a secret. Most words of command lines cannot."""
    return any(mark in text for mark in "=:{ %") or any(one in text for one in _LITERALS)


ELLIPSIS = "…"


class Withheld(Redactor):
    """Replaces secrets in printed text. It needs no key, because the replacements are never compared."""

    def mark(self, secret: str) -> str:  # noqa: ARG002 (as its base has it)
        """Return the replacement of any secret."""
        return "«withheld»"


class Shortened(Withheld):
    """Redacts the command line of a client: a text that may contain a secret is `…`, and so is such a value.

    What the words mean beyond their names is not examined, because that takes the import of regular expressions, and
    the frames that pass meanwhile would wait for it (V-02).
    """

    def _text(self, text: str) -> str:
        if not _suspect(text):
            return text
        name, equals, _ = text.partition("=")
        return f"{name}={ELLIPSIS}" if equals and not _suspect(name) else ELLIPSIS


def shown(url: str) -> str:
    """Return what was meant to be a URL or `NAME=URL`, for a message. Text before its last `@` may be a password."""
    import re

    clean = re.sub(r"(?s)^([\w.-]+=)?(\w+://)?.*@", r"\1\2«withheld»@", url)
    return Withheld().url(clean)


def unquoted(message: str) -> str:
    """Return a message of another program without its quotations of a peer, which may contain secrets."""
    import re

    return re.sub(_QUOTATION, "«withheld»", message)


_QUOTATION = r"""(?<!\w)b?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""  # a `repr` of bytes or text
