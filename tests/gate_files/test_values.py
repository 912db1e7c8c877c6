import datetime as dt
import json
import math

import pytest

from mcpspy.gate_files import values


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("500ms", 500_000_000), ("2s", 2_000_000_000), ("1.5s", 1_500_000_000), ("100us", 100_000), ("2 S", 2 * 10**9)],
)
def test_a_duration_becomes_nanoseconds(text, nanoseconds):
    assert values.duration(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "rate"), [("10kB/s", 10_000), ("1KiB/s", 1024), ("1.5MB/s", 1_500_000), ("64B/s", 64), ("1MiB/s", 1 << 20)]
)
def test_a_rate_becomes_bytes_per_second(text, rate):
    assert values.rate(text) == rate


@pytest.mark.parametrize(
    "value", ["2", "2h", "-2s", "0s", "0.0001us", "s", "99999s", "1e3s", "", 2, 2.5, True, None, []]
)
def test_what_is_no_duration_is_refused(value):
    with pytest.raises(ValueError, match=r"it is .*; (write a time with its unit|it must be more than 0)"):
        values.duration(value)


@pytest.mark.parametrize("value", ["10kB", "10", "0B/s", "kB/s", "9999999MB/s", 10])
def test_what_is_no_rate_is_refused(value):
    with pytest.raises(ValueError, match=r"it is .*; (write a rate with its unit|it must be more than 0)"):
        values.rate(value)


@pytest.mark.parametrize("value", [0, 11, 5.0, True, "5"])
def test_what_is_no_whole_number_of_a_range_is_refused(value):
    with pytest.raises(ValueError, match="; write a whole number from 1 to 10"):
        values.whole(1, 10)(value)
    assert values.whole(1, 10)(5) == 5


@pytest.mark.parametrize("value", [-0.1, 1.5, math.nan, "0.2", True])
def test_what_is_no_share_is_refused(value):
    with pytest.raises(ValueError, match="; write a number from 0 to 1"):
        values.share(value)
    assert values.share(0.2) == 0.2


def test_of_some_words_the_nearest_is_named():
    read = values.one_of("not-json", "bom")
    assert read("bom") == "bom"
    with pytest.raises(ValueError, match="it is \"not_json\"; did you mean 'not-json'"):
        read("not_json")
    with pytest.raises(ValueError, match="it is 7; it takes not-json, bom"):
        read(7)


@pytest.mark.parametrize(("read", "value"), [
    (values.true, False), (values.true, 1), (values.text, ""), (values.text, 1), (values.texts, []),
    (values.texts, ["a", 1]), (values.seed, 1.5), (values.seed, True), (values.seed, 1 << 64),
])  # fmt: skip
def test_what_a_reader_does_not_take_is_refused(read, value):
    with pytest.raises(ValueError, match="; write "):
        read(value)


@pytest.mark.parametrize(("read", "value"), [
    (values.true, True), (values.text, "a"), (values.texts, ""), (values.texts, ["a", "b"]), (values.seed, 7),
    (values.seed, "x"),
])  # fmt: skip
def test_what_a_reader_takes_stays_as_it_is(read, value):
    assert read(value) == value


def test_an_answer_becomes_json_that_keeps_whole_numbers_and_others_apart():
    assert values.answer({"result": {"a": 1, "b": 1.0, "c": "é", "d": [True]}}) == (
        '{"result":{"a":1,"b":1.0,"c":"é","d":[true]}}'
    )
    assert json.loads(values.answer({"error": {"code": -1, "message": "no"}}))["error"]["code"] == -1


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("x", "write a table with result or error"),
        ({}, "write a table with result or error"),
        ({"result": 1, "error": 2}, "write a table with result or error"),
        ({"result": 1, "id": 2}, 'the unknown key "id"; it takes result or error'),
        ({"result": dt.date(2026, 1, 1)}, "a date or time, which JSON does not have"),
        ({"result": math.inf}, "a number that JSON cannot hold"),
        ({"result": 16**9999}, "a number that JSON cannot hold"),
    ],
)
def test_what_is_no_answer_is_refused(value, what):
    with pytest.raises(ValueError, match=what):
        values.answer(value)


PATCH = [
    {"op": "add", "path": "/a/-", "value": None},
    {"op": "remove", "path": "/a~1b"},
    {"op": "replace", "path": "", "value": {}},
    {"op": "move", "from": "/a", "path": "/b"},
    {"op": "copy", "from": "/a", "path": "/b"},
    {"op": "test", "path": "/a", "value": 1.5},
]


def test_a_json_patch_stays_as_it_is():
    assert values.edits(PATCH) == PATCH


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ({"op": "remove"}, 'it is {"op": …}; write an array of operations'),
        ([], r"it is \[\]; write an array of operations"),
        (["x"], "write an array of operations"),
        ([{}], "operation 1: it has no op; it takes add, replace, test, remove, move, copy"),
        ([PATCH[0], {"op": "rename"}], "operation 2: op is \"rename\"; did you mean 'remove'"),
        ([{"op": "add", "path": "/a"}], "add needs value; it takes path and value"),
        ([{"op": "add", "path": "/a", "vaule": 1}], "add takes no \"vaule\"; did you mean 'value'"),
        ([{"op": "remove"}], "remove needs path"),
        ([{"op": "move", "path": "/a"}], "move needs from"),
        ([{"op": "remove", "path": 1}], "path is 1; write a JSON Pointer in quotes"),
        ([{"op": "remove", "path": "a"}], "a JSON Pointer begins with /"),
        ([{"op": "remove", "path": "/a~2"}], "a JSON Pointer begins with /"),
        ([{"op": "move", "from": "a", "path": "/a"}], "a JSON Pointer begins with /"),
        ([{"op": "add", "path": "/a", "value": dt.time(1)}], "a date or time, which JSON does not have"),
    ],
)
def test_what_is_no_json_patch_is_refused(value, what):
    with pytest.raises(ValueError, match=what):
        values.edits(value)


@pytest.mark.parametrize("text", ["0", "-0", "10", "1.5", "1e5", "-1.50E+3"])
def test_numbers_of_json(text):
    assert values.is_json_number(text)
    assert not values.is_json_number(f"0{text.lstrip('-')}")
