"""Secrets in a text: a word of a command line, the value of a header, a URL, a string in a login.

First it searches for forms (a secret name and its value, credentials after `Bearer`, user and password of a URL), then
for tokens of a known kind. Every character outside a secret stays unchanged. Each search takes linear time, and runs
only if its characters occur in the text.
"""

import re
from collections.abc import Callable
from functools import lru_cache, partial
from urllib.parse import unquote_plus

from mcpspy.secrets.patterns import SCHEMES, is_oauth_secret, is_secret_name
from mcpspy.secrets.tokens import replaced

Mark = Callable[[str], str]
"""Returns the replacement of a secret."""
Prose = Callable[[str, str], str]
"""Returns the replacement of a value that may be a secret, from the name before it and the value."""


def redacted_text(text: str, mark: Mark, prose: Prose | None = None) -> str:
    """Redact a text.

    In a message, a word after a name may be part of a sentence. Then `prose` decides about those, and tokens count only
    in their full form.
    """
    if "://" in text and "@" in text:
        text = _AUTHORITY.sub(lambda it: _userinfo(it, mark), text)
    if '"' in text and ":" in text:
        for head, value in _JSON:
            text = _values(text, head, value, mark)
    if "=" in text:
        text = _values(text, _QUERY, _QUERY_VALUE, mark)
    if "=" in text or ":" in text:
        for head in _WHOLE:
            text = _values(text, head, _REST, mark, prose)
        text = _values(text, _ASSIGNED, _WORD, mark, prose)
    if ":" in text:
        text = _values(text, _HEADER, _LINE, mark, prose)
    if "-" in text and (" " in text or "\t" in text or "\n" in text):
        text = _values(text, _OPTION, _WORD, mark, prose)
        text = _USER.sub(lambda it: it["before"] + mark(it["value"]), text)
    if "earer" in text.lower() or "asic" in text.lower():
        credentials = partial(prose, "bearer") if prose else mark
        text = _CREDENTIALS.sub(lambda it: it["before"] + credentials(it["value"]), text)
    return replaced(text, mark, full=prose is not None)


def redacted_url(text: str, mark: Mark) -> str:
    """Redact a URL, a request's target, or a text with URLs."""
    return redacted_text(redacted_fields(text, mark), mark)


def redacted_fields(text: str, mark: Mark, *, oauth: bool = True, encoded: bool = True) -> str:
    """Redact the secret values of queries in a text (WHATWG URL, 5.1). Everything else stays unchanged.

    In text that may belong to OAuth (`oauth`) a `code` is secret too. A value of a query may be a URL with a query of
    its own, also percent-encoded. Then the whole value is replaced.
    """
    if "=" not in text and "%" not in text:
        return text
    clean, end = [], 0
    for field in _FIELD.finditer(text):
        start = field.start("value")
        if start < end or "«redacted:" in field["value"]:
            continue
        if field["name"] and _is_secret_field(field["name"], oauth):
            rest = _FIELD_REST.match(text, start)
            stop = rest.end() if rest else field.end()
        elif encoded and "%" in field["value"] and _hides(unquote_plus(field["value"]), mark):
            stop = field.end()
        else:
            continue
        # decoded as elsewhere, so that equal secrets look equal
        clean += [text[end:start], mark(unquote_plus(text[start:stop]))]
        end = stop
    return "".join(clean) + text[end:]


_is_secret = lru_cache(4096)(is_secret_name)


@lru_cache(4096)
def _is_secret_field(name: str, oauth: bool) -> bool:
    return (is_oauth_secret if oauth else is_secret_name)(unquote_plus(name))


def _hides(decoded: str, mark: Mark) -> bool:
    if len(decoded) < _SHORTEST:
        return False
    query = "&" + decoded  # it may be a complete form
    return redacted_text(redacted_fields(query, mark, encoded=False), mark) != query


def _values(text: str, head: re.Pattern[str], value: re.Pattern[str], mark: Mark, prose: Prose | None = None) -> str:
    """Redact the value after each match of `head` whose name is secret."""
    clean, end = [], 0
    for found in head.finditer(text):
        start = found.end()
        if found.start() < end or not _is_secret(found["name"]):
            continue
        rest = value.match(text, start)
        if rest and rest[0]:
            clean += [text[end:start], prose(found["name"], rest[0]) if prose else mark(rest[0])]
            end = rest.end()
    return "".join(clean) + text[end:] if clean else text


def _userinfo(found: re.Match[str], mark: Mark) -> str:
    """Redact a URL up to its host (RFC 3986, 3.2.1): its password, or a token in place of a user."""
    scheme, user, password = found["scheme"], found["user"], found["password"]
    if "«redacted:" in user + (password or ""):
        return found[0]
    web = scheme.lower().endswith(("http", "https"))  # `git+https`; in other schemes a user alone is ordinary
    if password is None:
        return f"{scheme}://{mark(user)}@" if web and user else found[0]
    if user and (password in _NO_PASSWORDS or (len(user) >= 20 and not user.isalpha())):
        user = mark(user)
    shown = password if password in _NO_PASSWORDS else mark(password)
    return f"{scheme}://{user}:{shown}@"


_SHORTEST = 4  # the shortest text that can contain a secret: `a=b:`
_NO_PASSWORDS = ("", "x-oauth-basic")  # the token is the user
_SCHEME = f"(?i:{'|'.join(SCHEMES)})"
_NEW = r"(?!«redacted:)"

# Up to the last @ of the authority, because a password may contain one.
_AUTHORITY = re.compile(
    r"""(?<![\w+.-])(?P<scheme>[A-Za-z][\w+.-]{0,30})://(?P<user>[^/?#\s:"<>]*)(?::(?P<password>[^/?#\s"<>]*))?@"""
)
# The member of a JSON object: a string, a string inside a string, anything else.
_JSON = (
    (re.compile(r'"(?P<name>[^"\\]{1,64})"\s{0,64}:\s{0,64}"'), re.compile(_NEW + r'(?:[^"\\]|\\.)*')),
    (re.compile(r'\\"(?P<name>[^"\\]{1,64})\\"\s{0,64}:\s{0,64}\\"'), re.compile(_NEW + r'[^"\\]*')),
    (re.compile(r'"(?P<name>[^"\\]{1,64})"\s{0,64}:\s{0,64}'), re.compile(r'[^\s",}\]\[{]+')),
)
ITEM = re.compile(r"[^,\s]+")
"""An item of a list in a header."""
_QUERY = re.compile(r"[?&#](?P<name>[^=&#\s]{1,64})=")
_QUERY_VALUE = re.compile(_NEW + r"[^&#\s]*")
# A whole word: `K=v`, `--k=v`; `--env=K=v`; `Name: v`, as for `--header`, also `-HName: v`.
_WHOLE = (
    re.compile(r"^(?P<name>[\w.-]+)="),
    re.compile(r"^-[\w.-]+=(?P<name>[\w.-]+)="),
    re.compile(rf"^(?:-H|--?[\w.-]+=)?(?P<name>[\w.-]+):\s{{0,64}}(?:{_SCHEME}\s{{1,64}})?(?!//)"),
)
_REST = re.compile(rf"(?s){_NEW}.*\Z")
# The same inside a word, such as the command line of a shell or a connection string.
_ASSIGNED = re.compile(r"(?<=[\s;&|(,{'\"])(?P<name>[\w.-]{1,64})=")
_HEADER = re.compile(rf"(?<=[\s;,{{'\"])(?P<name>[\w.-]{{1,64}})'?:\s{{0,64}}'?(?:{_SCHEME}\s{{1,64}})?")
_OPTION = re.compile(r"(?:^|(?<=[\s'\"]))--?(?P<name>[\w.-]{1,64})\s{1,64}")
_WORD = re.compile(rf"""{_NEW}(?:"[^"]*"|'[^']*'|[^\s;&|'"]+)""")
_LINE = re.compile(rf"(?!//){_NEW}[^'\"]+")
# `-u user:password`, as for curl; not a numeric user and group.
_USER = re.compile(
    r"""(?P<before>(?:^|(?<=[\s'"]))(?:-[uU]|--(?:proxy-)?user)[\s=]{1,64}(?!\d{1,20}:\d{1,20}(?:\s|$))"""
    r"""['"]?[^\s:'"/]{1,64}:)(?P<value>(?![/\\]|«redacted:)[^\s'"]+)"""
)
# Credentials after their scheme (RFC 9110, 11.4), but not parameters of a challenge such as `Bearer realm="x"`. At the
# beginning, any word after a scheme. Elsewhere it may be prose, so only a long word or one with a digit.
_CREDENTIALS = re.compile(
    rf"(?P<before>\A\s{{0,64}}{_SCHEME}\s{{1,64}}(?=[^\s,\"';]+\s*(?:\Z|[,;\"']))"
    rf"|(?<![\w-]){_SCHEME}\s{{1,64}}(?=[\w.~+/-]{{0,40}}\d|[\w.~+/-]{{16}}))"
    rf"(?P<value>{_NEW}(?![\w!#$%&*+.^|~-]{{1,64}}\s?=\s?[^=\s])[^\s,\"';]+)"
)
# The key and value of a query, or a segment of a path; and the rest of a secret, which may contain `;` and `?`.
_FIELD = re.compile(r"(?:(?<=[?&;#])(?P<name>[^=?&;#\s]{1,128})=)?(?P<value>(?(name)[^?&;#\s]+|[^/?&;#\s]+))")
_FIELD_REST = re.compile(r"[^&#\s]*")
