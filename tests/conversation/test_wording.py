"""The texts that count as the wording of a definition, and the display of the place where two texts differ."""

import pytest

from mcpspy.conversation.wording import DEEPEST, apart, reworded

PLACE = {"type": "object", "properties": {"city": {"type": "string", "description": "A city"}}}
TOOL = {"name": "get", "description": "The weather", "inputSchema": PLACE, "annotations": {"readOnlyHint": True}}


def pointers(old, new):
    return ["/".join(map(str, it.path)) for it in reworded(old, new)]


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"description": "Send mail"}, ["description"]),
        ({"title": "Weather"}, ["title"]),
        ({"annotations": {"readOnlyHint": False}}, ["annotations"]),
        ({"annotations": None}, ["annotations"]),
        ({"_meta": {"description": "x"}}, []),
        ({"icons": [{"title": "x"}]}, []),
        ({"inputSchema": {"type": "object"}}, []),
        ({"inputSchema": PLACE | {"description": "Where"}}, ["inputSchema/description"]),
        ({"inputSchema": PLACE | {"required": ["city"]}}, []),
    ],
)
def test_words_are_told_from_all_else(changed, found):
    assert pointers(TOOL, TOOL | changed) == found


@pytest.mark.parametrize("member", ["description", "$comment", "title", "default", "examples"])
def test_the_words_of_an_argument_count(member):
    old = {"inputSchema": {"properties": {"city": {member: "old"}}}}
    new = {"inputSchema": {"properties": {"city": {member: "new"}}}}
    assert pointers(old, new) == [f"inputSchema/properties/city/{member}"]


@pytest.mark.parametrize("name", ["description", "default", "title", "examples"])
def test_an_argument_may_be_called_as_what_holds_words(name):
    old = {"inputSchema": {"properties": {name: {"type": "string"}}}}
    new = {"inputSchema": {"properties": {name: {"type": "integer"}}}}
    assert pointers(old, new) == []


def test_arguments_of_a_prompt_are_told_apart_by_name():
    old = {"arguments": [{"name": "a", "description": "A"}, {"name": "b", "description": "B"}]}
    assert pointers(old, {"arguments": old["arguments"][::-1]}) == []
    new = {"arguments": [{"name": "b", "description": "other"}, {"name": "a", "description": "A"}]}
    assert pointers(old, new) == ["arguments/0/description"]
    assert pointers(old, {"arguments": [*old["arguments"], {"name": "c", "description": "C"}]}) == []


def test_depth_is_bounded():
    def deep(text, levels):
        value = {"description": text}
        for _ in range(levels):
            value = {"items": value}
        return value

    assert pointers(deep("a", DEEPEST - 1), deep("b", DEEPEST - 1))
    assert pointers(deep("a", 5000), deep("b", 5000)) == []


def test_two_texts_are_shown_from_where_they_part():
    assert apart("one", None) == ('"one"', "nothing")
    same = "x" * 500
    old, new = apart(f"{same} end", f"{same} other {same}")
    assert old == f'…{"x" * 29} end"'
    assert new.startswith(f"…{'x' * 29} other xxx")
    assert len(new) == 120
