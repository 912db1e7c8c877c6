"""Secrets out of what is written to a capture: command lines, URLs, HTTP heads, forms, the bodies of OAuth endpoints.

A secret becomes `«redacted:8hex»`, eight hex digits of a hash keyed with `~/.mcpspy/key`, so that equal secrets look
equal and nobody can guess back. What counts as a secret: the value of a name that `is_secret_name` knows, the password
of a URL, and words in the shape of well-known tokens. In URLs, forms and OAuth bodies also what OAuth alone calls so
(`code`, `code_verifier`, `assertion`). Session ids stay: pairing and replay need them, and they authenticate nobody.

Imported on the `wrap` path: `re` (9 ms) is imported only when a word could hold a secret.
"""

import os

from mcpspy.capture.place import home, make_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_HEADERS = frozenset(("authorization", "proxyauthorization", "cookie", "setcookie", "xapikey"))
_ENDINGS = "token secret password passwd pwd apikey auth credential signature accesskey privatekey".split()
_OAUTH = frozenset("code codeverifier assertion clientassertion devicecode samlresponse".split())
_OAUTH_ENDPOINTS = frozenset(
    "token register registration introspect introspection revoke revocation par"
    " access_token device_authorization".split()
)
_FORMS = ("x-www-form-urlencoded", "multipart/form-data")
_SESSION_HEADERS = frozenset(("mcp-session-id", "last-event-id"))
_REMEMBERED = 4096  # header values, which repeat from request to request
LARGEST_BODY = 65536
"""Bytes of an OAuth body that is parsed; a larger one is withheld whole."""
_SHAPES = (
    "sk-",
    "k_live_",
    "k_test_",
    "gh",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "eyJ",
)  # parts of the shapes below


def is_secret_name(name: str) -> bool:
    """Whether the value of a header, query key, form key, JSON key or option called `name` is a secret."""
    plain = _plain(name)
    return plain in _HEADERS or plain.endswith(tuple(_ENDINGS))


def is_oauth_endpoint(target: str) -> bool:
    """Whether a request's target is, by its last segment, where OAuth secrets are exchanged as bodies."""
    path = target.partition("?")[0].rstrip("/")
    return path.rpartition("/")[2].lower() in _OAUTH_ENDPOINTS


def is_form(media_type: str) -> bool:
    """Whether a body of this `Content-Type` is a form that was filled in."""
    return any(kind in media_type.lower() for kind in _FORMS)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))  # also `Authorization ` and `token[]`


def _is_oauth_secret(name: str) -> bool:
    return _plain(name) in _OAUTH or is_secret_name(name)


class Redactor:
    """Replaces secrets; the key is read, or made, at the first one."""

    def __init__(self) -> None:
        self._key: bytes | None = None
        self._headers: dict[tuple[str, str], str] = {}

    def mark(self, secret: str) -> str:
        """What stands in for `secret`."""
        from _blake2 import blake2b  # `hashlib` takes 3 ms

        if self._key is None:
            self._key = _key()
        return "«redacted:" + blake2b(secret.encode("utf-8", "replace"), key=self._key, digest_size=4).hexdigest() + "»"

    def argv(self, words: list[str]) -> list[str]:
        """A command line, word by word: `--k v`, `--k=v`, `K=v`, `Name: v`, URLs, JSON values, token shapes."""
        clean: list[str] = []
        secret_next = False
        for word in words:
            if secret_next and not (word.startswith("--") and word[2:3] != "-"):
                clean.append(self.mark(word))
                secret_next = False
                continue
            secret_next = word.startswith("-") and "=" not in word and is_secret_name(word.lstrip("-"))
            clean.append(self._text(word))
        return clean

    def url(self, url: str) -> str:
        """A URL or a request's target: passwords, the values of secret query keys, token shapes."""
        for mark in "?#":
            before, found, query = url.partition(mark)
            if found:
                url = before + found + self._form(query)
        return self._text(url)

    def head(self, head: "dict[str, Any]") -> "dict[str, Any]":
        """An HTTP head as `relay.http` describes one, whole or in part: its `target`, `reason` and `headers`."""
        clean = dict(head)
        if "reason" in head:
            clean["reason"] = self.header("reason", head["reason"])
        if "target" in head:
            clean["target"] = self.url(head["target"])
        if "headers" in head:
            clean["headers"] = [[name, self.header(name, value)] for name, value in head["headers"]]
        return clean

    def header(self, name: str, value: str) -> str:
        """The value of a header; of an Authorization the scheme stays."""
        known = self._headers.get((name, value))
        if known is None:
            if len(self._headers) >= _REMEMBERED:
                self._headers.clear()
            known = self._headers[name, value] = self._header(name, value)
        return known

    def body(self, raw: bytes) -> bytes:
        """A whole body of an OAuth endpoint, a form or a page: JSON, fields, HTML, or other text."""
        import json

        try:
            value = json.loads(raw.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            text = raw.decode("utf-8", "surrogateescape")  # a part may be a file of any bytes
            start = text.lstrip("\ufeff \t\r\n")[:2]
            clean = self._parts(text) if start == "--" else self._page(text) if start[:1] == "<" else self._form(text)
            return self._text(clean).encode("utf-8", "surrogateescape")
        return json.dumps(self._json(value), ensure_ascii=False).encode("utf-8", "replace")

    def _header(self, name: str, value: str) -> str:
        if name.lower() in _SESSION_HEADERS or not value:
            return value
        if not is_secret_name(name):
            return self.url(value)
        scheme, _, credentials = value.partition(" ")
        if credentials and _plain(name).endswith("authorization"):
            return f"{scheme} {self.mark(credentials)}"
        return self.mark(value)

    def _form(self, form: str) -> str:
        """The keys of a query or a form (WHATWG URL, 5.1), each other character as it was."""
        if "=" not in form:
            return form
        from urllib.parse import unquote_plus

        fields = []
        for field in form.split("&"):
            name, equals, value = field.partition("=")
            if value and "«redacted:" not in value and _is_oauth_secret(unquote_plus(name)):
                value = self.mark(unquote_plus(value))  # as it reads elsewhere, so that equal secrets look equal
            fields.append(name + equals + value)
        return "&".join(fields)

    def _parts(self, form: str) -> str:
        """The fields of a form in parts (RFC 7578)."""
        import re

        delimiter = form.split(maxsplit=1)[0]
        parts = form.split(delimiter)
        for place, part in enumerate(parts):
            blank = re.search(r"\r?\n\r?\n", part)
            name = re.search(r'(?i)[;\s]name="?([^";\r\n]*)', part[: blank.start()]) if blank else None
            value = part[blank.end() :].rstrip("\r\n") if blank else ""
            if blank and name and value and _is_oauth_secret(name[1]):
                parts[place] = part[: blank.end()] + self.mark(value) + part[blank.end() + len(value) :]
        return delimiter.join(parts)

    def _page(self, page: str) -> str:
        """A page of HTML: the fields of its forms, the `meta` of such names, and the queries of its URLs."""
        import re
        from html import unescape
        from urllib.parse import unquote_plus

        def tag(match: re.Match[str]) -> str:
            name = re.search(r"""(?i)\sname\s*=\s*["']?([^"'\s>]*)""", match[0])
            return re.sub(_ATTRIBUTE, value, match[0]) if name and _is_oauth_secret(name[1]) else match[0]

        def value(match: re.Match[str]) -> str:
            return match["before"] + self.mark(unescape(match["value"]))

        def query(match: re.Match[str]) -> str:
            known = "«redacted:" in match["value"] or not _is_oauth_secret(unquote_plus(match["name"]))
            return match[0] if known else match["before"] + self.mark(unquote_plus(match["value"]))

        return re.sub(_QUERY, query, re.sub(r"<[A-Za-z][^<>]*>", tag, page))

    def _json(self, value: "Any") -> "Any":
        if isinstance(value, list):
            return [self._json(element) for element in value]
        if not isinstance(value, dict):
            return value
        return {
            key: self.mark(member)
            if isinstance(member, str) and member and _is_oauth_secret(key)
            else self._json(member)
            for key, member in value.items()
        }

    def _text(self, text: str) -> str:
        suspect = any(mark in text for mark in "=:{ ") or any(shape in text for shape in _SHAPES)
        return self._word(text) if suspect else text

    def _word(self, word: str) -> str:
        import re

        def value(match: re.Match[str]) -> str:
            named = match["name"] is None or is_secret_name(match["name"])
            return match["before"] + self.mark(match["value"]) if named and match["value"] else match[0]

        for pattern in _PATTERNS:
            word = re.sub(pattern, value, word)
        return word


class Withheld(Redactor):
    """Replaces secrets in what is printed: it makes no key, for nothing is compared later."""

    def mark(self, secret: str) -> str:  # noqa: ARG002 (as its base has it)
        """What stands in for any secret."""
        return "«withheld»"


def shown(url: str) -> str:
    """What was meant to be a URL, or `NAME=URL`, for a message: what stands before its last `@` may be a password."""
    import re

    clean = re.sub(r"(?s)^([\w.-]+=)?(\w+://)?.*@", r"\1\2«withheld»@", url)
    return Withheld().url(clean)


# A name that is secret for sure, for the patterns that look inside a word and must not eat what is no secret.
_NAME = (
    r"(?P<name>[\w.-]{0,64}?(?i:token|secret|password|passwd|pwd|api[-_.]?key|auth|credential|signature|access[-_.]?key"
    r"|private[-_.]?key|authorization|cookie))"
)
_VALUE = r"""(?P<value>(?!«redacted:)(?:"[^"]*"|'[^']*'|[^\s;&|'"]+))"""

# Each has the groups before, name (may be unmatched) and value; each takes time linear in the word, whatever is in it.
_PATTERNS = (
    # the password of a URL (RFC 3986, 3.2.1); up to the last @ of the authority, for passwords that hold one
    r"(?P<before>(?<![\w+.-])[A-Za-z][\w+.-]{0,30}://[^/?#\s:@]*:)(?P<name>(?!))?(?P<value>[^/?#\s]*)(?=@)",
    # the member of a JSON object: a string, a string inside a string, anything else
    r'(?P<before>"(?P<name>[^"\\]{1,64})"\s*:\s*")(?P<value>(?:[^"\\]|\\.)*)',
    r'(?P<before>\\"(?P<name>[^"\\]{1,64})\\"\s*:\s*\\")(?P<value>[^"\\]*)',
    r'(?P<before>"(?P<name>[^"\\]{1,64})"\s*:\s*)(?P<value>[^\s",}\]\[{]+)',
    # a query or form key
    r"(?P<before>[?&#](?P<name>[^=&#\s]{1,64})=)(?P<value>(?!«redacted:)[^&#\s]*)",
    # `K=v`, `--k=v`; `--env=K=v`; `Name: v`, as `--header` takes it, also `-HName: v`
    r"(?s)(?P<before>^(?P<name>[\w.-]+)=)(?P<value>(?!«redacted:).*)\Z",
    r"(?s)(?P<before>^-[\w.-]+=(?P<name>[\w.-]+)=)(?P<value>(?!«redacted:).*)\Z",
    r"(?s)(?P<before>^(?:-H|--?[\w.-]+=)?(?P<name>[\w.-]+):\s*)(?P<value>(?!//|«redacted:).*)\Z",
    # the same inside a word, such as the command line of a shell or a connection string
    rf"(?P<before>(?<=[\s;&|(,'\"]){_NAME}=){_VALUE}",
    rf"(?P<before>(?:^|(?<=[\s'\"]))--?{_NAME}\s+){_VALUE}",
    rf"(?P<before>(?<=[\s;'\"]){_NAME}:\s*)(?P<value>(?!//|«redacted:)[^'\"]+)",
    # tokens in a known shape, wherever they begin
    (
        r"(?P<before>(?<![\w-]))(?P<name>(?!))?(?P<value>(?:sk-|[sr]k_(?:live|test)_|gh[pousr]_|github_pat_|glpat-"
        r"|xox[a-z]-|AKIA)[\w-]+|eyJ[\w-]+\.[\w-]+\.[\w-]*)"
    ),
)


# What a field of a page holds: `value`, of a `meta` its `content`; and a key of a URL on a page.
_ATTRIBUTE = r"""(?i)(?P<before>\s(?:value|content)\s*=\s*(?P<quote>["'])?)(?P<value>(?(quote)[^"'>]+|[^\s"'>]+))"""
_QUERY = r"""(?P<before>[?&#;](?P<name>[^=&#;\s"'<>]{1,64})=)(?P<value>[^&#;\s"'<>]+)"""


def _key() -> bytes:
    """The user's key, made at first use; where it can be neither read nor made, one for this process."""
    path = os.path.join(home(), "key")
    for _ in range(2):
        try:
            with open(path, "rb") as file:
                key = file.read(64)
            if len(key) == 32:
                return key
        except OSError:
            pass
        try:
            _make_key(path)
        except OSError:
            break
    return os.urandom(32)


def _make_key(path: str) -> None:
    """Put a whole key at `path` at once: several servers may start in the same moment."""
    make_directory(os.path.dirname(path))
    draft = f"{path}-{os.getpid()}-{os.urandom(4).hex()}"
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(fd, os.urandom(32))
    finally:
        os.close(fd)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(draft)
