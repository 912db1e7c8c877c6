"""Secrets out of what is written to a capture: command lines, URLs, HTTP heads, forms, the bodies of OAuth endpoints.

A secret becomes `«redacted:8hex»`, eight hex digits of a hash keyed with `~/.mcpspy/key`, so that equal secrets look
equal and nobody can guess back. What counts as a secret: the value of a name that `is_secret_name` knows, the password
of a URL, and words in the shape of well-known tokens. In URLs, forms and OAuth bodies also what OAuth alone calls so
(`code`, `code_verifier`, `assertion`). Of a body only an object of JSON and a form are taken apart; any other that may
hold secrets is withheld whole. Session ids stay: pairing and replay need them, and they authenticate nobody.

Imported on the `wrap` path: `re` (9 ms) is imported only when a word could hold a secret.
"""

import os

from mcpspy.capture.location import home, make_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ENDINGS = tuple(
    "token secret password passwd pwd apikey auth credential signature accesskey privatekey authorization cookie"
    " authkey secretkey subscriptionkey jwt".split()
)
_OAUTH = frozenset("code codeverifier assertion clientassertion devicecode samlresponse sig otp pass".split())
_OAUTH_ENDPOINTS = frozenset(
    "token tokens register registration introspect introspection revoke revocation par"
    " access_token device_authorization device_code devicecode".split()
)
_FORMS = ("x-www-form-urlencoded", "multipart/form-data", "html")
_SUBPROTOCOLS = frozenset("mcp bearer json jsonrpc graphql-ws graphql-transport-ws".split())
_SESSION_HEADERS = frozenset(("mcp-session-id", "last-event-id"))
_REMEMBERED = 4096  # header values and targets, which repeat from request to request
LARGEST_BODY = 65536
"""Bytes of a body that is taken apart; a larger one is withheld whole."""
_SHAPES = (
    "sk-",
    "k_live_",
    "k_test_",
    "gh",
    "github_pat_",
    "glpat-",
    "xox",
    "AKIA",
    "AIza",
    "eyJ",
)  # parts of the shapes below


def is_secret_name(name: str) -> bool:
    """Whether the value of a header, query key, form key, JSON key or option called `name` is a secret."""
    return _plain(name).endswith(_ENDINGS)


def is_oauth_endpoint(target: str) -> bool:
    """Whether a request's target is, by its last segment, where OAuth secrets are exchanged as bodies."""
    parent, _, last = target.partition("?")[0].rstrip("/").lower().rpartition("/")
    last = last.partition(";")[0]
    return last in _OAUTH_ENDPOINTS or (last == "code" and parent.endswith("/device"))


def is_form(media_type: str) -> bool:
    """Whether a body of this `Content-Type` is a form that was filled in, or a page, which may hold one."""
    return any(kind in media_type.lower() for kind in _FORMS)


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))  # also `Authorization ` and `token[]`


def _is_oauth_secret(name: str) -> bool:
    return any(is_secret_name(part) or _plain(part) in _OAUTH for part in name.split("["))  # `code[0]`, `login[code]`


def _is_secret_member(key: str, value: object) -> bool:
    return is_secret_name(key) or (_is_oauth_secret(key) and not isinstance(value, int))  # the code of an error


def withheld(size: int) -> bytes:
    """What stands in for a body of `size` bytes that is not taken apart."""
    return f"«withheld: {size} bytes»".encode()


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
        """A URL, a request's target, or a text with URLs: passwords, the values of secret query keys, token shapes."""
        return self._text(self._fields(url))

    def head(self, head: "dict[str, Any]") -> "dict[str, Any]":
        """An HTTP head as `relay.http` describes one, whole or in part: its `target`, `reason` and `headers`."""
        clean = dict(head)
        if "reason" in head:
            clean["reason"] = self.header("reason", head["reason"])
        if "target" in head:
            clean["target"] = self.header("target", head["target"])
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
        """A whole body of an OAuth endpoint, a form or a page: an object of JSON, or fields; else its size alone."""
        import json
        import re

        try:
            text = raw.decode("utf-8-sig")
            if re.fullmatch(_FORM, text) and "=" in text.rstrip("="):  # not a token in base64
                return self._text(self._fields("&" + text)[1:]).encode()
            value = json.loads(text)
            if isinstance(value, dict):
                return json.dumps(self._json(value), ensure_ascii=False).encode("utf-8", "replace")
        except (ValueError, RecursionError):  # also of what is nested deeper than the stack
            pass
        return withheld(len(raw))

    def _header(self, name: str, value: str) -> str:
        if name.lower() in _SESSION_HEADERS or not value:
            return value
        plain = _plain(name)
        if "@" in value and plain.endswith(("host", "authority")):
            user, _, host = value.rpartition("@")
            return f"{self.mark(user)}@{host}"
        if plain == "secwebsocketprotocol":  # browsers can send a token in no other header
            import re

            return re.sub(r"[^,\s]+", lambda it: it[0] if it[0].lower() in _SUBPROTOCOLS else self.mark(it[0]), value)
        if not is_secret_name(name):
            return self.url(value)
        scheme, _, credentials = value.partition(" ")
        if credentials and plain.endswith("authorization"):
            return f"{scheme} {self.mark(credentials)}"
        return self.mark(value)

    def _fields(self, text: str, *, encoded: bool = True) -> str:
        """The keys of the queries in a text (WHATWG URL, 5.1), each other character as it was.

        A query may stand in a URL that is a value of another query, also percent-encoded: then that value is replaced.
        """
        if "=" not in text and "%" not in text:
            return text
        import re
        from urllib.parse import unquote_plus

        clean, end = "", 0
        for field in re.finditer(_FIELD, text):
            start = field.start("value")
            if start < end or "«redacted:" in field["value"]:
                continue
            if field["name"] and _is_oauth_secret(unquote_plus(field["name"])):
                rest = re.compile(_REST).match(text, start)
                stop = rest.end() if rest else field.end()
            elif encoded and "%" in field["value"] and self._hides(unquote_plus(field["value"])):
                stop = field.end()
            else:
                continue
            # as it reads elsewhere, so that equal secrets look equal
            clean += text[end:start] + self.mark(unquote_plus(text[start:stop]))
            end = stop
        return clean + text[end:]

    def _hides(self, decoded: str) -> bool:
        query = "&" + decoded  # it may be a whole form
        return self._text(self._fields(query, encoded=False)) != query

    def _json(self, value: "Any", *, secret: bool = False) -> "Any":
        if isinstance(value, list):
            return [self._json(element, secret=secret) for element in value]
        if isinstance(value, dict):
            return {
                self.url(key): self._json(member, secret=secret or _is_secret_member(key, member))
                for key, member in value.items()
            }
        if isinstance(value, str):
            return self.mark(value) if secret and value else self.url(value)
        return self.mark(str(value)) if secret and value is not None and not isinstance(value, bool) else value

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


def unquoted(message: str) -> str:
    """A message of another program's, without what it quotes of a peer, for that may hold secrets."""
    import re

    return re.sub(_QUOTATION, "«withheld»", message)


_QUOTATION = r"""(?<!\w)b?(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""  # a `repr` of bytes or text

# A name that is secret for sure, for the patterns that look inside a word and must not eat what is no secret.
_NAME = (
    r"(?P<name>[\w.-]{0,64}?(?i:token|secret|password|passwd|pwd|api[-_.]?key|auth|credential|signature|access[-_.]?key"
    r"|private[-_.]?key|authorization|cookie|(?:auth|secret|subscription)[-_.]?key|jwt))"
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
        r"|xox[a-z]-|AKIA|AIza)[\w-]+)"
    ),
    # a JWT or JWE, also behind a prefix; what the dots say first keeps it linear
    r"(?<![\w-])(?=[\w-]+\.[\w-]*\.)(?P<before>[\w-]*?)(?P<name>(?!))?(?P<value>eyJ[\w-]+(?:\.[\w-]*){2,4})",
)


# A form as clients send it (WHATWG URL, 5.2): keys and values in ASCII, without what would have been encoded.
_FORM = r'(?:(?:^|&)[\w.+%*~\[\]-]{1,64}=[^\s&"<>{}\\]*)+'
# The key and value of a query, or a segment of a path; and how far a secret goes, that may hold `;` and `?`.
_FIELD = r"(?:(?<=[?&;#])(?P<name>[^=?&;#\s]{1,128})=)?(?P<value>(?(name)[^?&;#\s]+|[^/?&;#\s]+))"
_REST = r"[^&#\s]*"


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
