"""Secrets in command lines and HTTP heads: no secret is left, and equal secrets get equal marks."""

import os
import re
import string
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.secrets import redactor as redact
from mcpspy.secrets.redactor import Redactor, Withheld, is_form
from tests import limits
from tests.cases import pairs
from tests.each import each
from tests.limits import proportionate

CASES = Path(__file__).parent / "cases"
SECRET = "hunter2/Correct+Horse=="
MARK = re.compile("«redacted:[0-9a-f]{8}»")
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl-_"


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory):
    """A separate home directory, in which the key is created."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("home")
        patch.setenv("HOME", str(folder))
        yield folder


def argv(*words):
    return Redactor().argv(list(words))


FORMS = {
    "--k v": ["server", "--{name}", "{secret}", "--port", "5"],
    "-k v": ["server", "-{name}", "{secret}"],
    "--k=v": ["server", "--{name}={secret}"],
    "-k=v": ["server", "-{name}={secret}", "x"],
    "K=v": ["env", "{name}={secret}", "server"],
    "-e K=v": ["docker", "run", "-e", "{name}={secret}", "image"],
    "--header 'K: v'": ["npx", "mcp-remote", "https://h/mcp", "--header", "{name}: {secret}"],
    "--header K:v": ["npx", "mcp-remote", "https://h/mcp", "--header", "{name}:{secret}"],
    "in a query": ["npx", "mcp-remote", "https://h/mcp?a=b&{name}={secret}&c=d#e"],
    "first in a query": ["npx", "mcp-remote", "https://h/mcp?{name}={secret}"],
    "in JSON": ["server", '{{"a": {{"{name}" : "{secret}"}}, "b": 1}}'],
    "in a shell's command line, K=v": ["sh", "-c", "cd /srv && {name}={secret} ./server"],
    "in a shell's command line, --k v": ["sh", "-c", "./server --port 5 --{name} {secret} --verbose"],
    "in a shell's command line, --k=v": ["sh", "-c", "./server --{name}={secret} --verbose"],
}
ANYWHERE = string.ascii_letters + string.digits + "-._~+/"
VALUES = {
    "--k v": st.text("aZ09-_.=:;,/\\@?&#%'\"{}[] \t\n\ré🔑", min_size=1).filter(lambda text: not text.startswith("--")),
    "in a query": st.text(ANYWHERE + "=:;,!*'()@%", min_size=1),
    "first in a query": st.text(ANYWHERE + "=:;,!*'()@%", min_size=1),
    "in JSON": st.text(ANYWHERE + " =:;,!*'()@%{}[]&?#\U0001f511", min_size=1),
    "in a shell's command line, --k v": st.text(ANYWHERE + "=:@%", min_size=1).filter(
        lambda text: not text.startswith("-")
    ),
    "in a shell's command line, K=v": st.text(ANYWHERE + "=:@%", min_size=1),
    "in a shell's command line, --k=v": st.text(ANYWHERE + "=:@%", min_size=1),
    "--header 'K: v'": st.text(ANYWHERE + " =:;,!*'()@%", min_size=1).filter(
        lambda text: text == text.strip() and not text.startswith("//")
    ),
}
VALUES["--header K:v"] = VALUES["--header 'K: v'"]
VALUES |= {form: VALUES["--k v"].filter(str.strip) for form in ("-k v", "--k=v", "-k=v", "K=v", "-e K=v")}


def filled(form, name, secret):
    return [word.format(name=name, secret=secret) for word in FORMS[form]]


def marked(form, name, secret):
    """Return the redacted form: the mark replaces the secret, every other character is unchanged."""
    return MARK.sub("<mark>", "\0".join(argv(*filled(form, name, secret))))


@pytest.mark.parametrize("name", ["token", "GITHUB_TOKEN", "X-Api-Key", "db.password", "client-secret"])
@each("form", FORMS)
def test_the_value_of_a_secret_name_is_replaced_and_nothing_else(form, name):
    assert marked(form, name, SECRET) == "\0".join(filled(form, name, "<mark>"))


@pytest.mark.parametrize("form", FORMS)
def test_whatever_the_secret_is_its_form_looks_the_same(form):
    @given(VALUES[form])
    def replaced(secret):
        assert marked(form, "api-token", secret) == "\0".join(filled(form, "api-token", "<mark>"))

    replaced()


@each("url, shown", pairs(CASES / "passwords.txt"))
def test_the_password_of_a_url_is_replaced(url, shown):
    """Seen in the field: `mysql://username:password@localhost:3306/database` in Cursor's configuration."""
    assert MARK.sub("<mark>", argv("server", url)[1]) == shown


TOKENS = """sk-proj-abcDEF123_- ghp_0123456789abcdefABCDEF github_pat_11ABC_defGHI glpat-abc_DEF-123
    xoxb-1234-5678-abc xoxp-1234 AKIAIOSFODNN7EXAMPLE AIzaSyA-0123456789_abc
    eyJhbGciOiJkaXIifQ..aXY.Y2lwaGVydGV4dA.dGFn""".split()


@each("token", [*TOKENS, JWT])
def test_a_word_in_the_shape_of_a_token_is_replaced(token):
    for around in ("{}", "--x={}", "{} ", "a {} b", '{{"x":"{}"}}', "https://h/{}/mcp", "Bearer {}", "x:{}"):
        assert MARK.sub("<mark>", argv(around.format(token))[0]) == around.format("<mark>")


@pytest.mark.parametrize(
    "words",
    [
        ["--max-tokens", "5"],
        ["--max-tokens=5"],
        ["http://h:80/p"],
        ["http://h:80/p?user=a@b"],
        ["ssh://user@host:22/x"],
        ["C:\\x", "C:\\Program Files\\node.exe"],
        ["cmd", "/c", "npx", "-y", "@example/mcp-mysql-server"],
        ["uv", "--directory", "/ABSOLUTE/PATH", "run", "weather.py"],
        ["docker", "run", "-i", "--rm", "-e", "API_TOKEN", "-e", "MODE=fast", "mcp/fetch:latest"],
        ["task-force", "risk-sk", "desk-top", "eyJ", "xox", "AKIA", "sk-", "disk-full"],
        ["--token"],
        ["--secret", "--port", "5"],
        ["server", "--author", "someone", "--password-file", "/run/x"],
        ['{"method":"x","max_tokens":5}'],
        ["12:30", "a=b", "a:b", "a b", "", "--", "-", "="],
        ["café=crème", "🌍"],
        ["--no-token"],
        ["token=", "--token=", "token:"],
    ],
)
def test_what_is_no_secret_is_untouched(words):
    assert argv(*words) == words


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0«")) | st.text('a-=: /@?&{}"\\', max_size=40))
)
def test_no_command_line_raises_or_changes_its_length(words):
    clean = argv(*words)
    assert len(clean) == len(words)
    for word, shown in zip(words, clean, strict=True):
        assert shown == word or MARK.search(shown)


def test_a_word_that_is_no_unicode_does_not_raise():
    assert argv("--token", os.fsdecode(b"\xff\xfe"), os.fsdecode(b"--x=\xff"))[2] == os.fsdecode(b"--x=\xff")


def test_equal_secrets_look_equal_and_different_ones_differ():
    marks = [MARK.findall("\0".join(argv(*filled(form, "token", SECRET)))) for form in FORMS if "query" not in form]
    assert len({mark for found in marks for mark in found}) == 1
    assert Redactor().mark("a") != Redactor().mark("b")
    assert argv("--token", "same", "mysql://u:same@h")[1] in argv("--token", "same", "mysql://u:same@h")[2]


@each("url, said", pairs(CASES / "messages.txt"))
def test_a_message_does_not_repeat_what_may_be_a_password(url, said):
    """A-13."""
    assert redact.shown(url) == said


def test_what_is_only_printed_or_has_no_secret_needs_no_key(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    argv("npx", "-y", "@scope/server", "--port=5")
    assert Withheld().argv(["--token", "s", "http://u:p@h/"]) == ["--token", "«withheld»", "http://u:«withheld»@h/"]
    assert list(tmp_path.iterdir()) == []


def test_re_is_imported_only_for_a_word_that_could_hold_a_secret(tmp_path):
    """The wrap path is light."""
    script = (
        f"import sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(os.path.dirname(redact.__file__)))!r});"
        "from mcpspy.secrets.redactor import Redactor;"
        "Redactor().argv(['npx', '-y', '@scope/server', '--port', '5']); print('re' in sys.modules);"
        "Redactor().argv(['--token=x']); print('re' in sys.modules)"
    )
    run = limits.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=True, env={"HOME": str(tmp_path)}
    )
    assert run.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    "word",
    [
        'cd x && TOKEN="my hunter2 pass" srv',
        'srv --password "my hunter2" x',
        "cd x;API_KEY=hunter2 srv",
        "(TOKEN=hunter2 srv)",
        'cmd="TOKEN=hunter2 run"',
        'curl -H "Authorization: Bearer hunter2" u',
        "-HAuthorization: Bearer hunter2",
        "https://h/#access_token=hunter2",
        "https://h/?a=b;password=hunter2",
        "Server=x;Password=hunter2;X=1",
        "A=1,API_KEY=hunter2",
        '{"a":1,"token":"hunter2","x":1}',
        r"srv {\"api_key\":\"hunter2\"}",
        "--env=API_TOKEN=hunter2",
        "-eAPI_TOKEN=hunter2",
        "--header=Authorization: Bearer hunter2",
        "PRIVATE_KEY=-----BEGIN KEY-----\nhunter2\n-----END KEY-----\n",
        "--private-key=-----BEGIN KEY-----\nhunter2\n-----END KEY-----",
        "--header=Authorization: Bearer\n hunter2",
    ],
)
def test_a_secret_inside_a_word_is_replaced(word):
    """The command line of a shell, a connection string, a header, JSON, an option of a launcher, several lines."""
    assert "hunter2" not in argv("sh", "-c", word)[2]


@pytest.mark.parametrize(
    "unit", ["a", "0", '"', "=", ":", "a:", "-eyJ", "sk-", '"a":', "://", "a://b:", "--token ", "&", "?a"]
)
def test_a_long_word_takes_time_linear_in_its_length(unit):
    """A client waits while a command line is searched; quadratic time would take minutes here."""
    long = unit * (40_000 // len(unit))
    with proportionate(1):
        argv("k=" + long, long + " =")


# HTTP (O-02).


def header(redactor, name, value):
    """Return the value of one header as it is recorded."""
    [(same, clean)] = redactor.head({"headers": [(name, value)]})["headers"]
    assert same == name
    return clean


def shown(text):
    return MARK.sub("<mark>", text)


@each("url, expected", pairs(CASES / "urls.txt"))
def test_urls(url, expected):
    assert shown(Redactor().url(url)) == expected


@each("line, expected", [*pairs(CASES / "headers.txt"), ("Authorization: ", "Authorization: ")])
def test_headers(line, expected):
    """Session ids stay: pairing and replay need them."""
    redactor = Redactor()
    name, _, value = line.partition(": ")
    for _ in ("the first time", "and when it is remembered"):
        assert f"{name}: {shown(header(redactor, name, value))}" == expected


def test_the_values_that_are_remembered_are_bounded():
    redactor = Redactor()
    for number in range(10_000):
        header(redactor, "X", str(number))
    assert len(redactor._fields) <= 4096


def test_a_head_is_cleaned_in_its_target_and_its_headers_and_not_changed_itself():
    head = {"method": "GET", "target": "/?token=hunter2", "headers": [["Cookie", "hunter2"], ["A", "b"]]}
    clean = Redactor().head(head)
    assert "hunter2" not in str(clean)
    assert head["headers"][0][1] == "hunter2"
    assert (clean["method"], clean["headers"][1]) == ("GET", ("A", "b"))
    assert Redactor().head({"status": 200}) == {"status": 200}


@each(
    "body, expected", [*pairs(CASES / "oauth.txt"), ('\ufeff{"device_code": "hunter2"}', '{"device_code": "<mark>"}')]
)
def test_oauth_bodies(body, expected):
    assert shown(Redactor().body(body.encode()).decode(errors="replace")) == expected


@pytest.mark.parametrize(
    "body",
    [
        b'{"access_token":"hunter2"',
        b')]}\'{"access_token":"hunter2"}',
        '{"access_token":"hunter2"}'.encode("utf-16"),
        b'"hunter2"',
        b'["hunter2"]',
        b"hunter2",
        b"aHVudGVyMg==",
        b"code: hunter2",
        b'--b\r\nContent-Disposition: form-data; name="code"\r\n\r\nhunter2\r\n--b--',
        b"<input name=code value=hunter2>",
        b'<script>var token = "hunter2"</script>',
        b"\xffhunter2",
        b"[" * 2000 + b"]" * 2000,
        b'{"a":' * 2000 + b"1" + b"}" * 2000,
        b'{"a":' * 20_000,
        b"",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_no_object_of_json_and_no_form_is_withheld_whole(body):
    """Also a body that is nested too deeply for Python."""
    assert Redactor().body(body) == f"«withheld: {len(body)} bytes»".encode()


@pytest.mark.parametrize(
    "unit", ["<", "=", "&", "&a=b", "?a=%", "%25", "/%", "?token=a;", "&token=a", "x_eyJ_", "eyJ.", "eyJ..", "a."]
)
def test_a_body_or_a_url_takes_time_linear_in_its_length(unit):
    """Quadratic time would take minutes here."""
    long = unit * (25_000 // len(unit))
    with proportionate(1):
        Redactor().url(f"/?x={long}")
        Redactor().body(f"x={long}".encode())
        Redactor().body(f'{{"x":"{long}"}}'.encode())


@pytest.mark.parametrize(
    ("media_type", "expected"),
    [
        ("application/x-www-form-urlencoded; charset=utf-8", True),
        ("Multipart/Form-Data; boundary=b", True),
        ("application/json", False),
        ("multipart/mixed", False),
        ("text/html; charset=utf-8", True),
        ("application/xhtml+xml", True),
        ("", False),
    ],
)
def test_a_form_is_known_by_its_media_type(media_type, expected):
    assert is_form(media_type) is expected


def test_a_token_looks_the_same_in_a_form_in_json_and_in_a_header():
    redactor = Redactor()
    marks = {
        MARK.search(text)[0]
        for text in (
            header(redactor, "Authorization", "Bearer hunt er+2"),
            redactor.body(b"refresh_token=hunt+er%2B2").decode(),
            redactor.body(b'{"access_token":"hunt er+2"}').decode(),
            redactor.url("/?access_token=hunt%20er%2b2"),
            redactor.body(b'{"location":"/?token=hunt+er%2b2"}').decode(),
        )
    }
    assert len(marks) == 1


@given(st.text(), st.text(), st.binary())
def test_nothing_of_a_peer_raises(name, value, body):
    redactor = Redactor()
    header(redactor, name, value)
    redactor.url(value)
    redactor.body(body)


def test_a_field_that_was_left_out_stays_so():
    head = {"headers": [("Sec-WebSocket-Extensions", None), ("A", "b")]}
    assert Redactor().head(head) == head


def test_a_head_is_searched_up_to_a_bound(tmp_path, monkeypatch):
    """A-01: no head blocks the event loop, however long it is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    long = "x" * 40_000
    headers = [
        ("Authorization", "Bearer hunter2"),
        ("X-Long", long),
        ("Cookie", "hunter2"),
        ("Mcp-Session-Id", "s" * 100),
    ]
    clean = Redactor().head({"headers": headers})["headers"]
    assert clean[1] == ("X-Long", "«withheld: 40000 bytes»")
    assert clean[3] == headers[3]
    assert "hunter2" not in str(clean)
    many = [[f"X-{number}", "token=hunter2"] for number in range(5000)]
    assert "hunter2" not in str(Redactor().head({"headers": many}))


@each("command, expected", pairs(CASES / "commands.txt"))
def test_a_password_in_a_command_line_is_replaced_in_words_and_in_a_shell(command, expected):
    """V-04: also the characters that are reserved in URLs."""
    assert " ".join(Withheld().argv(command.split(" "))) == expected
    if command == expected:
        assert Withheld().argv(["sh", "-c", command]) == ["sh", "-c", command]
        return
    for argv in (["server", f"--x={command}"], ["sh", "-c", command], ["sh", "-c", f"cd /x && exec {command}"]):
        shown = " ".join(Withheld().argv(argv))
        assert "«withheld»" in shown, argv
        assert "hun" not in shown, argv
        assert "ter" not in shown, argv


def test_a_password_of_digits_is_replaced_if_its_program_is_run():
    """V-04: elsewhere it may be a port."""
    for words in (["mysql", "-p12345"], ["env", "redis-cli", "-a", "12345"]):
        assert "12345" not in " ".join(Withheld().argv(words))
        assert "12345" not in Withheld().argv(["sh", "-c", " ".join(words)])[2]


def test_an_unknown_word_before_credentials_is_not_a_scheme():
    """A-13: the position of a word does not protect it."""
    assert header(Withheld(), "Authorization", "hunter2 x") == "«withheld»"
    assert header(Withheld(), "Authorization", "DPoP hunter2") == "DPoP «withheld»"


CONTAINERS = [
    ('{"apiKeys":["hunter2"],"a":"b"}', '{"apiKeys":["<mark>"],"a":"b"}'),
    ('{"credentials":{"value":"hunter2"}}', '{"credentials":{"value":"<mark>"}}'),
    ('[{"a":{"password":{"b":[1,{"c":"hunter2"}]}}}]', '[{"a":{"password":{"b":["<mark>",{"c":"<mark>"}]}}}]'),
]


@pytest.mark.parametrize(("text", "clean"), CONTAINERS)
@pytest.mark.parametrize("before", ["", "--config=", "CONF=", "https://h/?a=b&x="])
def test_json_with_a_list_or_an_object_below_a_secret_name_is_redacted_in_a_word(before, text, clean):
    """A-13."""
    assert list(map(shown, argv("srv", "--conf", before + text, "a"))) == ["srv", "--conf", before + clean, "a"]


@pytest.mark.parametrize(("text", "clean"), CONTAINERS)
def test_json_with_a_list_or_an_object_below_a_secret_name_is_redacted_in_a_head(text, clean):
    """A-13."""
    head = {"target": f"/mcp?x={text}&y=z", "headers": [["X-Config", text], ["Referer", f"https://h/?x={text}"]]}
    found = Redactor().head(head)
    assert shown(found["target"]) == f"/mcp?x={clean}&y=z"
    assert [shown(value) for _, value in found["headers"]] == [clean, f"https://h/?x={clean}"]


@pytest.mark.parametrize("text", [text for text, _ in CONTAINERS])
def test_it_is_redacted_when_it_is_percent_encoded(text):
    """A-13: the whole value, as other secrets that are encoded; also in a command line."""
    url = f"https://h/?x={quote(text, safe='')}&y=z%20"
    expected = "https://h/?x=<mark>&y=z%20"
    assert shown(argv("srv", url)[1]) == expected
    assert shown(Redactor().url(url)) == expected
    assert shown(Redactor().head({"target": url})["target"]) == expected


@pytest.mark.parametrize("word", ["https://h/?x=%7B%22a%22%3A%5B%22b%22%5D%7D", "https://h/?code=a%20b", "date=+%Y%m"])
def test_a_word_that_is_percent_encoded_without_a_secret_stays(word):
    """A-13."""
    assert argv("srv", word) == ["srv", word]


def test_the_command_line_of_a_client_is_shortened_where_it_may_hold_a_secret():
    """V-06: without the modules that the redaction of a server's command line needs."""
    words = ["/opt/My App/agent", "--type=utility", "a=b c=d", "x", "--token", "abc123", "ghp_x=1", "-p", "what is it?"]
    assert redact.Shortened().argv(words) == ["…", "--type=…", "a=…", "x", "--token", "«withheld»", "…", "-p", "…"]
