"""Secrets in texts by their form (A-09)."""

import pytest

from mcpspy.secrets.text import redacted_fields, redacted_text, redacted_url
from tests.limits import proportionate

MARK = "«redacted:1234abcd»"
"""In the form of those of a recording."""
AZURE_KEY = "a1B2/c3D" * 10 + "aB1/cD" + "=="


def shown(text):
    return redacted_text(text, lambda _: "M")


FORMS = [
    ("https://hunter2@host/x", "https://M@host/x"),
    ("git+https://hunter2@host/x", "git+https://M@host/x"),
    ("https://hunter2:x-oauth-basic@host/x", "https://M:x-oauth-basic@host/x"),
    ("https://hunter2:@host/x", "https://M:@host/x"),
    ("https://x-access-token:hunter2@host/x", "https://x-access-token:M@host/x"),
    ("https://user:hunter2@host/x", "https://user:M@host/x"),
    ("https://3f9a0c7e51d2b86430ef3f9a:hunter2@host/1", "https://M:M@host/1"),
    ("https://a@hunter2@host/x", "https://M@host/x"),
    ("postgres://user@host/x", "postgres://user@host/x"),
    ("https://host/@user", "https://host/@user"),
    ('["https://host","a@b"]', '["https://host","a@b"]'),
    ("Bearer hunter2", "Bearer M"),
    ("bearer hunter", "bearer M"),
    ("Basic aHVudGVyMg==", "Basic M"),
    ('curl -H "X-Other: Bearer hunter2" u', 'curl -H "X-Other: Bearer M" u'),
    ("the bearer token is missing", "the bearer token is missing"),
    ("Basic usage of the tool", "Basic usage of the tool"),
    ('Bearer realm="x", error="invalid_token"', 'Bearer realm="x", error="invalid_token"'),
    ("Bearer error=invalid_token", "Bearer error=invalid_token"),
    ('Basic realm="x"', 'Basic realm="x"'),
    ("curl -u user:hunter2 https://host", "curl -u user:M https://host"),
    ("docker run -u 1000:1000 image", "docker run -u 1000:1000 image"),
    ("AccountName=a;AccountKey=hunter2hunter2==;B=c", "AccountName=a;AccountKey=M;B=c"),
    ("Server=x;Pwd=hunter2;Encrypt=true", "Server=x;Pwd=M;Encrypt=true"),
    ("Server=x;Pwd=hun ter 2;Encrypt=true", "Server=x;Pwd=M;Encrypt=true"),
    ("use Pwd=hun ter;Server=x", "use Pwd=M;Server=x"),
    ("Driver={a b};Server=x;UID=sa;PWD={hun;ter 2};", "Driver={a b};Server=x;UID=sa;PWD=M;"),
    ("docker login -u bob -p hunter2 reg.example", "docker login -u bob -p M reg.example"),
    ("helm registry login -p hunter2 h", "helm registry login -p M h"),
    ("docker run -p 80:80 login", "docker run -p 80:80 login"),
    ("{'token': 'hunter2', 'a': 'b'}", "{'token': 'M', 'a': 'b'}"),
    ('{"key":"hunter2","monkey":"b"}', '{"key":"M","monkey":"b"}'),
    ("https://host/?key=hunter2&monkey=b", "https://host/?key=M&monkey=b"),
    ("'password' => 'hunter2',", "'password' => 'M',"),
    (':password => "hunter2"', ':password => "M"'),
    ("token => 'eof'", "token => 'eof'"),
    ('keys.map(key => "k" + key)', 'keys.map(key => "k" + key)'),
    ('"token" => "hunter2"', '"token" => "M"'),
    ('password = "hunter2"', "password = M"),
    ("password := hunter2", "password := M"),
    ('password: "hunter2"', "password: M"),
    ("//registry.example/:_authToken=hunter2", "//registry.example/:_authToken=M"),
    ('ConvertTo-SecureString "hunter 2" -Force', 'ConvertTo-SecureString "M" -Force'),
    ("ConvertTo-SecureString -String 'hunter2'", "ConvertTo-SecureString -String 'M'"),
    ("SecretString: hunter2", "SecretString: M"),
    ("client-key-data: hunter2==", "client-key-data: M"),
    ('{"kty":"RSA","n":"a","d":"hunter2","qi":"b"}', '{"kty":"RSA","n":"a","d":"M","qi":"M"}'),
    ('{"d":"hunter2","p":"a"}', '{"d":"hunter2","p":"a"}'),
    ("AZURE_STORAGE_KEY=hunter2", "AZURE_STORAGE_KEY=M"),
    (f"key1 {AZURE_KEY} Full", "key1 M Full"),
    (f"sha512-{AZURE_KEY}", f"sha512-{AZURE_KEY}"),
    ("Passwort: hunter2", "Passwort: M"),
    ("CONTRASEÑA=hunter2", "CONTRASEÑA=M"),
    ("machine h login u password hunter2", "machine h login u password M"),
    ("machine h\n  login u\n  password hunter2\n", "machine h\n  login u\n  password M\n"),
    ("default login u password hunter2", "default login u password M"),
    ("run --key hunter2 --keyboard qwerty", "run --key M --keyboard qwerty"),
]


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_forms(text, expected):
    assert shown(text) == expected


def test_an_encoded_secret_is_found():
    assert redacted_url("/x?next=https%3A%2F%2Fhunter2%40host", lambda _: "M") == "/x?next=M"


@pytest.mark.parametrize(
    "unit",
    [
        "bearer ",
        "basic a ",
        " token=",
        " key: ",
        '\\"a\\":',
        " -u a:",
        "https://a@",
        "a://b:",
        "'",
        "@",
        " ",
        "{'",
        "a://b:c#",
        "a:b@",
        "a/b@",
        "mysql ",
        "machine a ",
        "a =",
        "'a' =>",
        "sqlplus a/",
        "https://a:b#",
    ],
)
def test_a_long_text_takes_time_linear_in_its_length(unit):
    """A-01."""
    with proportionate(1):
        shown(unit * (40_000 // len(unit)))


@pytest.mark.parametrize("text", ["postgres://hunter2hunter2hunter2:pw@host/x", *(text for text, _ in FORMS)])
@pytest.mark.parametrize("redact", [redacted_text, redacted_url])
def test_a_mark_is_not_replaced_again(redact, text):
    """A-13: it must stay whole, also if it has a colon as those of a recording do."""
    clean = redact(text, lambda _: MARK)
    assert redact(clean, lambda _: "«redacted:5678»") == clean
    assert clean.count("«") == clean.count("»") == clean.count(MARK)


def test_a_percent_sign_in_a_value_is_no_encoding():
    assert redacted_fields('f --password=%s"', lambda _: "M") == 'f --password=%s"'


@pytest.mark.parametrize("text", ["`token={}`", "`token = {}`", "see `X-Api-Key: {}`"])
def test_the_name_may_follow_a_backtick(text):
    """A-13: Markdown in descriptions and answers."""
    assert "hunter2" not in shown(text.format("hunter2x"))
    kept = redacted_text(text.format("hunter2x"), lambda _: "M", lambda _, value: value.replace("hunter2x", "M"))
    assert kept == text.format("M")


def test_a_field_that_the_mark_keeps_is_not_decoded():
    """A-13: a caller that decides about each value gets back the text as it was."""
    assert redacted_fields("/?key=a%20b&token=c+d%2B", lambda value: value) == "/?key=a%20b&token=c+d%2B"
