"""Made-up secrets of every kind in every place of a capture: all are found, and none is left."""

import json
import string
from base64 import b64encode
from random import Random
from urllib.parse import quote

from mcpspy.secrets import tokens
from mcpspy.secrets.patterns import KINDS
from mcpspy.sharing.scrub import Scrub, ScrubOptions
from mcpspy.sharing.scrub.scrub import check
from tests.each import each
from tests.secrets import examples
from tests.sharing.scrub.captures import ERR, IN, OUT, call, capture, frame, frames, header, opened, result, written
from tests.sharing.scrub.made_up import secrets

NAMES = (
    "password passwd pwd passphrase passcode secret clientSecret client_secret API_KEY apiKey x-api-key access_token"
    " refreshToken authToken db_password DB_PASS private_key signingKey encryption_key session_secret GITHUB_TOKEN"
    " credential authorization jwt cookie account_key master-key webhook_secret bot_token userPassword"
).split()
RANDOM = Random(21)  # noqa: S311 (made-up secrets)


def made_up(length):
    letters = "".join(RANDOM.choices(string.ascii_letters + string.digits, k=length - 4))
    return f"q7{letters}Z3"


KINDS_OF_TOKENS = {kind for kind, _, _ in secrets()}
TOKENS = [(token, secret) for _, token, secret in secrets()]
VALUES = [(name, made_up(12 + number % 20)) for number, name in enumerate(NAMES * 2)]


def places(token):
    """Yield a record for each place that may contain a token."""
    yield "argument", frame(IN, call({"text": f"use {token} here"}))
    yield "result", frame(OUT, result(f"the answer: {token}"))
    yield "JSON in a string", frame(OUT, result(json.dumps({"config": {"text": token}})))
    yield "key", frame(OUT, {"jsonrpc": "2.0", "id": 1, "result": {token: 1}})
    yield "stderr", frame(ERR, f"[info] using {token}")
    yield "event", frame(5, f"event: message\r\ndata: {json.dumps(result(token))}\r\n")
    yield "two lines of data", frame(5, "data: " + json.dumps(result(token)).replace(', "id"', ',\ndata: "id"') + "\n")
    yield "WebSocket", frame(6, json.dumps(call([token])))
    yield "sent", frame(IN, {"a": 1}, sent=json.dumps(call({"text": token})), by="gate x")
    yield "release", {"kind": "release", "t": 1, "held": 1, "how": "edited", "sent": json.dumps(call([token]))}
    yield "why", {"kind": "gap", "t": 1, "lost": 1, "why": f"cannot open {token}"}
    yield "gates", {"kind": "gates", "t": 1, "gates": [{"name": "a", "action": {"send": token}}], "by": "file"}
    yield "reason", {"kind": "close", "t": 1, "ch": 6, "how": "eof", "code": 1000, "reason": f"bad token {token}"}
    yield "not UTF-8", {"kind": "frame", "ch": ERR, "t": 1, "b64": b64encode(b"\xff" + token.encode()).decode()}
    yield "unknown kind", {"kind": "later", "t": 1, "text": token}


CHANNELS = (opened(5, "server", "response", "sse"), opened(6, "client", "ws", "message"))


def left_of(secret, lines):
    """Return the encoded forms of a secret that are left in the lines."""
    whole = b"".join(lines)
    forms = {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}
    return [form for form in forms if form.encode() in whole]


@each("where", [where for where, _ in places("x")])
def test_every_kind_of_token_is_taken_out_wherever_it_stands(tmp_path, where):
    records = [dict(places(token))[where] for token, _ in TOKENS]
    path = capture(tmp_path / "a.jsonl", *CHANNELS, *records)
    scrub = Scrub(path)
    lines = list(scrub.lines())
    assert not [secret for _, secret in TOKENS if left_of(secret, lines)]
    found = {place.n for place in scrub.places() if place.category.rule}
    first = 1 + 3 + len(CHANNELS) + 1
    assert [n for n in range(first, first + len(records)) if n not in found] == []
    again = Scrub(written(tmp_path / "b.jsonl", *(line.rstrip(b"\n") for line in lines)))
    assert list(again.lines()) == lines
    assert not [place for place in again.places() if place.category.rule]


def test_a_token_in_a_command_line_a_url_and_a_head_is_taken_out(tmp_path):
    tokens = [token for token, _ in TOKENS if "\n" not in token]
    argv = header(argv=[f"--option={token}" for token in tokens], url=None)
    head = {"method": "POST", "target": "/mcp", "version": "1.1", "headers": [["x-a", token] for token in tokens]}
    targets = [opened(9 + n, "client", "request", "body", head={"target": f"/mcp?x={t}"}) for n, t in enumerate(tokens)]
    path = written(tmp_path / "a.jsonl", argv, opened(5, "client", "request", "body", head=head), *targets)
    lines = list(Scrub(path).lines())
    assert not [secret for token, secret in TOKENS if token in tokens and left_of(secret, lines)]


VALUE_PLACES = {
    "argument": lambda name, value: frame(IN, call({name: value})),
    "nested": lambda name, value: frame(IN, call({"config": {name: {"list": [value]}}})),
    "JSON in a string": lambda name, value: frame(OUT, result(json.dumps({name: value}))),
    "JSON in a sentence": lambda name, value: frame(OUT, result(f"The config is {json.dumps({name: value})}, I think")),
    "assignment": lambda name, value: frame(ERR, f"export {name}={value}"),
    "field of a head in a text": lambda name, value: frame(ERR, f"GET / {name}: {value}"),
    "query": lambda name, value: frame(OUT, result(f"see https://a.example/x?{name}={value}&b=1")),
    "body": lambda name, value: frame(7, f"a=1&{name}={value}"),
    "name beside it": lambda name, value: frame(IN, call({"env": [{"name": name, "value": value}]})),
    "option beside it": lambda name, value: frame(IN, call({"args": ["run", f"--{name}", value]})),
}


@each("where", VALUE_PLACES)
def test_every_value_under_a_secret_name_is_taken_out_there_and_in_its_echo(tmp_path, where):
    body = opened(7, "client", "request", "body")
    echoes = [frame(ERR, f"logged in with {value} today") for _, value in VALUES]
    echoes += [frame(OUT, result(f"https://a.example/{quote(value, safe='')}")) for _, value in VALUES]
    path = capture(tmp_path / "a.jsonl", body, *echoes, *(VALUE_PLACES[where](*one) for one in VALUES))
    scrub = Scrub(path)
    lines = list(scrub.lines())
    assert not [(name, value) for name, value in VALUES if left_of(value, lines)]
    assert not check(written(tmp_path / "b.jsonl", *(line.rstrip() for line in lines)), ScrubOptions()).findings


@each("kind", [kind for kind in KINDS if kind.after], ids=lambda kind: kind.name)
def test_of_a_token_behind_an_id_the_id_stays(tmp_path, kind):
    token = examples.token(kind, kind.literals[0])
    path = capture(tmp_path / "a.jsonl", frame(IN, call({"text": f"use {token} here"})))
    (text,) = frames(path)
    assert token.partition(kind.literals[0])[2][-12:] not in text.replace("q7Zx0Wv9Kp3Ls5", "")
    assert token.partition(kind.literals[0])[0] in text


def test_there_are_two_hundred_secrets_of_sixty_kinds():
    assert len({*TOKENS, *VALUES}) >= 200
    assert len(KINDS_OF_TOKENS) >= 60


def test_each_kind_of_the_table_has_a_made_up_token_of_its_own():
    assert {kind.name for kind in KINDS} == KINDS_OF_TOKENS


@each("dropped", KINDS, ids=lambda kind: kind.name)
def test_a_kind_that_is_dropped_is_missed(monkeypatch, dropped):
    """The corpus does not depend on the table: without a kind, its tokens are not replaced."""
    left = tuple(kind for kind in KINDS if kind is not dropped)
    monkeypatch.setattr(tokens, "KINDS", left)
    texts = [f"use {token} here" for kind, token, _ in secrets() if kind == dropped.name]
    assert any(tokens.replaced(text, lambda _: "", full=True) == text for text in texts)


HARMLESS = [
    *examples.LOOK_ALIKES,
    *(f"{RANDOM.getrandbits(128):032x}" for _ in range(40)),
    *(f"{RANDOM.getrandbits(160):040x}" for _ in range(40)),
    *(b64encode(RANDOM.randbytes(90)).decode() for _ in range(10)),
    *"claude-3-5-sonnet-20241022 gpt-4o-2024-08-06 gemini-2.5-pro-preview-05-06 llama-3.1-70b-instruct".split(),
    *"@scope/package @modelcontextprotocol/sdk@1.32.2 @types/node@22.10.1 mcp==1.30.0 requests>=2.31".split(),
    *"git@github.com:org/repo.git ssh://git@gitlab.com/o/r.git user@host root@localhost name@1.2.3".split(),
    *"v1.2.3-rc.1+build.5 2026-11-20T19:15:00Z 127.0.0.1:6278 ::1 sha256:deadbeef package-lock.json".split(),
    *"file:///usr/share/doc /home/user/x /home/runner/work /Users/Shared/x C:\\Users\\Public\\x /root/x".split(),
    *"Bearer-Token basic-auth token_count tokenizer.json secret-santa passwordless keyboard.ts authors.md".split(),
    "token: the access token that the server gave you",
    "password: at least 8 characters",
    "The password must not be empty.",
    "Basic understanding of Python is required",
    "the bearer of this letter",
    "key: value pairs, such as a=1",
    "max_tokens=4096 tokens: 1234 total_tokens=99999",
    "usage: tool --key NAME --token-file FILE",
    "set API_KEY=<your key> or export TOKEN=$TOKEN",
    "api_key: ${API_KEY}, password: ********",
    "the token limit of claude-3-5-sonnet-20241022 is 8192 tokens",
    "press any key to continue",
    "secret: see https://docs.example/secrets",
    "const token = await getToken(session1)",
    "auth=oauth2 key=base64 hash=sha256",
    "cookie=none; path=/",
    "https://example.com/a?page=2&sort=asc&q=token",
    "https://example.com/oauth/authorize?response_type=code",
    "SELECT key, value FROM pairs WHERE token = ?",
    "meet me @ noon",
    "a@b",
    "<alice@host>",
    "100% of tokens used",
    "Authorization: none",
    "error: invalid token at line 3",
    "SyntaxError: Unexpected token '<', \"<!DOCTYPE\" is not valid JSON",
    "the key to success is patience",
    "Use the secret sauce recipe from grandma",
    "pip install secretstorage==3.3.3 cryptography==43.0.1",
    "commit 3f9a0c7 by release-bot-2",
    "img@2x.png icon@3x.webp",
    "npm i react@18.3.1 vue@3.4.1.min.js",
    "GET /users/search and POST /home/search",
    "<key>CFBundleVersion</key><string>4.2.1</string>",
    "\x1b[32mINFO\x1b[0m the tokens were counted: \x1b[1m8192\x1b[0m",
    "password_hash_rounds=12 cookie_max_age=3600",
]


def test_of_two_hundred_harmless_texts_at_most_two_are_taken(tmp_path):
    path = capture(tmp_path / "a.jsonl", *(frame(OUT, result(text)) for text in HARMLESS))
    found = {place.n for place in Scrub(path).places()}
    assert len({*HARMLESS, *map(json.dumps, HARMLESS_VALUES)}) >= 200
    assert len(found) <= 2, [HARMLESS[n - 5] for n in sorted(found)]


HARMLESS_VALUES = [
    {"progressToken": "abc-123"}, {"usage": {"input_tokens": 12345, "output_tokens": 99999}}, {"max_tokens": 4096},
    {"tokens": ["the", "cat", "sat"]}, {"token": "the"}, {"key": "ArrowDown"}, {"key": "name", "value": "x"},
    {"sort_key": "created_at"}, {"primaryKey": "id"}, {"nextCursor": "eyJwYWdlIjoyfQ"}, {"publicKey": "abc"},
    {"properties": {"password": {"type": "string", "description": "at least 8 characters"}}},
    {"inputSchema": {"type": "object", "properties": {"token": {"type": "string", "default": "x"}}}},
    {"signature": "def login(user, password)"}, {"password": ""}, {"password": None}, {"secret": True},
    {"api_key": "${API_KEY}"}, {"token": "<your token>"}, {"auth": "none"}, {"tokenizer": "cl100k_base"},
    {"author": "somebody"}, {"keyboard": "qwertz"}, {"sessionId": "abc"}, {"compass": "north"},
]  # fmt: skip


@each("value", HARMLESS_VALUES, ids=json.dumps)
def test_a_member_that_only_sounds_like_a_secret_stays(tmp_path, value):
    path = capture(tmp_path / "a.jsonl", frame(OUT, {"jsonrpc": "2.0", "id": 1, "result": value}))
    assert not list(Scrub(path).places())
