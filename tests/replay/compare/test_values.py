"""Values of two sessions: how they are aligned, what differs, and what looks volatile."""

import json
import random
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.replay.differences import ABSENT, Difference, Effort, aligned, by_order, differences, excerpt, step
from mcpspy.replay.volatile import looks_volatile
from tests.each import each

TEXTS = st.text(max_size=6) | st.sampled_from(['{"a":1}', "[1,2]", "{", "[", '{"a":{}}'])
LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(width=16) | TEXTS
NAMES = st.sampled_from("result error params tools name content isError nextCursor a b".split())
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=15,
)


def told(recorded, observed, **options):
    return [(it.pointer, it.recorded, it.observed) for it in differences(recorded, observed, **options)]


@each(
    "recorded, observed, expected",
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": True}, [("/a", 1, True)]),
        ({"a": 0}, {"a": False}, [("/a", 0, False)]),
        ({"a": None}, {}, [("/a", None, ABSENT)]),
        ({}, {"a": None}, [("/a", ABSENT, None)]),
        ({"a": [1, 2]}, {"a": [1]}, [("/a/1", 2, ABSENT)]),
        ({"a": {}}, {"a": []}, [("/a", {}, [])]),
        ({"a": {"b": 1, "c": 2}}, {"a": {"c": 3, "d": 4}}, [("/a/b", 1, ABSENT), ("/a/c", 2, 3), ("/a/d", ABSENT, 4)]),
        ({"a/b": 1}, {"a/b": 2}, [("/a~1b", 1, 2)]),
        ({"a": f"[{2**64}]"}, {"a": f"[{2**64 + 1}]"}, [("/a/0", 2**64, 2**64 + 1)]),
        ({"a": f"[{-(2**63) - 2}]"}, {"a": f"[{-(2**63) - 1}]"}, [("/a/0", -(2**63) - 2, -(2**63) - 1)]),
    ],
)
def test_differences_are_named_by_pointer_with_both_values(recorded, observed, expected):
    assert told(recorded, observed) == expected


def test_json_inside_text_is_compared_as_json():
    assert told({"text": '{"a": 1, "b": 2}'}, {"text": '{"b":2,"a":1}'}) == []
    assert told({"text": '{"a":1}'}, {"text": '{"a":2}'}) == [("/text/a", 1, 2)]
    assert told({"text": '{"a":1}'}, {"text": "none"}) == [("/text", '{"a":1}', "none")]
    assert told({"text": "12"}, {"text": "12.0"}) == [("/text", "12", "12.0")], "a bare number is a text"


def listing(*tools):
    return {"result": {"tools": [{"name": name, "description": about} for name, about in tools]}}


def test_listings_are_compared_by_name():
    before, now = listing(("a", "A"), ("b", "B")), listing(("new", "N"), ("b", "B"), ("a", "changed"))
    assert told(before, now) == [
        ("/result/tools/a/description", "A", "changed"),
        ("/result/tools/new", ABSENT, {"name": "new", "description": "N"}),
    ]


def test_a_listing_with_a_name_twice_is_compared_by_place():
    before, now = listing(("a", "A"), ("a", "B")), listing(("a", "A"), ("a", "C"))
    assert told(before, now) == [("/result/tools/1/description", "B", "C")]


CONTENT = [{"type": "text", "text": text} for text in ("one", "two", "three")]


@each(
    "recorded, observed, expected",
    [
        ([1, 2, 3], [0, 1, 2, 3], [("/a/0", ABSENT, 0)]),
        ([1, 2, 3], [1, 3], [("/a/1", 2, ABSENT)]),
        ([1, 2, 3], [1, 5, 3], [("/a/1", 2, 5)]),
        ([1, 2, 3], [3, 1, 2], [("/a/0", ABSENT, 3), ("/a/2", 3, ABSENT)]),
        ([1, 1, 2], [1, 2], [("/a/1", 1, ABSENT)]),
        (CONTENT, CONTENT[1:], [("/a/0", CONTENT[0], ABSENT)]),
        (CONTENT, [CONTENT[0], {"type": "text", "text": "2"}, CONTENT[2]], [("/a/1/text", "two", "2")]),
        ([{"x": 1}, {"y": 1}], [{"z": 1}, {"x": 2}, {"y": 2}],
         [("/a/0", ABSENT, {"z": 1}), ("/a/0/x", 1, 2), ("/a/1/y", 1, 2)]),
        ([{"id": 1, "v": "a"}, {"id": 2, "v": "b"}], [{"id": 3}, {"id": 2, "v": "B"}, {"id": 1, "v": "a"}],
         [("/a/1/v", "b", "B"), ("/a/0", ABSENT, {"id": 3})]),
        ([{"uri": "a:", "v": 1}, {"uri": "b:"}], [{"uri": "b:"}], [("/a/0", {"uri": "a:", "v": 1}, ABSENT)]),
        ([{"id": "f3", "v": 1}, {"id": "0c", "v": 2}], [{"id": "77", "v": 1}, {"id": "e1", "v": 2}],
         [("/a/0/id", "f3", "77"), ("/a/1/id", "0c", "e1")]),
        ("[1,2,3]", "[2,3]", [("/a/0", 1, ABSENT)]),
    ],
)  # fmt: skip
def test_the_items_of_arrays_are_aligned(recorded, observed, expected):
    """R-15: by name, uri or id, else by an edit script."""
    assert told({"a": recorded}, {"a": observed}) == expected


def test_the_arguments_of_prompts_and_other_named_items_within_a_listing_are_aligned():
    """R-15."""

    def prompts(*names):
        return {"result": {"prompts": [{"name": "p", "arguments": [{"name": name} for name in names]}]}}

    assert told(prompts("a", "b"), prompts("new", "a", "b")) == [
        ("/result/prompts/p/arguments/0", ABSENT, {"name": "new"})
    ]


def test_issued_values_are_compared_by_their_presence_alone():
    assert told({"result": {"nextCursor": "1"}}, {"result": {"nextCursor": "2"}}) == []
    assert told({"result": {"nextCursor": "1"}}, {"result": {}}) == [("/result/nextCursor", "1", ABSENT)]
    assert told({"result": {"task": {"taskId": "1", "createdAt": "a"}}}, {"result": {"task": {"taskId": "2"}}}) == []
    assert told({"params": {"taskId": "1"}}, {"params": {"taskId": "2"}}) == []
    assert told({"result": {"deep": {"taskId": "1"}}}, {"result": {"deep": {"taskId": "2"}}}) != []


def test_the_number_of_the_server_is_not_compared_but_its_name_is():
    before, now = ({"result": {"serverInfo": {"name": "a", "version": version}}} for version in ("1", "2"))
    assert told(before, now) == []
    now["result"]["serverInfo"]["name"] = "b"
    assert told(before, now) == [("/result/serverInfo/name", "a", "b")]


def test_a_tool_that_does_not_say_that_it_failed_has_not_failed():
    assert told({"result": {"isError": False}}, {"result": {}}) == []
    assert told({"result": {}}, {"result": {"isError": True}}) == [("/result/isError", False, True)]
    assert told({"result": {}}, {"result": {"isError": True}}, shape=True) == [("/result/isError", False, True)]


def test_inputs_with_other_names_are_compared_in_their_order():
    before = {"result": {"inputRequests": {"one": {"method": "roots/list"}}}}
    assert told(before, {"result": {"inputRequests": {"x7": {"method": "roots/list"}}}}) == []
    now = {"result": {"inputRequests": {"x7": {"method": "sampling/createMessage"}}}}
    assert [it.pointer for it in differences(before, now)] == ["/result/inputRequests/one/method"]


@each(
    "recorded, observed, pointers",
    [
        ({"a": 1}, {"a": 2.5}, []),
        ({"a": "x"}, {"a": 1}, ["/a"]),
        ({"a": None}, {"a": 1}, ["/a"]),
        ({"a": [1, 2, 3]}, {"a": [4]}, []),
        ({"a": []}, {"a": [{"b": 1}]}, []),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2}, {"b": 3}]}, []),
        ({"a": [{"b": 1}]}, {"a": [{"b": "x"}]}, ["/a/0/b"]),
        ({"a": [1, "x"]}, {"a": ["y", 2]}, []),
        ({"text": '{"a":1}'}, {"text": '{"a":2}'}, []),
        ({"text": '{"a":1}'}, {"text": '{"b":2}'}, ["/text/a", "/text/b"]),
        ({"a": [{"x": 1}, {"y": 1}]}, {"a": [{"b": 1}, {"x": 2}, {"y": 2}]}, ["/a/0"]),
    ],
)
def test_of_a_shape_only_the_structure_counts(recorded, observed, pointers):
    """R-15."""
    assert [it.pointer for it in differences(recorded, observed, shape=True)] == pointers


@given(JSON, st.booleans())
@example(float("nan"), False)
@example({"result": {"tools": [{"name": "a"}, {"name": "a"}]}}, False)
def test_nothing_differs_from_itself(value, shape):
    assert differences(value, value, shape=shape) == []
    copy = json.loads(json.dumps(value))
    assert differences(value, copy, shape=shape) == []


@given(JSON, JSON, st.booleans())
def test_what_differs_one_way_differs_the_other_way(one, other, shape):
    """Pointers are not compared: in an array, the pointer has the index of the recorded side."""
    there = sorted((repr(it.recorded), repr(it.observed)) for it in differences(one, other, shape=shape))
    back = sorted((repr(it.observed), repr(it.recorded)) for it in differences(other, one, shape=shape))
    assert there == back


@given(JSON, JSON)
def test_what_has_another_structure_is_another_value(one, other):
    if differences(one, other, shape=True):
        assert differences(one, other)


def test_a_depth_that_nobody_means_is_one_difference():
    deep = 1
    for _ in range(1200):
        deep = {"a": deep}
    assert [it.pointer for it in differences({"a": deep}, {"b": deep, "a": deep})] == [""]


def test_one_step_of_a_comparison_gives_the_parts_or_the_difference():
    assert step({"a": 1, "b": 2}, {"b": 3}, ()) == [("a", 1, ABSENT), ("b", 2, 3)]
    assert step("[1,2]", "[2]", ("a",)) == [(0, 1, ABSENT), (1, 2, 2)]
    assert step(1, 2, ("a",)) == Difference(("a",), 1, 2)
    assert step(1, 1.0, ("a",)) is None
    assert step("1", "2", ("result", "serverInfo", "version")) is None


def test_an_excerpt_is_one_short_line():
    assert excerpt({"a": "é\n"}) == '{"a":"é\\n"}'
    assert excerpt("x" * 100, 10) == '"xxxxxxxx…'
    assert excerpt(ABSENT) == "nothing"
    assert excerpt("\u202e") == '"\\u202e"'


def nested(levels, leaf, beside=()):
    """Return nested arrays with the same siblings at each level."""
    for _ in range(levels):
        leaf = [leaf, *beside]
    return leaf


def calls_of(action):
    """Return how many Python functions an action calls, as a measure that does not depend on the machine."""
    seen = 0

    def count(_frame, event, _argument):
        nonlocal seen
        seen += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return seen


@pytest.mark.parametrize("shape", [False, True])
def test_deep_arrays_take_no_more_than_their_depth_squared(shape):
    one, other = nested(40, 1), nested(40, "x")
    assert len(differences(one, other, shape=shape)) == 1
    assert calls_of(lambda: differences(one, other, shape=shape)) < 40 * 40 * 10


@pytest.mark.parametrize("shape", [False, True])
@pytest.mark.parametrize(
    "hostile",
    [
        lambda leaf: nested(50, [{"a": n, str(leaf): n} for n in range(300)], [0]),
        lambda leaf: [{f"k{n}": leaf, "b": [n]} for n in range(3000)],
        lambda leaf: {f"k{n}": [n, leaf] for n in range(3000)},
        lambda leaf: [json.dumps([json.dumps([leaf] * 1000)] * 5)] * 2,
    ],
)
def test_what_would_take_long_is_told_apart_by_less(monkeypatch, hostile, shape):
    monkeypatch.setattr(Effort.__init__, "__defaults__", (5000,))
    one, other = hostile(1), hostile("x")
    found = []
    assert calls_of(lambda: found.extend(differences(one, other, shape=shape))) < 400_000
    assert found
    assert differences(hostile(1), hostile(1), shape=shape) == []


def test_beyond_the_effort_items_are_told_apart_by_type_and_length():
    one, other = [{"a": 1}], [{"b": 1}, {"a": 1}]
    assert step(one, other, ("x",), effort=Effort(100)) == [(0, ABSENT, {"b": 1}), (0, {"a": 1}, {"a": 1})]
    effort = Effort(5)
    assert step(one, other, ("x",), effort=effort) == [(0, {"a": 1}, {"b": 1}), (1, ABSENT, {"a": 1})]
    assert effort.left <= 0
    assert not effort.allows(1)


def test_the_effort_is_counted_in_values_and_in_text():
    effort = Effort(100)
    assert effort.allows([1, {"a": 2}], "x" * 80)
    assert effort.left == 100 - 4 - 11
    assert not effort.allows([0] * 100)


ITEMS = st.lists(
    st.integers(0, 5) | st.fixed_dictionaries({"id": st.integers(0, 4), "v": st.integers(0, 2)}), max_size=8
)
KEYS = (json.dumps,)


@given(ITEMS, ITEMS)
def test_each_item_is_in_one_pair(one, other):
    """R-15."""
    for pairs in (aligned(one, other, KEYS), list(by_order(one, other, KEYS))):
        assert sorted(first for first, _ in pairs if first is not None) == list(range(len(one)))
        assert sorted(second for _, second in pairs if second is not None) == list(range(len(other)))


@given(ITEMS, ITEMS)
def test_two_arrays_the_other_way_round_give_the_same_pairs_the_other_way_round(one, other):
    """R-15."""
    back = {(first, second) for second, first in aligned(other, one, KEYS)}
    assert set(aligned(one, other, KEYS)) == back


@given(ITEMS)
def test_an_array_is_aligned_with_itself(items):
    """R-15."""
    assert sorted(aligned(items, list(items), KEYS)) == [(place, place) for place in range(len(items))]


@pytest.mark.parametrize("length", [20_000])
def test_a_long_array_takes_no_longer_than_sorting_it(length):
    """R-15: an edit script in quadratic time would practically not end."""
    one = list(range(length))
    other = one.copy()
    random.Random(1).shuffle(other)  # noqa: S311 (the same in every run)
    pairs = list(by_order(one, other, (str,)))
    assert len({first for first, _ in pairs} - {None}) == length
    changed = [*one[: length // 2], -1, *one[length // 2 :]]
    assert [pair for pair in by_order(one, changed, (str,)) if pair[0] is None] == [(None, length // 2)]


TEXT = ("result", "content", 0, "text")


@each(
    "recorded, observed",
    [
        ("2026-11-20T19:15:00.123Z", "2026-11-22T08:00:00.5Z"),
        ("It is 19:15 in Oslo", "It is 08:01 in Oslo"),
        ("2026-11-20 19:15:00+01:00", "2026-11-22 08:00:00+01:00"),
        ("Fri, 20 Nov 2026 19:15:00 GMT", "Sun, 22 Nov 2026 08:00:00 GMT"),
        ("done in 12.5 ms", "done in 9 ms"),
        ("1764000000123456789", "1764000000223456789"),
        ("job 3f0c2b1e-8a44-4f0e-9d3c-2b1e8a444f0e", "job 00000000-8a44-4f0e-9d3c-2b1e8a444f0f"),
        ("commit 3f0c2b1e8a", "commit 9d3c2b1e84"),
        ("token dGhpcyBpcyBub3QgYSB0b2tlbg1", "token aGhpcyBpcyBub3QgYSB0b2tlbg2"),
        (1764000000, 1764000123),
        (1764000000.25, 1764000123.5),
        (0.8444218515250481, 0.7579544029403025),
    ],
)
def test_times_and_ids_and_random_values_look_volatile(recorded, observed):
    """R-15."""
    assert looks_volatile(Difference(TEXT, recorded, observed))


@each("text", ["a-" * 49_000, "a1-" * 30_000, "1 " * 49_000, "1" * 99_000, "ab" * 49_000, "Mon " * 20_000])
def test_a_text_of_any_form_is_looked_at_in_a_moment(text):
    """R-15: servers may send any text."""
    assert looks_volatile(Difference(TEXT, f"{text} 12:00", f"{text} 12:01"))


@each("name", ["createdAt", "time", "request_id", "elapsedMs", "pid", "uptime"])
def test_the_name_of_a_member_can_tell_it(name):
    """R-15."""
    assert looks_volatile(Difference(("result", name), 5, 7))
    assert looks_volatile(Difference(("result", name), "a", "b"))
    assert not looks_volatile(Difference(("result", name, 0), 5, 7))


@each(
    "recorded, observed",
    [
        ("12 °C, light rain", "13 °C, light rain"),
        ("yes", "no"),
        ("It is 19:15 in Oslo", "It is 19:15 in Bergen"),
        (5, 7),
        (1.5, 2.5),
        (True, False),
        ("2026-11-20", 5),
        ("2026-11-20", ABSENT),
        (ABSENT, "2026-11-20"),
        ({"a": 1}, {"a": 2}),
        (None, "2026-11-20"),
        ("internationalization", "internationalisations"),
        ("x" * 1_000_000, "y" * 1_000_000),
    ],
)
def test_a_change_does_not_look_volatile(recorded, observed):
    """R-15."""
    assert not looks_volatile(Difference(TEXT, recorded, observed))


def test_a_revision_is_a_date_and_yet_not_volatile():
    path = ("result", "protocolVersion")
    assert not looks_volatile(Difference(path, "2025-06-18", "2025-11-25"))
