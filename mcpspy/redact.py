"""Secrets out of what is written to a capture: command lines now, heads and forms with the HTTP relay.

A secret becomes `«redacted:8hex»`, eight hex digits of a hash keyed with `~/.mcpspy/key`, so that equal secrets look
equal and nobody can guess back. What counts as a secret: the value of a name that `is_secret_name` knows, the password
of a URL, and words in the shape of well-known tokens.

Imported on the `wrap` path: `re` (9 ms) is imported only when a word could hold a secret.
"""

import os

from mcpspy.capture.place import home, make_directory

_HEADERS = frozenset(("authorization", "proxyauthorization", "cookie", "setcookie", "xapikey"))
_ENDINGS = "token secret password passwd pwd apikey auth credential signature accesskey privatekey".split()
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
    plain = name.lower().replace("-", "").replace("_", "").replace(".", "")
    return plain in _HEADERS or plain.endswith(tuple(_ENDINGS))


class Redactor:
    """Replaces secrets; the key is read, or made, at the first one."""

    def __init__(self) -> None:
        self._key: bytes | None = None

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
            suspect = any(mark in word for mark in "=:{ ") or any(shape in word for shape in _SHAPES)
            clean.append(self._word(word) if suspect else word)
        return clean

    def _word(self, word: str) -> str:
        import re

        def value(match: re.Match[str]) -> str:
            named = match["name"] is None or is_secret_name(match["name"])
            return match["before"] + self.mark(match["value"]) if named and match["value"] else match[0]

        for pattern in _PATTERNS:
            word = re.sub(pattern, value, word)
        return word


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
