"""P-01: tool names, texts and tool counts at the limits of clients."""

import json

import pytest

from tests.rules.compat.test_limits import EMPTY, compat, listing

BEGIN = "= 2025-11-25\n"


@pytest.mark.parametrize(
    ("client", "taken", "refused"),
    [
        ("anthropic-api", ["x" * 128, "a-B_9"], ["x" * 129, "a.b", "a b", "ä", "", "a\n"]),
        ("bedrock-api", ["x" * 64], ["x" * 65, "a/b"]),
        ("claude-desktop", ["x" * 64], ["x" * 65, "a.b"]),
        ("cursor", ["x" * 58, "a.b"], ["x" * 59, ""]),
        ("gemini-api", ["x" * 64, "a.b:c-d", "_"], ["x" * 65, "1a", "-a", "a/b"]),
        ("openai-api", ["x" * 64], ["x" * 65, "a.b"]),
    ],
)
def test_names_at_the_limit_of_a_client(client, taken, refused):
    for name in (*taken, *refused):
        found = compat(BEGIN + listing({"name": name, "inputSchema": EMPTY}), client)
        assert [it.rule for it in found] == ["compat/tool-name"] * (name in refused), name


def test_a_long_name_is_told_with_its_length():
    (finding,) = compat(BEGIN + listing({"name": "x" * 65, "inputSchema": EMPTY}), "bedrock-api")
    assert finding.message.startswith(f'tool "{"x" * 59}…" has a name of 65 characters; expected a tool name')


def test_the_first_property_stands_for_all_of_a_tool():
    properties = {"id": {}, "$top": {}, "$skip": {}, "x" * 65: {}}
    (finding,) = compat(
        BEGIN + listing({"name": "a", "inputSchema": EMPTY | {"properties": properties}}), "anthropic-api"
    )
    assert finding.message.startswith('tool "a" has the property "$top"; expected property names that match')
    assert finding.pointer == "/result/tools/0/inputSchema/properties/$top"


def test_a_property_below_the_top_level_may_have_any_name():
    inner = {"type": "object", "properties": {"$top": {}}}
    text = listing({"name": "a", "inputSchema": EMPTY | {"properties": {"b": inner}}})
    assert compat(BEGIN + text, "anthropic-api") == []


def test_a_description_at_the_limit():
    for length, found in ((2048, []), (2049, ["compat/description-length"])):
        text = listing({"name": "a", "description": "ä" * length, "inputSchema": EMPTY})
        assert [it.rule for it in compat(BEGIN + text, "claude-code")] == found


def page(first, last, number, cursor=None, more=None):
    asked = f' {{"cursor":"{cursor}"}}' if cursor else ""
    tools = [{"name": f"t{n}", "inputSchema": EMPTY} for n in range(first, last)]
    result = {"tools": tools} | ({"nextCursor": more} if more else {})
    return f"> {number} tools/list{asked}\n< {number} = {json.dumps(result)}\n"


def test_the_tools_of_all_pages_count():
    text = BEGIN + page(0, 100, 2, more="x") + page(100, 129, 3, cursor="x")
    (finding,) = compat(text, "openai-api")
    assert (finding.frame, finding.message.partition(";")[0]) == (7, "the server lists 129 tools")
    assert compat(BEGIN + page(0, 100, 2, more="x") + page(100, 128, 3, cursor="x"), "openai-api") == []


def test_the_tools_of_each_of_several_listings_at_once_count_by_themselves():
    asked = [page(0, 50, n, more=f"c{n}") for n in (2, 3)] + [page(50, 100, n + 2, cursor=f"c{n}") for n in (2, 3)]
    assert compat(BEGIN + "".join(asked), "openai-api") == []
    more = page(0, 100, 2, more="c2") + page(0, 9, 3) + page(100, 129, 4, cursor="c2")
    assert [it.message[:28] for it in compat(BEGIN + more, "openai-api")] == ["the server lists 129 tools; "]


def test_of_listings_that_share_a_cursor_the_shorter_one_counts():
    first = page(0, 50, 2, more="x") + page(0, 100, 3, more="x")
    assert compat(BEGIN + first + page(50, 100, 4, cursor="x") + page(50, 100, 5, cursor="x"), "openai-api") == []


def test_too_many_tools_are_told_again_when_there_is_another_number_of_them():
    same = BEGIN + page(0, 129, 2) + page(0, 129, 3)
    assert [it.frame for it in compat(same, "openai-api")] == [5]
    more = same + page(0, 130, 4) + page(0, 3, 5)
    assert [it.frame for it in compat(more, "openai-api")] == [5, 9]


def test_two_numbers_of_tools_that_take_turns_are_told_once_each():
    """R-07."""
    text = BEGIN + "".join(page(0, size, number) for number, size in enumerate((129, 130) * 3, 2))
    assert [it.frame for it in compat(text, "openai-api")] == [5, 7]
