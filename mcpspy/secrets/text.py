"""Secrets in a text: a word of a command line, the value of a header, a URL, a string in a login.

First it searches for forms (a secret name and its value, credentials after `Bearer`, user and password of a URL), then
for tokens of a known kind. Every character outside a secret stays unchanged. Each search takes linear time, and runs
only if its characters occur in the text.

JSON in a text is searched for members and not parsed: it may have other text around it, or may be cut off. Below a
secret name, all strings and numbers of a list or an object are secrets.
"""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from urllib.parse import unquote_plus

from mcpspy.secrets.patterns import (
    JWK_SECRETS,
    LOGIN_OPTION,
    LOGIN_PROGRAMS,
    ORACLE_PROGRAMS,
    OTHER_OPTIONS,
    PASSWORD_OPTIONS,
    PROGRAM_STEMS,
    SCHEMES,
    is_oauth_secret,
    is_port,
    is_run,
    is_secret_name,
)
from mcpspy.secrets.tokens import replaced


def redacted_members(
    text: str, is_secret: Callable[[str], bool], mark: Callable[[str], str], prose: Callable[[str, str], str] | None
) -> str:
    """Redact what is below each secret name that has a list or an object. In a message, `prose` decides."""
    for quote, head, part in _OPENED_MEMBERS:
        clean, end, done = [], 0, 0
        for found in head.finditer(text):
            if found.start() < done or not is_secret(found["name"]):
                continue
            for piece in _pieces(part, text, found.end()):
                done, kind = piece.end(), piece.lastgroup
                secret = piece[kind] if kind else ""
                if not secret or "«redacted:" in secret:
                    continue
                shown = prose(found["name"], secret) if prose else mark(secret)
                if kind and shown != secret:
                    clean += [text[end : piece.start(kind)], quote + shown + quote if kind == "number" else shown]
                    end = piece.end(kind)
        text = "".join(clean) + text[end:]
    return text


def _pieces(part: re.Pattern[str], text: str, start: int) -> Iterator[re.Match[str]]:
    """Yield the brackets, names, strings and numbers of the list or object that begins at a position."""
    depth = 0
    for found in part.finditer(text, start):
        yield found
        depth += (found[0] in ("{", "[")) - (found[0] in ("}", "]"))
        if not depth:
            return


def _form(quote: str, string: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a member with a list or an object, and of one part of these.

    A string that is followed by a colon is a name, and belongs to no group.
    """
    head = rf'{quote}(?P<name>[^"\\]{{1,64}}){quote}\s{{0,64}}:\s{{0,64}}(?=[\[{{])'
    name = rf"{quote}{string}{quote}\s{{0,64}}:"
    number = r"(?P<number>-?\d[\d.eE+-]*)"
    return re.compile(head), re.compile(
        rf"[\[\]{{}}]|{name}|{quote}(?P<string>{string})(?:{quote})?|{number}", re.DOTALL
    )


# JSON, and JSON inside a string.
_OPENED_MEMBERS = (
    ('"', *_form('"', r'(?:[^"\\]|\\.)*+')),
    ('\\"', *_form(r'\\"', r'(?:[^"\\]|\\\\\\?.|\\[^"\\])*+')),
)


Mark = Callable[[str], str]
"""Returns the replacement of a secret."""
Prose = Callable[[str, str], str]
"""Returns the replacement of a value that may be a secret, from the name before it and the value."""


def redacted_text(text: str, mark: Mark, prose: Prose | None = None) -> str:
    """Redact a text.

    In a message, a word after a name may be part of a sentence. Then `prose` decides about those, and tokens count only
    in their full form.
    """
    is_secret = _is_secret_member if '"kty' in text else _is_secret
    if '"' in text and ":" in text:  # first, because a string with a mark of another form stays
        text = redacted_members(text, is_secret, mark, prose)
    if "@" in text:
        text = _logins(text, mark)
    if ";" in text and "=" in text:
        for form in _CONNECTIONS:
            text = form.sub(lambda it: it["before"] + mark(it["value"]), text)
    if '"' in text and ":" in text:
        for head, value in _JSON:
            text = _values(text, head, value, mark, is_secret=is_secret)
        bare = prose and (lambda name, value: mark(value) if value.isdecimal() else prose(name, value))
        text = _values(text, *_JSON_BARE, mark, bare, is_secret)
    if "=>" in text:
        text = _values(text, _ARROW, _QUOTED, mark)
    if "=" in text:
        text = _values(text, _QUERY, _QUERY_VALUE, mark)
    if "=" in text or ":" in text:
        for head in _WHOLE:
            text = _values(text, head, _REST, mark, prose)
        text = _values(text, _ASSIGNED, _WORD, mark, prose)
        text = _values(text, _SPACED, _PLAIN_WORD, mark, prose)
    if ":" in text:
        text = _values(text, _HEADER, _LINE, mark, prose)
    if "-" in text and (" " in text or "\t" in text or "\n" in text):
        text = _values(text, _OPTION, _WORD, mark, prose)
        text = _USER.sub(lambda it: it["before"] + mark(it["value"]), text)
    if any(stem in text for stem in _STEMS) and any(program in text for program in _PROGRAMS):
        text = _COMMAND.sub(lambda it: _command(it, mark, prose), text)
    if "earer" in text.lower() or "asic" in text.lower():
        credentials = partial(prose, "bearer") if prose else mark
        text = _CREDENTIALS.sub(lambda it: it["before"] + credentials(it["value"]), text)
    for form in _FORMS:
        text = form.sub(lambda it: it["before"] + mark(it["value"]), text)
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
        elif encoded and "%" in field["value"] and _hides(field["value"], mark):
            stop = field.end()
        else:
            continue
        # decoded as elsewhere, so that equal secrets look equal
        value = unquote_plus(text[start:stop])
        marked = mark(value)
        clean += [text[end:start], text[start:stop] if marked == value else marked]
        end = stop
    return "".join(clean) + text[end:]


_is_secret = lru_cache(4096)(is_secret_name)


@lru_cache(4096)
def _is_secret_field(name: str, oauth: bool) -> bool:
    return (is_oauth_secret if oauth else is_secret_name)(unquote_plus(name))


def _hides(value: str, mark: Mark) -> bool:
    """Return whether a secret is found in a value only after it was decoded."""
    decoded = unquote_plus(value)
    if len(decoded) < _SHORTEST or decoded == value:
        return False
    query = "&" + decoded  # it may be a complete form
    return redacted_text(redacted_fields(query, mark, encoded=False), mark) != query


def _is_secret_member(name: str) -> bool:
    """Return whether a member of a JSON object is secret, in a text that has a JSON Web Key."""
    return name in JWK_SECRETS or _is_secret(name)


def _values(
    text: str,
    head: re.Pattern[str],
    value: re.Pattern[str],
    mark: Mark,
    prose: Prose | None = None,
    is_secret: Callable[[str], bool] = _is_secret,
) -> str:
    """Redact the value after each match of `head` whose name is secret."""
    clean, end = [], 0
    for found in head.finditer(text):
        start = found.end()
        if found.start() < end or not is_secret(found["name"]):
            continue
        rest = value.match(text, start)
        if rest and rest[0]:
            clean += [text[end:start], prose(found["name"], rest[0]) if prose else mark(rest[0])]
            end = rest.end()
    return "".join(clean) + text[end:] if clean else text


def _logins(text: str, mark: Mark) -> str:
    """Redact the passwords of URLs and of database connections.

    A password may contain characters that are reserved in URLs. In a URL of the web, a number before them is a port.
    """
    if "://" in text:
        text = _OTHER_AUTHORITY.sub(lambda it: _userinfo(it, mark), text)
        text = _AUTHORITY.sub(lambda it: _userinfo(it, mark), text)
        text = _WEB_AUTHORITY.sub(lambda it: _userinfo(it, mark), text)
    if "(" in text:
        text = _GO_LOGIN.sub(lambda it: it["before"] + mark(it["value"]), text)
    return _ORACLE_LOGIN.sub(lambda it: it["before"] + mark(it["value"]), text) if "/" in text else text


def _command(found: re.Match[str], mark: Mark, prose: Prose | None) -> str:
    """Redact the passwords in a command: after the option of its program, or `user/password`."""
    if found["program"] in ORACLE_PROGRAMS:
        return found["program"] + _ORACLE_WORD.sub(lambda it: it["before"] + mark(it["value"]), found["words"], count=1)
    option, separate = PASSWORD_OPTIONS.get(found["program"], LOGIN_OPTION)
    run = _is_run(found) if found["program"] in PASSWORD_OPTIONS else True
    if run is False:
        return found[0]

    def value(it: re.Match[str]) -> str:
        plain = it["value"].strip("'\"")
        other = prose is not None and _is_secret(plain)  # an example: `-pPASSWORD`
        other = other or (not run and is_port(plain)) or (it["space"] != "" and not separate)
        return it[0] if other else it["before"] + it["space"] + mark(it["value"])

    return found["program"] + _short_option(option).sub(value, found["words"])


def _is_run(found: re.Match[str]) -> bool | None:
    """Return whether the program of a command is run, or None. Only the last words before it are examined."""
    before = re.split(r"[;|&\n(`'\"=]", found.string[max(found.start() - _BEFORE, 0) : found.start()])[-1]
    words = before.split()
    folder = words.pop() if before[-1:].strip() else ""
    return is_run(words, folder)


@lru_cache
def _short_option(option: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<before>(?<=[\s'\"])(?!{_OTHER_OPTIONS}){option})(?P<space>\s*)(?P<value>(?!-){_WORD.pattern})"
    )


def _userinfo(found: re.Match[str], mark: Mark) -> str:
    """Redact a URL up to its host (RFC 3986, 3.2.1): its password, or a token in place of a user."""
    scheme, user, password = found["scheme"], found["user"], found["password"]
    if "«redacted" in user + (password or ""):  # its colon may be the one between them
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
# The same with reserved characters in the password: up to the last @ before a query, or else of the word.
_HOST = r"""@(?!sha256:)(?=[\w\[$(«])"""
_RESERVED = (
    rf"""(?P<password>(?:[^\s"<>:?]|:(?!//)|\?(?![\w.-]{{1,64}}=)){{0,256}}(?={_HOST})"""
    rf"""|(?:[^\s"<>:]|:(?!//)){{0,256}}){_HOST}"""
)
_OTHER_AUTHORITY = re.compile(
    r"""(?<![\w+.-])(?P<scheme>(?!(?i:[\w+.-]{0,20}http|wss?:|git\+ssh))[A-Za-z][\w+.-]{0,30})://"""
    rf"""(?P<user>[^/?#\s:"<>@«]*):(?!\d{{2,5}}[/,?#]){_RESERVED}"""
)
_WEB_AUTHORITY = re.compile(
    rf"""(?<![\w+.-])(?P<scheme>(?i:https?|wss?))://(?P<user>[^/?#\s:"<>@«]+):(?!\d{{1,5}}[/?#]|\$|\{{){_RESERVED}"""
)
# Connections of Go's database drivers, of Oracle, and a word `user/password@database` of its programs.
_GO_LOGIN = re.compile(
    r"""(?<![\w./@:-])(?P<before>[\w.+-]{1,64}:)(?P<value>(?!«)[^\s"'<>]{1,256})(?=@(?:tcp6?|udp|unix|cloudsql[\w-]*)\()"""
)
_ORACLE_LOGIN = re.compile(
    r"""(?<![\w./@-])(?P<before>[\w$#]{1,64}/)(?P<value>(?!«)[^\s"'/@<>]{1,128})"""
    r"""(?=@(?!sha256:|v\d+[:.])(?://[\w\[]|[\w.-]{1,253}:\d{2,5}[:/]\w|\(DESCRIPTION))"""
)
_ORACLE_WORD = re.compile(r"""(?P<before>(?<=[\s'"])[\w$#]{1,64}/)(?P<value>(?!«)[^\s'"/@]{1,128})(?=[@\s'"]|\Z)""")
# A connection string of ODBC or ADO.NET: its password may have blanks.
_PART = r"(?i:server|host|addr(?:ess)?|data source|user(?: id|name)?|uid|database|initial catalog|driver|port)\s?="
_LAST_PART = r"""(?i:password|pwd)\s?=\s?)(?P<value>\{[^}\n]{1,256}\}|(?![«{'"])[^;'"\n]{1,256})"""
_CONNECTIONS = (
    re.compile(
        rf"""(?P<before>(?<![\w]){_PART}[^;'"\n]{{0,256}};(?:[^;='"\n]{{1,64}}=[^;'"\n]{{0,256}};){{0,8}}\s?{_LAST_PART}"""
    ),
    re.compile(rf"(?P<before>(?<![\w]){_LAST_PART}(?=;\s?{_PART})"),
)
_BEFORE = 256  # characters before a program
_OTHER_OPTIONS = rf"(?i:{'|'.join(OTHER_OPTIONS)})\b"
_PROGRAMS = (*PASSWORD_OPTIONS, *ORACLE_PROGRAMS, *LOGIN_PROGRAMS)
_STEMS = (*PROGRAM_STEMS, "pass", "login")
_LOGIN = rf"(?:{'|'.join(LOGIN_PROGRAMS)})(?:\s{{1,8}}\w{{1,64}})?\s{{1,8}}login"
_COMMAND = re.compile(
    rf"(?<![\w.-])(?P<program>{_LOGIN}|{'|'.join(map(re.escape, (*PASSWORD_OPTIONS, *ORACLE_PROGRAMS)))})"
    r"(?=\.exe\s|[\s'\"])"
    r"(?P<words>[^;|&\n]{1,1024})"
)
# Values with a form of their own: PowerShell, .netrc, the keys of a storage account (not a digest such as `sha512-…`).
_FORMS = (
    re.compile(
        r"(?P<before>(?i:ConvertTo-SecureString)(?:\s{1,8}-(?i:String|AsPlainText|Force)){0,3}\s{1,8}[\"']?)"
        r"(?P<value>(?<=\")[^\"\n«]{1,512}|(?<=')[^'\n«]{1,512}|(?<=\s)(?![-$(\"'«])\S{1,512})"
    ),
    re.compile(
        r"(?P<before>(?:\bmachine\s{1,64}\S{1,253}|\bdefault(?=\s{1,64}login\s))"
        r"(?:\s{1,64}(?:login|account)\s{1,64}\S{1,256}){0,2}"
        r"\s{1,64}password\s{1,64})(?P<value>(?!«)\S{1,512})"
    ),
    re.compile(r"(?P<before>(?<![A-Za-z0-9+/=-]))(?P<value>(?=[A-Za-z0-9]*[+/])[A-Za-z0-9+/]{86}==)(?![A-Za-z0-9+/=])"),
)
# The member of a JSON object: a string, a string inside a string; anything else, which may be code (`"token": token`).
_JSON = (
    (re.compile(r'"(?P<name>[^"\\]{1,64})"\s{0,64}:\s{0,64}"'), re.compile(_NEW + r'(?:[^"\\]|\\.)*')),
    (re.compile(r'\\"(?P<name>[^"\\]{1,64})\\"\s{0,64}:\s{0,64}\\"'), re.compile(_NEW + r'[^"\\]*')),
)
_JSON_BARE = re.compile(r'"(?P<name>[^"\\]{1,64})"\s{0,64}:\s{0,64}'), re.compile(r'[^\s",}\]\[{]+')
ITEM = re.compile(r"[^,\s]+")
"""An item of a list in a header."""
# An element of a hash in PHP or Ruby: `'name' => 'value'`, `:name => 'value'`. Without these signs it is a function.
_ARROW = re.compile(r"""(?<=['":])(?P<name>[\w.-]{1,64})['"]?\s{0,64}=>\s{0,64}['"]""")
_QUOTED = re.compile(_NEW + r"""[^'"\n]+""")
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
_ASSIGNED = re.compile(r"(?:^|(?<=[\s;&|(,{`'\":/]))(?P<name>[\w.-]{1,64})['\"]?=")
_SPACED = re.compile(
    r"(?:^|(?<=[\s;&|(,{`'\":/]))(?P<name>[\w.-]{1,64})['\"]?\s{0,64}(?::=|=(?![=>])|=>(?!\s{0,64}['\"]))\s{0,64}"
)
_PLAIN_WORD = re.compile(
    rf"""{_NEW}(?:"{_NEW}[^"\n]+"|'{_NEW}[^'\n]+'|(?=[^\s\d]{{0,64}}\d)[\w+/=!@#%^~-]+(?=[\s,;`]|\Z))"""
)
_HEADER = re.compile(
    rf"(?<=[\s;,{{`'\"])(?P<name>[\w.-]{{1,64}})(?:['\"]\s?)?:\s{{0,64}}['\"]?(?:{_SCHEME}\s{{1,64}})?"
)
_OPTION = re.compile(r"(?:^|(?<=[\s'\"]))--?(?P<name>[\w.-]{1,64})\s{1,64}(?!--[A-Za-z])")
_WORD = re.compile(rf"""{_NEW}(?:"[^"]*"|'[^']*'|[^\s;&|'"]+)""")
_LINE = re.compile(rf"(?!//|[{{\[]\s{{0,64}}[\"'{{\]}}]){_NEW}[^'\"]+")
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
