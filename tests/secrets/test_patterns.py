"""The table of secrets (A-08, A-09): each kind is replaced in every place, and similar text stays."""

import json
from pathlib import Path
from urllib.parse import quote

from mcpspy.rules import plain
from mcpspy.rules.judge import Judge
from mcpspy.secrets.patterns import KINDS, is_oauth_secret, is_secret_name
from mcpspy.secrets.redactor import Withheld
from tests.each import each
from tests.rules.examples import judged
from tests.rules.test_judge import OPENS, Frame
from tests.secrets.examples import HEADERS, LOOK_ALIKES, NO_SECRET_NAMES, OPTIONS, TOKENS, secret, token
from tests.secrets.test_redactor import header

DOCUMENT = Path(__file__).parents[2] / "docs" / "secrets.md"


def everywhere(name, value):
    """Return the redacted value in each place that the redactor knows, by place."""
    redactor = Withheld()
    encoded = quote(value, safe="")
    one_line = value.replace("\n", " ")
    login = json.dumps({"user": "a", name: value}).encode()
    return {
        "argv": " ".join(redactor.argv(["server", f"--{name}", value, "--port", "1"])),
        "argv, =": " ".join(redactor.argv(["server", f"--{name}={value}"])),
        "-e": " ".join(redactor.argv(["docker", "run", "-e", f"{name}={value}", "image"])),
        "--env": " ".join(redactor.argv(["docker", "run", f"--env={name}={value}", "image"])),
        "URL": redactor.url(f"https://host.example/mcp?a=b&{name}={encoded}#c"),
        "query": redactor.head({"target": f"/mcp?{name}={encoded}"})["target"],
        "header": str(redactor.head({"headers": [[name, one_line]]})),
        "cookie": str(redactor.head({"headers": [["Cookie", f"{name}={one_line}"]]})),
        "login": redactor.body_elsewhere(login).decode(),
        "OAuth body": redactor.body(login).decode(),
        "form": redactor.body_elsewhere(f"user=a&{name}={encoded}".encode()).decode(),
        "OAuth form": redactor.body(f"user=a&{name}={encoded}".encode()).decode(),
    }


def where_seen(secret, found):
    return [place for place, text in found.items() if secret in text]


def test_the_table_holds_sixty_kinds_and_no_name_twice():
    assert len(KINDS) >= 60
    assert len({kind.name for kind in KINDS}) == len(KINDS)


@each("kind, literal", TOKENS, ids=lambda it: f"{it[0].name}: {it[1]}")
def test_a_token_of_any_kind_survives_nowhere_whatever_holds_it(kind, literal):
    """A-09: the name of the value gives no hint."""
    value = token(kind, literal)
    found = everywhere("x", value)
    redactor = Withheld()
    found |= {
        "alone": redactor.argv([value])[0],
        "in a shell": redactor.argv([f"cd /srv && run {value} x"])[0],
        "path": redactor.url(f"/x/{quote(value, safe='')}/mcp"),
        "plain path": redactor.url("/x/" + value.replace("\n", "%0A").replace(" ", "%20") + "/mcp"),
        "URL of a server": redactor.url(f"https://{value}") if kind.kept else "",
    }
    assert where_seen(secret(kind, literal), found) == []


@each("name", OPTIONS)
def test_the_value_of_a_secret_name_survives_nowhere_whatever_it_looks_like(name):
    """A-09: the name of the value decides, before the form of the value."""
    assert where_seen("hunter", everywhere(name, "hunter two")) == []
    for spelled in (name.replace("-", "_"), name.replace("_", "."), *([name.upper()] if name.islower() else [])):
        assert where_seen("hunter", everywhere(spelled, "hunter")) == []


@each("name", HEADERS)
def test_a_secret_header_is_replaced(name):
    """A-09."""
    for value in ("hunter", "Bearer hunter", "Basic hunter=="):
        assert "hunter" not in str(Withheld().head({"headers": [[name, value]]}))
        assert "hunter" not in "".join(Withheld().argv(["remote", "--header", f"{name}: {value}"]))
        assert "hunter" not in "".join(Withheld().argv(["remote", "--header", f"{name}:", *value.split()]))


@each("name", NO_SECRET_NAMES)
def test_other_names_hold_no_secret(name):
    """A-09: session ids and `requestState` stay, because pairing and replay need them."""
    assert not is_secret_name(name)
    assert not is_oauth_secret(name)
    assert Withheld().argv(["server", f"--{name}", "value", f"--{name}=value"])[1:] == [
        f"--{name}",
        "value",
        f"--{name}=value",
    ]
    assert header(Withheld(), name, "value") == "value"


@each("text", LOOK_ALIKES)
def test_what_only_looks_alike_stays(text):
    """A-09: at least 40 examples."""
    assert len(LOOK_ALIKES) >= 40
    redactor = Withheld()
    assert redactor.argv(["server", text, f"--x={text}", "-e", f"X={text}"]) == [
        "server", text, f"--x={text}", "-e", f"X={text}",
    ]  # fmt: skip
    assert redactor.url(f"/{text}") == f"/{text}"
    assert header(redactor, "X-Other", text) == text
    assert redactor.url(f"https://host.example/?x={quote(text, safe='')}").endswith(quote(text, safe=""))
    body = json.dumps({"x": text}).encode()
    assert redactor.body_elsewhere(body) is body
    assert findings(text) == []


def findings(text):
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {"x": text}}}
    raw = json.dumps(message, separators=(",", ":")).encode()
    return [it for it in judged((*OPENS, Frame(1, 1, 1, raw))) if it.rule == "security/secret-in-frame"]


@each("kind, literal", TOKENS, ids=lambda it: f"{it[0].name}: {it[1]}")
def test_a_token_of_any_kind_is_found_in_a_frame(kind, literal):
    """A-09: the rule and its quick test read the same table as the redactor."""
    value = token(kind, literal)
    for text in (value, f"use {value}.", f"a\n{value}"):
        (finding,) = findings(text)
        assert finding.severity == "info"
        assert kind.name in finding.message
        assert secret(kind, literal) not in finding.message


def test_the_quick_test_of_the_rule_lets_no_token_pass():
    judge = Judge()
    for record in OPENS:
        list(judge.feed(record))
    for n, (kind, literal) in enumerate(TOKENS, 1):
        raw = json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping", "params": {"x": token(kind, literal)}})
        (event, *_) = judge.feed(Frame(n, 1, n, raw.encode()))
        assert not plain.in_bytes(event), kind.name


def table():
    """Return the table of docs/secrets.md."""
    rows = [f"| {kind.name} | {' '.join(f'`{one}`' for one in kind.literals)} |" for kind in KINDS]
    return "\n".join(["| kind | begins with |", "|---|---|", *rows])


def test_the_documentation_lists_every_kind():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert table() in text, "put this into docs/secrets.md:\n" + table()
