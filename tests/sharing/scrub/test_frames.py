"""Frames of every framing."""

import json

import pytest

from mcpspy.sharing.scrub.lines import blank
from mcpspy.wire.jsonrpc import outline
from tests.each import each
from tests.sharing.scrub.captures import ERR, OUT, call, capture, frame, frames, opened, result

V = "redacted-value-1"
SSE = opened(5, "server", "response", "sse")


def events(tmp_path, *blocks):
    return frames(capture(tmp_path / "a.jsonl", SSE, *(frame(5, block) for block in blocks)))


@each(
    "block, new",
    [
        ('data: {"password":"ab"}\n', f'data: {{"password":"{V}"}}\n'),
        ('event: message\r\nid: 1\r\ndata:{"password":"ab"}\r\n',
         f'event: message\r\nid: 1\r\ndata:{{"password":"{V}"}}\r\n'),
        ('data: {"password":\rdata: "ab"}\r', f'data: {{"password":\rdata: "{V}"}}\r'),
        ('\ufeffdata: {"password":"ab"}', f'\ufeffdata: {{"password":"{V}"}}'),
        ("event: endpoint\ndata: /m?session_id=abc\n", "event: endpoint\ndata: /m?session_id=session-1\n"),
        (": token=abc123\nretry: 10\n", f": token={V}\nretry: 10\n"),
        ("password: hunter2\nx=1&password=hunter2", f"password: {V}\nx=1&password={V}"),
        ("data\ndata: password=abc123\ndata:\n", f"data\ndata: password={V}\ndata:\n"),
        ("data: not json {\n", "data: not json {\n"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_message_of_an_event_is_scrubbed_in_its_lines(tmp_path, block, new):
    assert events(tmp_path, block) == [new]


def test_an_id_of_an_event_that_holds_the_session_id_is_renamed(tmp_path):
    session = "0123456789abcdef0123456789abcdef"
    endpoint = f"event: endpoint\ndata: /messages?session_id={session}\n"
    assert events(tmp_path, endpoint, f"id: {session}_1\ndata: 1\n")[1] == "id: session-1_1\ndata: 1\n"


def test_a_private_key_on_several_lines_of_stderr_is_taken_out(tmp_path):
    key = ["MIIEowIBAAKCAQEAx1", "short", "Proc-Type: 4,ENCRYPTED", ""]
    lines = [
        "-----BEGIN RSA PRIVATE KEY-----",
        *key,
        "-----END RSA PRIVATE KEY-----",
        "other",
        "-----BEGIN PUBLIC KEY-----",
        "abc",
    ]
    found = frames(capture(tmp_path / "a.jsonl", *(frame(ERR, line) for line in lines), frame(ERR, key[0])))
    label = "redacted-private-key-line-"
    assert found == [
        lines[0], f"{label}1", f"{label}2", f"{label}3", "", lines[5], "other", lines[7], "abc", f"{label}1"
    ]  # fmt: skip


@each(
    "before, after",
    [("[srv] ", ""), ("'", "',"), ('"', '\\n" +'), ("\x1b[32m", "\x1b[0m"), ("2026-11-29 (1) | ", ""), ("> ", "  ")],
)
def test_a_private_key_with_something_around_its_lines_is_taken_out(tmp_path, before, after):
    """A-17: also if other lines stand between them, and up to its last line."""
    key = ["MIIEowIBAAKCAQEAx1", "q83vEjRWeJCrze8SNFZ4kKvN", "Zk39dw=="]
    lines = ["-----BEGIN RSA PRIVATE KEY-----", *key, "-----END RSA PRIVATE KEY-----"]
    around = [f"{before}{line}{after}" for line in lines]
    other = ["[http] GET / (200)", '{"message":"international-conversation"}']
    after_it = f"[srv] {'q83vEjRWeJCrze8S'.lower()}"
    written = [*around[:2], *other, *around[2:], after_it]
    found = frames(capture(tmp_path / "a.jsonl", *(frame(ERR, line) for line in written)))
    assert not [part for part in key if part in "".join(found)]
    assert found[2:4] == other
    assert found[-1] == after_it


def test_a_private_key_in_a_string_is_taken_out_whole(tmp_path):
    key = "-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKCAQEAx1\nabcdefgh\n-----END PRIVATE KEY-----"
    (text,) = frames(capture(tmp_path / "a.jsonl", frame(OUT, result(f"the key\n{key}\nends"))))
    assert json.loads(text)["result"]["content"][0]["text"] == "the key\nredacted-private-key-pem-1\nends"


@each(
    "text, new",
    [
        ('{"password":"ab"}', f'{{"password":"{V}"}}'),
        ('\ufeff{"password":"ab"}', f'\ufeff{{"password":"{V}"}}'),
        (' [{"password":"ab"}]\r', f' [{{"password":"{V}"}}]\r'),
        ('{"password":"ab"} x', f'{{"password":"{V}"}} x'),
        ('{"password":"abcdef12', f'{{"password":"{V}'),
        ('{"a":1,}{"password":"ab"}', f'{{"a":1,}}{{"password":"{V}"}}'),
        ("token=abc123", f"token={V}"),
        ("", ""),
    ],
)
def test_a_line_that_is_json_or_not_is_scrubbed(tmp_path, text, new):
    assert frames(capture(tmp_path / "a.jsonl", frame(OUT, text))) == [new]


def test_a_form_is_scrubbed_from_its_first_field_on(tmp_path):
    body = opened(5, "client", "request", "body")
    assert frames(capture(tmp_path / "a.jsonl", body, frame(5, "password=a+b&x=1"))) == [f"password={V}&x=1"]


@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc":"2.0","id":7,"result":{"x":"SECRETS"}}',
        '{"result":{"x":"SECRETS"},"id":"seven","jsonrpc":"2.0"}',
        '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"read","arguments":{"x":"SECRETS"}}}',
        '{"params":{"name":"read","x":"SECRETS"},"method":"tools/call","id":7}',
        '{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"SECRETS"}}',
        "SECRETS",
    ],
)
@pytest.mark.parametrize("event", ["", "data: "])
def test_a_blank_frame_has_the_size_and_the_outline_of_the_original(message, event):
    ending = "\r\n" if event else ""
    raw = (event + message.replace("SECRETS", "secret " * 30_000) + ending).encode()
    pieces = [raw[:65536], raw[65536:131072], raw[131072:]]
    new = [blank(piece, first=n == 0, last=n == 2) for n, piece in enumerate(pieces)]
    assert [*map(len, new)] == [*map(len, pieces)]
    assert b"secret" not in b"".join(new)
    told = [outline(it[0].removeprefix(event.encode()), it[-1].rstrip()) for it in (pieces, new)]
    assert type(told[0]) is type(told[1])
    for name in ("id", "method"):
        assert getattr(told[0], name, None) == getattr(told[1], name, None)


def test_a_message_of_a_websocket_is_scrubbed(tmp_path):
    socket = opened(5, "client", "ws", "message")
    (text,) = frames(capture(tmp_path / "a.jsonl", socket, frame(5, call({"password": "ab"}))))
    assert json.loads(text)["params"]["arguments"] == {"password": V}


def test_a_netrc_on_several_lines_of_stderr_loses_its_password(tmp_path):
    """A-17."""
    lines = [
        "machine h.example",
        "  login bob",
        "  password zebra",
        "password required",
        "login bob",
        "x",
        "password is",
    ]
    found = frames(capture(tmp_path / "a.jsonl", *(frame(ERR, line) for line in lines)))
    assert found == [line.replace("zebra", V) for line in lines]
