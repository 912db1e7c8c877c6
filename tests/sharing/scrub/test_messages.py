"""Values that are secret because of their place in a message."""

import json

from tests.each import each
from tests.sharing.scrub.captures import IN, OUT, call, capture, frame, frames, opened, scrubbed

VALUE = "redacted-value-1"


def arguments(tmp_path, value, **options):
    """Return the scrubbed arguments of a call."""
    (text,) = frames(capture(tmp_path / "a.jsonl", frame(IN, call(value))), **options)
    return json.loads(text)["params"]["arguments"]


@each(
    "value, new",
    [
        ({"password": "zebra"}, {"password": VALUE}),
        ({"pass\\u0077ord": "zebra"}, {"pass\\u0077ord": "zebra"}),
        ({"api_keys": {"openai": "ab", "n": [1, "cd"]}}, {"api_keys": {"openai": VALUE, "n": [1, "redacted-value-2"]}}),
        ({"credentials": {"type": "plain", "x": "ab"}}, {"credentials": {"type": "plain", "x": VALUE}}),
        ({"authorization": "Bearer abc"}, {"authorization": f"Bearer {VALUE}"}),
        ({"env": [{"name": "DB_PASS", "value": "ab"}]}, {"env": [{"name": "DB_PASS", "value": VALUE}]}),
        ({"env": [{"name": "PATH", "value": "ab"}]}, {"env": [{"name": "PATH", "value": "ab"}]}),
        ({"env": [{"value": "ab", "name": "DB_PASS"}]}, {"env": [{"value": VALUE, "name": "DB_PASS"}]}),
        ({"headers": [["X-Api-Key", "abc123"]]}, {"headers": [["X-Api-Key", VALUE]]}),
        (
            {"columns": ["user", "password", "pin"], "rows": [["bob", "zebra", 123456], ["al", "no", 7]]},
            {"columns": ["user", "password", "pin"], "rows": [["bob", VALUE, 100002], ["al", "no", 7]]},
        ),
        (
            {"fields": [{"name": "user"}, {"name": "password"}], "rows": [["bob", "zebra"]]},
            {"fields": [{"name": "user"}, {"name": "password"}], "rows": [["bob", VALUE]]},
        ),
        ([["user", "api_key"], ["bob", "a1b2c3d4"]], [["user", "api_key"], ["bob", VALUE]]),
        ([["password", "zebra"], ["user", "bob"]], [["password", "zebra"], ["user", "bob"]]),
        (
            {"pin": {"value": 123456, "at": 1700000000, "all": [[654321]]}},
            {"pin": {"value": 100001, "at": 1700000000, "all": [[100002]]}},
        ),
        ({"cookie": "^0.7.1", "path-key": "3.1.0"}, {"cookie": "^0.7.1", "path-key": "3.1.0"}),
        (
            {"rows": [["password", "username"], ["token", "cat"]]},
            {"rows": [["password", "username"], ["token", "cat"]]},
        ),
        (
            {"h": {"cookie": "sid=abc1234; a=1"}, "x": "sid abc1234"},
            {"h": {"cookie": VALUE}, "x": "sid redacted-value-2"},
        ),
        (
            {"h": {"authorization": "Basic Ym9iOmFiYzEyMzQ="}, "x": "as abc1234"},
            {"h": {"authorization": f"Basic {VALUE}"}, "x": "as redacted-value-2"},
        ),
        ({"apiKey": 123456789, "api_key": True}, {"apiKey": 100000001, "api_key": True}),
        ({"args": ["--api-key", "abcdefgh", "x"]}, {"args": ["--api-key", VALUE, "x"]}),
        ({"text": '{"password": "ab", "n": 1.0}'}, {"text": f'{{"password": "{VALUE}", "n": 1.0}}'}),
        ({"text": '["{\\"password\\": \\"ab\\"}"]'}, {"text": f'["{{\\"password\\": \\"{VALUE}\\"}}"]'}),
        ({"pin": 4711, "otp": 12, "tokens": 5000}, {"pin": 1001, "otp": 12, "tokens": 5000}),
        ({"password": 47.5, "secret": True, "pwd": None}, {"password": 47.5, "secret": True, "pwd": None}),
        ({"token": "the", "key": "ArrowDown"}, {"token": "the", "key": "ArrowDown"}),
        ({"token": "swordfish", "key": "Zk39dKw02Lq8Xm4P"}, {"token": VALUE, "key": "redacted-value-2"}),
        ({"properties": {"password": {"type": "string"}}}, {"properties": {"password": {"type": "string"}}}),
        ({"properties": {"password": "ab"}}, {"properties": {"password": VALUE}}),
        ({"file:///home/bob/a": 1}, {"file:///home/user-1/a": 1}),
        ({"kty": "oct", "k": "ab", "kid": "a"}, {"kty": "oct", "k": VALUE, "kid": "a"}),
        ({"d": "ab", "kty": "EC", "x": "b"}, {"d": VALUE, "kty": "EC", "x": "b"}),
        ({"d": "ab", "x": "b"}, {"d": "ab", "x": "b"}),
        (
            {"SecretString": "ab", "client-key-data": "cd"},
            {"SecretString": VALUE, "client-key-data": "redacted-value-2"},
        ),
        (
            {"Passwort": "ab", "senha": "cd", "resenha": "e"},
            {"Passwort": VALUE, "senha": "redacted-value-2", "resenha": "e"},
        ),
        ({"mnemonic": "a " * 12}, {"mnemonic": VALUE}),
        ({"mnemonic": "mov", "operands": ["eax"]}, {"mnemonic": "mov", "operands": ["eax"]}),
        ({"keyName": "key1", "value": "Zk39dKw02Lq8Xm4P"}, {"keyName": "key1", "value": VALUE}),
        ({"credentials": {"type": "hunter2a", "format": "uri"}}, {"credentials": {"type": VALUE, "format": "uri"}}),
        ({"schema": {"password": "ab"}}, {"schema": {"password": VALUE}}),
        (
            {"schema": {"properties": {"pwd": {"default": "hunter2"}, "a": {"default": {"pwd": "ab"}}}}},
            {"schema": {"properties": {"pwd": {"default": VALUE}, "a": {"default": {"pwd": "redacted-value-2"}}}}},
        ),
        ({"id": "ab", "method": "cd", "password": "ab"}, {"id": VALUE, "method": "cd", "password": VALUE}),
    ],
)
def test_a_value_is_replaced_by_its_place(tmp_path, value, new):
    assert arguments(tmp_path, value) == new


_PAGE = {"properties": {"API Key": {"type": "rich_text", "rich_text": [{"text": {"content": "zebra"}}]}}}
_SHAPE = {"type": "object", "properties": {"password": {"type": "string", "pattern": "[a-z1]{9}", "minLength": 1000}}}
_TOKEN = "Zk39dKw02Lq8Xm4P"


@each(
    "value, secret",
    [
        (_PAGE, "zebra"),
        ({"properties": {"pwd": {"credentials": {"title": "zebra1b", "x": "zebra1b"}}}}, "zebra1b"),
        ({"schema": {"credentials": {"value": "zebra"}}}, "zebra"),
        ({"schema": {"type": "object", "credentials": {"value": "zebra"}}}, "zebra"),
        ({"schema": {"type": "object", "items": {"credentials": {"value": "zebra"}}}}, "zebra"),
        ({"credentials": {"schema": {"type": "string", "const": "zebra"}}}, "zebra"),
        ({"properties": {"password": {"type": "string", "example": "hunter2"}}}, "hunter2"),
        ({"tokens": [_TOKEN]}, _TOKEN),
        ({"keys": [[_TOKEN]]}, _TOKEN),
        ({"key": {"openai": _TOKEN}}, _TOKEN),
        ({"signature": {"parts": [{"x": "a", "part": _TOKEN}]}}, _TOKEN),
        ({"token": ["swordfish"]}, "swordfish"),
        ({"auth": {"basic": "hunter2a"}}, "hunter2a"),
        ({"pass": [["hunter2a"]]}, "hunter2a"),
        ({"pat": {"github": "hunter2a"}}, "hunter2a"),
        ({"label": "password", "value": "zebra"}, "zebra"),
        ({"value": "zebra", "label": "password"}, "zebra"),
        ({"name": "password", "label": "Name", "value": "zebra"}, "zebra"),
        ({"password": "$ecretPass9"}, "$ecretPass9"),
    ],
)
def test_a_value_in_what_is_no_schema_in_a_list_or_beside_a_label_is_replaced(tmp_path, value, secret):
    """A-13, A-17."""
    assert secret not in json.dumps(arguments(tmp_path, value))


@each(
    "value",
    [
        {"schema": _SHAPE},
        {"function": {"parameters": _SHAPE}},
        {"components": {"schemas": {"User": _SHAPE | {"required": ["password"], "x-order": "a"}}}},
        {"token": ["the"], "tokens": ["international", "words"]},
        {"token": {"text": "international", "start": 100000}},
        {"keys": [{"kid": _TOKEN, "n": _TOKEN, "kty": "RSA", "x5c": [_TOKEN]}]},
        {"auth": {"type": "oauth2", "url": "https://a1.example/b2", "scopes": ["read:user", "write:repo"]}},
        {"signature": {"name": _TOKEN, "parameters": ["first_name", "last_name"]}},
        {"options": [{"label": "API Key", "value": "api_key"}, {"value": "api_key", "label": "API Key"}]},
        {
            "progressToken": 12345678,
            "nextPageToken": 12345678,
            "token": 15339,
            "max_token": 4096,
            "max_tokens": 100000,
            "spinning": 12345,
        },
        {"accessToken": {"exp": 1700000000, "nbf": 1700000000}},
        {"password": 12.5, "pin": [1, 2]},
    ],
)
def test_a_schema_and_ordinary_words_stay(tmp_path, value):
    """A-13."""
    assert arguments(tmp_path, value) == value


@each(
    "value, new",
    [
        ({"pin": -123456}, {"pin": -100001}),
        ({"pin": 987654.25}, {"pin": 100000.01}),
        ({"pin": -0.98765432}, {"pin": -1.00000001}),
        ({"pins": [4711, 4712]}, {"pins": [1001, 1002]}),
        ({"passwords": [796318584]}, {"passwords": [100000001]}),
        ({"credential": 796318584}, {"credential": 100000001}),
        ({"credentials": {"a": 796318584, "port": 54321}}, {"credentials": {"a": 100000001, "port": 54321}}),
        ({"token": 796318584, "tokens": [796318584]}, {"token": 100000001, "tokens": [100000001]}),
        ({"token": [796318]}, {"token": [100001]}),
        ({"properties": {"pin": {"number": 796318}}}, {"properties": {"pin": {"number": 100001}}}),
    ],
)
def test_a_number_is_replaced_by_one_of_its_type(tmp_path, value, new):
    """A-13."""
    once = arguments(tmp_path, value)
    assert once == new
    assert list(map(type, once.values())) == list(map(type, value.values()))
    assert arguments(tmp_path, once) == new


def test_an_escaped_name_is_decoded_first(tmp_path):
    text = r'{"jsonrpc":"2.0","id":1,"result":{"pass\u0077ord":"zebra"}}'
    assert frames(capture(tmp_path / "a.jsonl", frame(OUT, text))) == [text.replace("zebra", VALUE)]


def test_words_of_the_protocol_stay_whatever_they_are(tmp_path):
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"password": "ping", "x": "ping", "type": "text"}}
    new = json.loads(frames(capture(tmp_path / "a.jsonl", frame(IN, message)))[0])
    message["params"] |= {"password": VALUE, "x": VALUE}
    assert new == message


def test_an_id_that_is_a_secret_is_replaced_alike_in_every_place(tmp_path):
    """A-13: pairing needs equal ids, not these ids."""
    message = {
        "jsonrpc": "2.0", "id": "swordfish", "method": "swordfish",
        "params": {"password": "swordfish", "requestId": "swordfish", "protocolVersion": "swordfish",
                   "_meta": {"progressToken": "swordfish"}, "progressToken": "swordfish", "x": "swordfish"},
    }  # fmt: skip
    new = frames(capture(tmp_path / "a.jsonl", frame(IN, message), frame(IN, [message])))
    wanted = json.dumps(message).replace("swordfish", VALUE)
    assert new == [wanted, f"[{wanted}]"]


def test_in_a_schema_names_are_no_evidence_and_tokens_and_known_values_are(tmp_path):
    token = "gh" + "p_" + "a1B2" * 9
    schema = {
        "type": "object", "required": ["password"],
        "properties": {"password": {"type": "string", "default": "zebra", "enum": [token, "swordfish"]}},
    }  # fmt: skip
    tools = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "inputSchema": schema}]}}
    used = call({"password": "swordfish"})
    new = json.loads(frames(capture(tmp_path / "a.jsonl", frame(OUT, tools), frame(IN, used)))[0])
    schema["properties"]["password"]["enum"] = ["redacted-github-token-1", VALUE]
    assert new == tools


def test_a_request_state_is_renamed_alike_on_its_way_back(tmp_path):
    asked = {"jsonrpc": "2.0", "id": 1, "result": {"resultType": "input_required", "requestState": "[]"}}
    back = call({}, requestState="[]")
    new = list(map(json.loads, frames(capture(tmp_path / "a.jsonl", frame(OUT, asked), frame(IN, back)))))
    assert new[0]["result"]["requestState"] == new[1]["params"]["requestState"] == "state-1"


@each(
    "keep, kept",
    [("/params/arguments/password", True), ("/params", True), ("", True), ("/params/arguments/pass", False),
     ("/params/arguments/password/0", False), ("/0", False), ("/params/arguments/a~1b", False)],
)  # fmt: skip
def test_what_stands_at_a_kept_pointer_stays(tmp_path, keep, kept):
    assert (arguments(tmp_path, {"password": "zebra"}, keep=(keep,)) == {"password": "zebra"}) == kept


def test_a_kept_value_is_not_learned(tmp_path):
    value = {"password": "correct-horse-99", "x": "correct-horse-99"}
    assert arguments(tmp_path, value, keep=("/params/arguments/password",)) == value


def test_the_name_of_a_tool_that_is_a_secret_is_replaced_alike_in_listing_call_and_head(tmp_path):
    """A-13."""
    listing = {"jsonrpc": "2.0", "id": 2, "result": {"tools": [{"name": "search"}]}}
    request = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "search"}}
    head = {"method": "POST", "target": "/", "headers": [["Mcp-Name", "search"], ["Mcp-Method", "tools/call"]]}
    path = capture(
        tmp_path / "a.jsonl", opened(5, "client", "request", "body", head=head),
        frame(IN, call({"password": "search", "pwd": "tools/call"})), frame(OUT, listing), frame(IN, request),
    )  # fmt: skip
    lines = list(map(json.loads, scrubbed(path)))
    assert lines[4]["head"]["headers"] == [["Mcp-Name", VALUE], ["Mcp-Method", "tools/call"]]
    assert json.loads(lines[6]["raw"])["result"]["tools"] == [{"name": VALUE}]
    assert json.loads(lines[7]["raw"]) == request | {"params": {"name": VALUE}}


def test_a_property_that_is_a_secret_is_replaced_alike_in_schema_and_call(tmp_path):
    """A-13: `required` still names a property."""
    schema = {"type": "object", "required": ["zebra"], "properties": {"zebra": {"type": "string"}}}
    tools = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "a", "inputSchema": schema}]}}
    path = capture(tmp_path / "a.jsonl", frame(OUT, tools), frame(IN, call({"password": "zebra", "zebra": 1})))
    (listed, called) = map(json.loads, frames(path))
    assert listed["result"]["tools"][0]["inputSchema"]["required"] == [VALUE]
    assert list(listed["result"]["tools"][0]["inputSchema"]["properties"]) == [VALUE]
    assert called["params"]["arguments"] == {"password": VALUE, VALUE: 1}


def test_a_number_that_was_a_password_is_replaced_elsewhere(tmp_path):
    texts = frames(
        capture(tmp_path / "a.jsonl", frame(IN, call({"password": 47112233})), frame(IN, call({"x": 47112233})))
    )
    assert [json.loads(text)["params"]["arguments"] for text in texts] == [{"password": 10000001}, {"x": 10000001}]


def test_a_schema_stays_consistent_if_a_secret_is_a_word_of_the_specification(tmp_path):
    """A-13: `required` has the names that `properties` has."""
    schema = {
        "type": "object",
        "properties": {"arguments": {"type": "string"}, "annotations": {}, "hunter2hunter": {}},
        "required": ["arguments", "annotations", "hunter2hunter"],
        "dependentRequired": {"arguments": ["annotations"]},
    }
    named = call({"password": "arguments", "secret": "annotations", "token": "hunter2hunter"})
    path = capture(tmp_path / "a.jsonl", frame(OUT, {"inputSchema": schema}), frame(IN, named))
    new = json.loads(frames(path)[0])["inputSchema"]
    assert new["required"] == list(new["properties"]) == ["arguments", "annotations", "redacted-value-3"]
    assert new["dependentRequired"] == {"arguments": ["annotations"]}
