"""A-02: the most recently used entries are kept."""

import pytest

from mcpspy.conversation import bounds
from mcpspy.conversation.bounds import Recent


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setattr(bounds, "SESSIONS", 2)
    monkeypatch.setattr(bounds, "RESTING", 4)
    return Recent(lambda key, value: value.append("rests"), lambda key, value: value.append("gone"))


def test_entries_rest_and_then_go_in_the_order_of_their_use(table):
    values = {key: [key] for key in "abcde"}
    for key in "abc":
        table.add(key, values[key])
    assert list(table) == ["a", "b", "c"]
    assert values["a"] == ["a", "rests"]
    assert table.use("a") is values["a"]
    assert list(table) == ["b", "c", "a"]
    assert values["b"] == ["b", "rests"]
    for key in "de":
        table.add(key, values[key])
    assert list(table) == ["c", "a", "d", "e"]
    assert values["b"] == ["b", "rests", "gone"]
    assert len(table) == 4


def test_looking_is_not_use(table):
    for key in "abcde":
        table.add(key, [key])
        dict(zip(table, table.values(), strict=True)).get("b")
    assert dict(zip(table, table.values(), strict=True)).get("a") is None
    assert dict(zip(table, table.values(), strict=True)).get("b")[0] == "b"
    assert table.use("nothing") is None
    assert [value[0] for value in table.values()] == list(table) == ["b", "c", "d", "e"]


def test_what_is_finished_rests_next(table):
    for key in "ab":
        table.add(key, [key])
    table.finish("b")
    table.finish("nothing")
    table.add("c", ["c"])
    assert dict(zip(table, table.values(), strict=True)).get("b") == ["b", "rests"]
    assert dict(zip(table, table.values(), strict=True)).get("a") == ["a"]
