"""Texts without secrets, addresses and names."""

import re

import pytest

from mcpspy.secrets.patterns import FOREIGN_NAMES, FOREIGN_WORDS, ORACLE_PROGRAMS, PASSWORD_OPTIONS
from mcpspy.sharing.scrub.texts import ScrubOptions, Texts, is_suspicious, redacted_tables
from mcpspy.sharing.scrub.values import KnownValues
from tests.each import each
from tests.limits import proportionate

V = "redacted-value-1"


def texts(**options):
    return Texts(KnownValues(), lambda *_: None, None, ScrubOptions(**options))


@each(
    "text, new",
    [
        ("export API_KEY=abc123", f"export API_KEY={V}"),
        ("password: hunter2, please", f"password: {V}, please"),
        ("password=swordfish", f"password={V}"),
        ("Authorization: Bearer abcdef0123456789", f"Authorization: Bearer {V}"),
        ("got bearer abcdef0123456789abcdef.", f"got bearer {V}."),
        ("https://bob:pw@h.example/x", f"https://bob:{V}@h.example/x"),
        ("postgres://u:p%40ss@h/db", f"postgres://u:{V}@h/db"),
        ("see /a?api_key=zz&b=1", f"see /a?api_key={V}&b=1"),
        ("your api key is 4f9a8b7c6d5e4f3a2b1c.", f"your api key is {V}."),
        ("The token for you: `a1b2c3d4e5f6`", f"The token for you: `{V}`"),
        ('config {"password": "a b c"} loaded', f'config {{"password": "{V}"}} loaded'),
        ('Result: {"credentials": {"value": "pa55word"}}', f'Result: {{"credentials": {{"value": "{V}"}}}}'),
        ("curl -u bob:pa55word https://x", f"curl -u bob:{V} https://x"),
        ("mail bob@corp.example.com now", "mail email-1@redacted.invalid now"),
        ("?to=bob%40corp.com", "?to=email-1%40redacted.invalid"),
        ("mailto:bob@corp.com", "mailto:email-1@redacted.invalid"),
        ("Bob <bob.o'x@corp.co.uk>", None),
        ("author:bob@corp.com", "author:email-1@redacted.invalid"),
        ("/users/bob@corp.com/x", "/users/email-1@redacted.invalid/x"),
        ("?q=to%20bob@corp.com", "?q=to%20email-1@redacted.invalid"),
        (r'{"x": "\nrob@163.com', r'{"x": "\nemail-1@redacted.invalid'),
        ("bob@bücher.example:inbox", "email-1@redacted.invalid:inbox"),
        ("/home/bob/x and bob", "/home/user-1/x and user-1"),
        ("file:///Users/bob", "file:///Users/user-1"),
        (r"C:\Users\Bob\x c:\\Users\\Bob", r"C:\Users\user-1\x c:\\Users\\user-1"),
        ("file:///c%3A/Users/bob/x", "file:///c%3A/Users/user-1/x"),
        ("%2Fhome%2Fbob%2Fx", "%2Fhome%2Fuser-1%2Fx"),
        ("/mnt/c/Users/bob /c/Users/bob /var/home/bob", "/mnt/c/Users/user-1 /c/Users/user-1 /var/home/user-1"),
        (r"\\srv\Users\Bob Smith\x", r"\\srv\Users\user-1\x"),
        (r"\\srv\Users\bob and C:\x", r"\\srv\Users\user-1 and C:\x"),
        ("DB_PASSWORD=correcthorse\nHOME=/x", f"DB_PASSWORD={V}\nHOME=/x"),
        ("db:\n  password: correcthorse\n  host: b", f"db:\n  password: {V}\n  host: b"),
        ("<db:password>hunter2</db:password>", f"<db:password>{V}</db:password>"),
        ("\x1b[33mpassword\x1b[0m=\x1b[1;32m'hunter2'\x1b[0m", f"password='{V}'"),
        ("key\x1b[31mgh" + "p_" + "a1B2" * 9 + "\x1b[0m", "key redacted-github-token-1"),
        ("/messages?session_id=abc&x=1", "/messages?session_id=session-1&x=1"),
        ("Mcp-Session-Id: 0123-abc", "Mcp-Session-Id: session-1"),
    ],
)
def test_what_a_text_shows_is_replaced(text, new):
    found = texts().text(text)
    assert found == new or (new is None and "corp" not in found)
    again = texts()
    assert again.text(found) == found
    assert is_suspicious(text, only_secrets=False)


@each(
    "text",
    ["a@b", "@scope/package", "@types/node@22.1.0", "git@github.com:o/r.git", "user@host", "/home/runner/work",
     "/root/x", "/home", "/homes/bob", "/home/$USER/x", "/home/<you>/x", "C:\\Users\\Public", "https://a.example/?page=2",
     "the token", "password:", "key=value", "email-1@redacted.invalid", "/home/user-1/x", "api.home/x",
     "GET /users/search", "https://a.example/home/page", "vue@3.4.1.min.js", "ssh://bob@host.example/r", "<key>N</key>",
     "\x1b[31mthe token\x1b[0m", 'Schema: {"token": {"type": "string"}}'],
)  # fmt: skip
def test_what_only_looks_like_it_stays(text):
    assert texts().text(text) == text


@pytest.mark.parametrize("text", ["bob@corp.com", "/home/bob/x"])
def test_with_only_secrets_people_stay(text):
    assert texts(only_secrets=True).text(text) == text


@each(
    "name, value, new",
    [
        ("mcp-session-id", "abc", "session-1"),
        ("X-Api-Key", "abc", V),
        ("Authorization", "Basic YTpi", f"Basic {V}"),
        ("mcp-name", "get_forecast", "get_forecast"),
        ("Mcp-Param-Password", "abc", V),
        ("Mcp-Param-Path", "=?base64?L2hvbWUvYm9iL8Ok?=", "=?base64?L2hvbWUvdXNlci0xL8Ok?="),
        ("Mcp-Param-Path", "=?base64?%%?=", "=?base64?%%?="),
        ("X-Debug", '{"password":{"v":"a b"}}', f'{{"password":{{"v":"{V}"}}}}'),
        ("target", "/mcp?token=abc", f"/mcp?token={V}"),
        ("reason", "OK", "OK"),
    ],
)
def test_a_field_of_a_head_is_replaced(name, value, new):
    """A-13."""
    assert texts().field(name, value) == new


def test_a_value_has_the_label_of_its_kind():
    token = "gh" + "p_" + "a1B2" * 9
    assert texts().text(f"use {token}.") == "use redacted-github-token-1."
    assert texts().key(f"{token}") == "redacted-github-token-1"
    assert texts().key("password=hunter2") == "password=hunter2"
    assert texts().argv(["--token", token, "-v"]) == ["--token", "redacted-github-token-1", "-v"]


SIZE = 30_000


@each(
    "part",
    ["a", "a ", "@", "a@", "a@a.", ":", "=", "a=", "&a=", "://", "a:", "/home/", "%", "%40", "password ", "password: ",
     "token is ", "Bearer ", "api key ", '"a":', '\\"', "-u ", "-----BEGIN ", "eyJ", "sk-", ".", "-", "C:\\Users\\",
     "session_id=", "?", "a.b", "key-", "a1", "\n", "'", "AKIA", "https://a:", "«redacted:", "x@y.zz "],
)  # fmt: skip
def test_a_hostile_text_takes_linear_time(part):
    text = "password " + part * (SIZE // len(part))
    with proportionate(1):
        texts().text(text)


@each("pattern", [r"\d+", "(?i)h", "redacted", ".*", "^"])
def test_replace_neither_cuts_a_known_value_nor_a_label(pattern):
    known = KnownValues()
    scrub = Texts(known, lambda *_: None, None, ScrubOptions(replace=(re.compile(pattern),)))
    scrub.secret("hunter2xyz")
    clean = scrub.text("hunter2xyz in 47")
    assert not re.search("hunter|xyz", clean)
    assert "redacted-value-1" in clean or pattern == ".*"
    assert scrub.text(clean) == clean


@each(
    "text",
    [
        'case "invalid_key":\n  return `x`;',
        '{"signature": signature, "password": password}',
        '"password": get_password(), "token": os.environ["A"]',
        'color "#ddd0c0"; Token: "#ddd0c0"',
        "'--password --inputbox'",
        "password = password",
        'creds = " --password=%s" % (user, pw)',
        '"path-key": "^3.1.0", "cookie": "0.7.1"',
        "docker run -p 8080:80 login",
        'key = "user_1a"',
        "keys = step2b",
        "tokens = line12x",
        "const f = keys.map(key => 'key1a2' + key)",
        "match t { token => 'eof1a2' }",
        "the secret is made: docker run --name mongo -p 27017:27017 mongo",
    ],
)
def test_code_is_not_a_secret(text):
    """False alarms in sources, packages and style sheets."""
    assert texts().text(text) == text


@each("value", ["hunter2", "12345678", "correcthorse"])
def test_a_bare_value_in_json_is_a_secret(value):
    """A-17."""
    assert texts().text(f'say {{"password": {value}}}') == f'say {{"password": {V}}}'


def test_the_label_of_a_token_in_a_url_is_whole():
    """A-13."""
    assert texts().text("clone https://hunter2hunter2@host/x") == f"clone https://{V}@host/x"


@pytest.mark.parametrize("word", [*FOREIGN_NAMES, *FOREIGN_WORDS])
def test_each_foreign_name_of_a_password_is_suspicious(word):
    """A-17: the search for parts of words misses none."""
    assert is_suspicious(f"a {word}: b", only_secrets=True)


@each("program", [*PASSWORD_OPTIONS, *sorted(ORACLE_PROGRAMS), "docker login"])
def test_each_program_with_an_option_for_a_password_is_suspicious_and_searched(program):
    """V-04: the search for parts of names misses none."""
    option, _ = PASSWORD_OPTIONS.get(program, ("-p", True))
    command = f"run {program} " + ("bob/hun7ter#" if program in ORACLE_PROGRAMS else f"{option} hun7ter#")
    command = command if PASSWORD_OPTIONS.get(program, ("", True))[1] else command.replace(f"{option} ", option)
    assert is_suspicious(command, only_secrets=True)
    assert "hun7ter" not in texts().text(command)


class Counted(str):
    """A text that counts the searches for more than one character."""

    __slots__ = ()
    searches = 0

    def lower(self):
        return Counted(super().lower())

    def replace(self, *args):
        return Counted(super().replace(*args))

    def __contains__(self, part):
        Counted.searches += len(part) > 1
        return super().__contains__(part)


def test_few_searches_show_that_a_line_has_no_secret():
    """Nearly every line of a capture has none: the time of a scrub is that of these searches."""
    assert not is_suspicious(Counted("a quick-brown/fox=jumps %x over it"), only_secrets=False)
    assert 10 < Counted.searches < 60


def shown(text):
    return redacted_tables(text, lambda _: "M")


@each(
    "text, expected",
    [
        ("user,password\nbob,zebra\nal,cat9", "user,password\nbob,M\nal,M"),
        ('"user";"api_key"\n"bob";"a1b2c3"', '"user";"api_key"\n"bob";"M"'),
        ("user\tPasswort\nbob\tzebra", "user\tPasswort\nbob\tM"),
        ("| user | password |\n|---|---|\n| bob | zebra |", "| user | password |\n|---|---|\n| bob | M |"),
        (" user | token \n------+------\n bob  | a1b2c3d4 ", " user | token \n------+------\n bob  | M "),
        ('[password]\nvalue = "zebra"\n[b]\nc = "d"', '[password]\nvalue = "M"\n[b]\nc = "d"'),
        ("[db.credentials]\na = hunter2", "[db.credentials]\na = M"),
        ("password:\n  prod: zebra\n  dev: 'cat'\nb: c", "password:\n  prod: M\n  dev: 'M'\nb: c"),
        ("key,a\nZk39dKw02Lq8Xm4Pt7Vb1,b", "key,a\nM,b"),
        ("  secrets:\n    - hunter2\n  b: hunter3", "  secrets:\n    - M\n  b: hunter3"),
    ],
)
def test_a_value_is_replaced(text, expected):
    """A-17."""
    assert shown(text) == expected


@each(
    "text",
    [
        "password",
        "user,password\nbob",
        "Enter the user, the password\nand the name, please",
        "| name | key |\n|---|---|\n| up | ArrowUp |",
        "| a | password |\n| b | c |",
        "| feature | password |\n|---|---|\n| login | required |\n| guest | no |",
        "password:\n  type: string\n  description: at least 8 characters\n  minLength: 8",
        "token:\n  name: the\nb: c",
        "| Key | Summary |\n|---|---|\n| PROJ-123 | a |\n| PROJ-4567 | b |",
        "Keys,Action\nCtrl+F12,close\nShift+F1,help",
        "token,count\nsub4word,3\nuser_1a,4",
        "tokens:\n  - user_1a\n  - step2b",
        "passwords:\n  policy: strong\n  hash: argon2id\n  min_length: 12\n  name: main\n  label: Main",
        "'A_KEY': 1,\n'B': 2,\n'C': 3,",
        "[tokens]\nthe = cat",
        "yppasswd\t100009\typpasswd\netherstatd\t100010\tetherstat",
    ],
)
def test_what_only_looks_like_a_table_stays(text):
    assert shown(text) == text


@each("line", ["a,password", "[password]", "password:", "|password|\n|-|", "  - "])
def test_many_tables_take_time_linear_in_their_length(line):
    """A-01."""
    shown(f"{line}\n" * 20_000)
