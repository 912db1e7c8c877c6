"""The estimate of how much of a model's context definitions use."""

import pytest

from mcpspy.cost import compact_size, context_size, encoded_size, fingerprint, tokens, tokens_text

TOOL = {"name": "forecast", "description": "Tells the weather.", "inputSchema": {"type": "object", "properties": {}}}
KEPT = {"title": "Forecast", "annotations": {"readOnlyHint": True}, "outputSchema": {"type": "object"}, "_meta": {}}


def test_a_token_is_four_bytes():
    assert (tokens(0), tokens(3), tokens(26), tokens(4.5)) == (0, 0, 6, 1)
    assert tokens_text(123_456) == "~30,864"


def test_a_model_gets_name_description_and_schema():
    assert context_size(TOOL | KEPT) == context_size(TOOL) == compact_size(TOOL)
    assert compact_size({"a": [1, "é"]}) == len('{"a":[1,"é"]}'.encode())


def test_definitions_that_say_the_same_have_one_fingerprint():
    turned = {**KEPT, "inputSchema": {"properties": {}, "type": "object"}, "description": "Tells the weather."}
    assert fingerprint(TOOL) == fingerprint(turned | {"name": "weather"}) != b""
    assert fingerprint(TOOL | {"description": "Tells it."}) not in (fingerprint(TOOL), b"")


@pytest.mark.parametrize("told", [None, [], 3, {}, {"name": "a"}, {"description": ""}])
def test_what_says_nothing_has_no_fingerprint(told):
    assert fingerprint(told) == b""
    assert context_size(told) <= 18


def test_what_cannot_be_written_counts_as_far_as_it_can():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    odd = {"description": "\ud800", "inputSchema": {"maximum": 10**40}}
    assert context_size(odd) > 40
    assert fingerprint(odd)
    assert compact_size(deep) == 0
    assert fingerprint({"description": "x", "inputSchema": deep}) == b""


@pytest.mark.parametrize(
    ("result", "size"),
    [
        ({"content": [{"type": "image", "data": "AAAA"}, {"type": "audio", "data": "BBBBBBBB"}]}, 12),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "CCCC"}}]}, 4),
        ({"contents": [{"uri": "a:b", "blob": "DDDD"}, {"uri": "a:c", "text": "DDDD"}]}, 4),
        ({"content": [{"type": "text", "text": "AAAA", "data": "AAAA"}]}, 0),
        ({"content": [{"type": "image", "data": 5}, "x", None, {"type": "image", "data": "\ud800"}]}, 6),
        ({"content": 5, "contents": {"blob": "A"}}, 0),
        (None, 0),
        ([], 0),
    ],
)
def test_v_05_base64_is_not_text(result, size):
    assert encoded_size(result) == size
    assert compact_size(result) >= size
