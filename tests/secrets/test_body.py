"""The content of a body decides whether it is redacted (A-08)."""

import json
from pathlib import Path

import pytest

from mcpspy.secrets.body import login_body, oauth_body, redacted_content
from mcpspy.secrets.redactor import Redactor, Withheld, is_oauth_endpoint, untitled
from tests.cases import pairs
from tests.each import each


def mark(_):
    return "M"


def shown(body):
    return login_body(body, mark).decode()


WITH_MARK = ('\ufeff {"token":"hunter2"}', '{"token": "M"}')


@each("body, expected", [WITH_MARK, *pairs(Path(__file__).parent / "cases" / "logins.txt")])
def test_a_login_is_redacted_wherever_it_was_sent(body, expected):
    assert shown(body.encode()) == expected


METADATA = {
    "issuer": "https://as.example",
    "authorization_endpoint": "https://as.example/authorize",
    "token_endpoint": "https://as.example/token",
    "registration_endpoint": "https://as.example/register",
    "jwks_uri": "https://as.example/jwks",
    "scopes_supported": ["mcp:read", "offline_access"],
    "response_types_supported": ["code"],
    "grant_types_supported": ["authorization_code", "refresh_token"],
    "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
    "token_endpoint_auth_signing_alg_values_supported": ["RS256"],
    "introspection_endpoint_auth_methods_supported": ["bearer"],
    "code_challenge_methods_supported": ["S256"],
    "tls_client_certificate_bound_access_tokens": True,
    "client_id_metadata_document_supported": True,
}
RESOURCE = {
    "resource": "https://mcp.example/mcp",
    "authorization_servers": ["https://as.example"],
    "bearer_methods_supported": ["header"],
    "scopes_supported": ["mcp:read"],
    "dpop_bound_access_tokens_required": False,
}


@pytest.mark.parametrize(
    "body",
    [
        json.dumps(METADATA).encode(),
        json.dumps(RESOURCE, indent=2).encode(),
        b'{"keys":[{"kty":"RSA","kid":"1","use":"sig","alg":"RS256","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQ","e":"AQAB"}]}',
        b'{"jsonrpc":"2.0","id":1,"result":{"token":"hunter2"}}',
        b'[{"jsonrpc":"2.0","id":1,"result":{"token":"hunter2"}}]',
        b'[{"jsonrpc":"2.0","id":1,"result":{}},{"token":"hunter2"}]',
        b'{"code":"NOT_FOUND","message":"no such session"}',
        b'{"error":"invalid_token","error_description":"The access token expired"}',
        b'{"client_id":"a","client_secret_expires_at":0,"redirect_uris":["http://127.0.0.1/cb"]}',
        b'{"max_tokens":5,"author":"x","keyboard":"y"}',
        b"a=b&session_id=1",
        b"[]",
        b"[1,2]",
        b'"hunter2"',
        b"not found",
        b"\xff\xfe",
        b"{",
        b"",
    ],
)
def test_any_other_body_stays_byte_for_byte(body):
    """OAuth metadata too, because rules read it."""
    assert login_body(body, mark) is body


def test_what_is_too_deep_to_tell_is_withheld_unless_it_is_a_message():
    deep = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
    assert login_body(deep, mark) is None
    assert Redactor().body_elsewhere(deep) == f"«withheld: {len(deep)} bytes»".encode()
    message = b'{"jsonrpc":"2.0","a":' + deep + b"}"
    assert login_body(message, mark) is message


@each(
    "target",
    """/token /oauth2/v1/Token?x=1 /register/ /introspect /login/oauth/access_token /oauth2/tokens /token;v=1?x
    /login/device/code /device/Code;v=1 /oauth2/v2.0/devicecode /%74oken /oauth/%72egister /a%2Ftoken /token.php
    /oauth/token.php?x=1 /%54OKEN/""".split(),
)
def test_an_oauth_endpoint_is_known_by_its_last_segment(target):
    """Also if it is percent-encoded."""
    assert is_oauth_endpoint(target)


@each("target", "/ /code /mcp /tokens/mcp /api/session /tokenizer /mcp?x=/token /?next=%2Ftoken /%".split())
def test_others_are_none(target):
    assert not is_oauth_endpoint(target)


def test_the_redactor_has_one_method_for_each_place():
    body = b'{"code":"hunter2"}'
    assert oauth_body(body, mark) == b'{"code": "M"}'
    assert Withheld().body(body) != body
    assert Withheld().body_elsewhere(body) is body


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('{"password": {"a": ["hunter2"]}, "b": 1}', '{"password": {"a": ["M"]}, "b": 1}'),
        ('{"kty": "oct", "k": "hunter2"}', '{"kty": "oct", "k": "M"}'),
        ('{"a":1.0}', '{"a":1.0}'),
        ("{password=hunter2", "{password=M"),
        ("see https://a.example/?token=hunter2", "see https://a.example/?token=M"),
    ],
)
def test_in_a_text_that_is_json_values_at_any_depth_are_redacted(text, clean):
    """A-13: what `otel` sends."""
    assert redacted_content(text, lambda _: "M") == clean


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('{"a": 1e400, "token": "hunter2"}', '{"a": 1e400, "token": "M"}'),
        (
            '{"a": [-0.10, 12345678901234567890123, NaN], "token": 7}',
            '{"a": [-0.10, 12345678901234567890123, NaN], "token": "M"}',
        ),
        ('{"token": "a", "token": "b", "c": 1, "c": 2}', '{"token": "M", "token": "M", "c": 1, "c": 2}'),
        ('{"token": {"a": "x", "a": true, "b": null}}', '{"token": {"a": "M", "a": true, "b": null}}'),
    ],
)
def test_digits_and_duplicate_members_stay(text, clean):
    """A-13: nothing but secrets changes, in what `otel` sends and in recorded bodies."""
    assert redacted_content(text, mark) == clean
    assert shown(text.encode()) == oauth_body(text.encode(), mark).decode() == clean


@pytest.mark.parametrize(
    ("page", "title"),
    [
        (b"<html><head><title>504 Gateway Time-out</title></head></html>", "504 Gateway Time-out"),
        (
            b'\n<!DOCTYPE html><TITLE class="a">\n  Sign in \xe2\x80\xa2 \xc2\xabX\xc2\xbb "Y"\n</TITLE>',
            "Sign in • 'X' 'Y'",
        ),
        (b"<title>" + b"a" * 300 + b"</title>", "a" * 80),
        (b"<title>" + b"a" * 3000 + b"</title>", ""),
        (b"<title>Success code=4/P7q7W91</title>", ""),
        (b"<title>Your code: 482913</title>", ""),
        (b"<title>ghp_0123456789abcdefghijABCDEFGHIJ012345</title>", ""),
        (b"<title>Session 3f2b8c1d9e7a4f60b1c2d3e4</title>", ""),
        (b"<title>no end", ""),
        (b"<p>no title</p>", ""),
        (b"<title" * 10_000, ""),
        (b"text <title>no page</title>", ""),
    ],
    ids=lambda it: repr(it[:30]),
)
def test_the_title_of_a_page_is_kept_unless_it_may_hold_a_secret(page, title):
    kept = f', title "{title}"' if title else ""
    assert Redactor().body(page) == f"«withheld: {len(page)} bytes{kept}»".encode()
    assert untitled(Redactor().body(page)) == f"«withheld: {len(page)} bytes»".encode()
