"""What may change: the forms of values, regular expressions, distances, and values that the server repeats."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import UsageError
from mcpspy.json_values import Number
from mcpspy.replay.differences import ABSENT, Difference
from mcpspy.replay.learn import joined, narrowest, place_of
from mcpspy.replay.tolerance import FORMS, Echo, PlacePattern, Rules, Tolerance, with_changes
from mcpspy.spec.peer_schemas import linear_pattern
from tests.each import each

AT = ("result", "at")
DATE = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
UUID = "0b9d2a1e-5c3f-4d6a-9e8b-7f6a5d4c3b2a"


def accepted(way, value, recorded, observed, at=AT):
    rule = Tolerance.parse(way, "/result/at", value)
    return rule.accepts("tools/call", "now", Difference(at, recorded, observed))


@each(
    "form, values, others",
    [
        (
            "date-time",
            [
                "2026-11-28T12:00:00Z",
                "2026-11-28 12:00:00.123456",
                "2026-11-28T12:00:00,5+01:00",
                "2026-11-28t12:00:00z",
            ],
            [
                "no clock today",
                "2026-02-30T12:00:00Z",
                "2026-11-28T25:00:00Z",
                "2026-11-28",
                5,
                None,
                "٢٠٢٦-11-28T12:00:00Z",
            ],
        ),
        ("date", ["2026-11-28"], ["2026-11-31", "2026-11-28T12:00:00Z", "28.11.2026", 20261128, "20261128"]),
        ("uuid", [UUID, UUID.upper()], [UUID[1:], f"{UUID} ", "none", 5]),
        ("integer", [5, "5", "-12", 5.0, Number("1" * 100), "1e3"], [5.5, "5.5", "five", True, "", " 5", None, "0x5"]),
        (
            "number",
            [5, 5.5, "5.5", "-1e-3", Number("1.5")],
            ["1,5", "NaN", float("inf"), float("nan"), "\u0665", False, "9" * 500],
        ),
        ("url", ["https://a.example/b?c#d", "file:///tmp", "db://x"], ["a.example", "https://", "https://a b", 5]),
        ("base64", ["aGVsbG8=", "aGVsbG8", "-_-_"], ["aGVsb", "aGVsbG8==", "a b", "", "=", 5]),
        ("any", ["x", None, 5, [], {}], []),
    ],
)
def test_a_form_has_values_and_others_are_not_of_it(form, values, others):
    assert [it for it in values if not FORMS[form](it)] == []
    assert [it for it in others if FORMS[form](it)] == []


def test_both_values_have_the_form_and_the_same_type():
    assert accepted("is", "date-time", "2026-11-28T12:00:00Z", "2026-11-29T12:00:00Z")
    assert not accepted("is", "date-time", "2026-11-28T12:00:00Z", "no clock today")
    assert not accepted("is", "date-time", "no clock today", "2026-11-28T12:00:00Z"), "the settings do not fit"
    assert accepted("is", "integer", Number("5" * 40), 6)
    assert not accepted("is", "integer", 5, "6")
    assert accepted("is", "any", 5, "six")
    assert not accepted("is", "any", 5, ABSENT)
    assert not accepted("is", "uuid", ABSENT, UUID)


def test_only_any_and_ignore_are_about_what_is_inside_a_value():
    below = (*AT, "x", 0)
    assert accepted("is", "any", 1, 2, below)
    assert accepted("ignore", "", 1, ABSENT, below)
    assert not accepted("is", "integer", 1, 2, below)
    assert not accepted("matches", "any", "a", "any", below)
    assert not accepted("is", "integer", 1, 2, AT[:1])


@each(
    "way, value, recorded, observed, fine",
    [
        ("matches", "^[0-9]+ rooms$", "3 rooms", "12 rooms", True),
        ("matches", "rooms", "3 rooms", "12 rooms left", True),
        ("matches", "^[0-9]+ rooms$", "3 rooms", "no rooms", False),
        ("matches", "^[0-9]+$", 3, 12, False),
        ("matches", ".", "\ud800", "x", True),
        ("within", 0.5, 20, 20.5, True),
        ("within", 0.1, 0.3, 0.2, True),
        ("within", 0.5, 20, 20.6, False),
        ("within", 1, "20", "21", True),
        ("within", 1, 20, "mild", False),
        ("within", 1, float("nan"), float("nan"), False),
    ],
)
def test_values_match_or_are_near_each_other(way, value, recorded, observed, fine):
    assert accepted(way, value, recorded, observed) is fine
    assert accepted(way, value, observed, recorded) is fine


def test_a_pattern_takes_linear_time():
    assert not linear_pattern("^(a+)+$")("a" * 100_000 + "b")
    for refused in ("(?=a)", r"(a)\1", "[", "a{999999}"):
        with pytest.raises(ValueError, match="linear"):
            linear_pattern(refused)


def test_a_place_is_of_a_method_and_a_name():
    rule = Tolerance.parse("is", "tools/call now /result/*", "any")
    found = Difference(AT, 1, 2)
    rules = Rules((rule,))
    assert rules.unexpected("tools/call", "now", [found]) == []
    assert rules.unexpected("tools/call", "then", [found]) == rules.unexpected("prompts/get", "now", [found]) == [found]


def echoed(place, recorded, params, answer, source="/params/arguments/nonce"):
    rules = Rules(echoes=(Echo.parse(place, source),))
    arguments = ({"arguments": {"nonce": it}} for it in (recorded, params))
    return with_changes(answer, rules.echoed("tools/call", "book", *arguments, answer))


def test_an_answer_repeats_a_value_of_the_request():
    answer = {"result": {"nonce": "n1", "content": [{"text": "room 5, n1"}, {"text": '{"nonce":"n1"}'}], "by": "n10"}}
    now = echoed("/result/nonce", "n1", "n2", answer)
    assert now == {"result": answer["result"] | {"nonce": "n2"}}
    now = echoed("tools/call book /result/content/*/text", "n1", "n2", answer)["result"]
    assert now["content"] == [{"text": "room 5, n2"}, {"text": '{"nonce":"n2"}'}]
    assert (
        echoed("/result/content/1/text/nonce", "n1", "n2", answer)["result"]["content"][1]["text"] == '{"nonce":"n2"}'
    )
    assert echoed("/result/nonce", 7, 8, {"result": {"nonce": 7}}) == {"result": {"nonce": 8}}


@each(
    "place, recorded, source",
    [
        ("tools/call other /result/nonce", "n1", "/params/arguments/nonce"),
        ("/result/nonce", "n1", "/params/arguments/none"),
        ("/result/none", "n1", "/params/arguments/nonce"),
        ("/result/nonce", "", "/params/arguments/nonce"),
        ("/result/nonce", 1, "/params/arguments/nonce"),
        ("/result/nonce", "another", "/params/arguments/nonce"),
    ],
)
def test_what_is_not_repeated_stays_as_it_was_recorded(place, recorded, source):
    answer = {"result": {"nonce": "n1"}}
    assert echoed(place, recorded, "n2", answer, source) == answer


def test_two_values_may_be_repeated_in_one_text():
    rules = Rules(echoes=(Echo.parse("/result/text", "/params/a"), Echo.parse("/result/*", "/params/b")))
    answer = {"result": {"text": "a1 b1"}}
    changes = rules.echoed("m", None, {"a": "a1", "b": "b1"}, {"a": "a2", "b": "b2"}, answer)
    assert with_changes(answer, changes) == {"result": {"text": "a2 b2"}}


@each(
    "values, proposed",
    [
        ([UUID, UUID.replace("0", "1")], "is uuid"),
        (["2026-11-28T12:00:00Z", "2026-11-28T12:00:01Z"], "is date-time"),
        (["2026-11-28", "2026-11-29"], "is date"),
        ([5, 7], "is integer"),
        (["1764000000123456789", "1764000000123456790"], "is integer"),
        ([0.5, 7], "is number"),
        (
            ["It is 9:03 now.", "It is 12:04:05 now."],
            r"matches ^It is [0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)? now\.$",
        ),
        (["port 80: 12 ms (ok)", "port 80: 1.5 ms (ok)"], r"matches ^port 80: [0-9]+(?:\.[0-9]+)? ms \(ok\)$"),
        ([f"id {UUID}", f"id {UUID[::-1].replace('-', '')}"], None),
        (["commit 9f86d081", "commit deadbee5"], "matches ^commit [0-9a-f]+$"),
        (["by req_8f3K2", "by req_x1"], "matches ^by req_[A-Za-z0-9]+$"),
        (["https://a.example/x", "https://b.example/y"], "is url"),
        (["aGVsbG8gd29ybGQhISE=", "YW5vdGhlciBsb25nIG9uZQ=="], "is base64"),
        (["sunny", "rain"], "is any"),
        (["3 of 4", "12 of 4"], "matches ^[0-9]+ of 4$"),
        (["from 9:03", "from 12"], r"matches ^from \S+$"),
        (["runs echo, ls; 30 seconds", "runs ls, echo; 30 seconds"], r"matches ^runs [\s\S]*; 30 seconds$"),
        (["runs b, a; of 3", "runs a, b; of 3"], r"matches ^runs [\s\S]*$"),
        (["runs b, a\nall", "runs a, b\nall"], r"matches ^runs [\s\S]*\nall$"),
        (["for 2026-11-29 sun", "for 2026-11-29 rain now"], rf"matches ^for {DATE} [\s\S]*$"),
        (["one of: ab, ac", "one of: ab, ad"], r"matches ^one of: ab, [\s\S]*$"),
        (["sunny weather", "rainy weather"], r"matches ^[\s\S]* weather$"),
        (["no: a", "no: b"], "is any"),
        (["x " * 400 + "the end", "y " * 400 + "the end"], "matches ^[\\s\\S]* the end$"),
        (["sunny", ABSENT], "ignore "),
        ([5, "5"], "is any"),
        ([{"a": 1}, [1]], "is any"),
        (["5 x" * 400, "6 x" * 400], "is any"),
    ],
)
def test_the_narrowest_matcher_is_proposed(values, proposed):
    rule = narrowest(PlacePattern("m", "*", AT), values)
    assert proposed is None or f"{rule.by} {rule.value}" == proposed
    if ABSENT not in values:
        assert all(rule.accepts("m", None, Difference(AT, one, other)) for one in values for other in values)


def test_a_day_that_was_the_same_in_all_runs_is_another_one_tomorrow():
    rule = narrowest(PlacePattern("m", "*", AT), ["on Sunday, 2026-11-29: 3 of 4", "on Sunday, 2026-11-29: 5 of 4"])
    for text, fine in (("on Monday, 2026-11-30: 7 of 4", True), ("on Monday, 2026-11-30: 7 of 5", False)):
        assert rule.accepts("m", None, Difference(AT, "on Sunday, 2026-11-29: 3 of 4", text)) is fine


@each(
    "proposed, kept",
    [
        (["/l/0", "/l/1", "/l/7"], ["/l/*"]),
        (["/l/0", "/l/1"], ["/l/0", "/l/1"]),
        (["/l/0", "/l/1", "m /l/2"], ["/l/0", "/l/1", "m /l/2"]),
        (
            ["/l/0/pid=integer", "/l/1/pid=integer", "/l/2/pid=integer", "/l/2/at=date"],
            ["/l/*/pid=integer", "/l/2/at=date"],
        ),
        (["/l/0/pid=integer", "/l/1/pid=integer", "/l/2/pid=number"], None),
        (["/l/0/pid=integer", "/l/4", "/l/5", "/l/6", "/m=date"], ["/l/*", "/m=date"]),
        (["/m/id-1", "/m/f00", "/m/0a"], ["/m/*"]),
        (["/m/warning", "/m/hint", "/m/note"], None),
        (["/l/0/x/1=date", "/l/0/x/2=date", "/l/0/x/3=date"], ["/l/0/x/*=date"]),
        (["m", "m /l/0"], ["m"]),
    ],
)
def test_places_that_are_alike_become_one(proposed, kept):
    found = [Tolerance.option("is" if "=" in it else "ignore", it) for it in proposed]
    assert [*map(str, joined(found))] == (kept or proposed)


@each(
    "texts, tomorrow",
    [
        (["Sun Nov 29 22:48:31 UTC 2026", "Sun Nov 29 22:48:33 UTC 2026"], "Fri Jan  1 00:00:00 UTC 2027"),
        (["at 29 November, 9:03", "at 29 November, 9:04"], "at 1 December, 9:00"),
        (["Sun, 29 Nov 2026 09:03: sun", "Sun, 29 Nov 2026 09:03: rain now"], "Mon, 30 Nov 2026 10:00: snow"),
    ],
)
def test_a_date_in_words_changes_too(texts, tomorrow):
    rule = narrowest(PlacePattern("m", "*", AT), texts)
    assert rule.value != "any"
    assert rule.accepts("m", None, Difference(AT, texts[0], tomorrow))
    assert not rule.accepts("m", None, Difference(AT, texts[0], f"no clock: {tomorrow}"))


def test_a_whole_message_can_only_be_ignored():
    assert str(narrowest(place_of("m", None, Difference((), 5, 6)), [5, 6])) == "m"


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NUMBERED = re.compile(r"[a-z ]{1,4}[0-9:.\-\[\]\\]{1,8}[a-f0-9]{1,5}")


@given(
    st.lists(
        TEXTS | st.from_regex(re.compile(r"[a-z ]{1,4}[0-9:.\-\[\]\\]{1,8}[a-f0-9]{1,5}"), fullmatch=True),
        min_size=2,
        max_size=4,
    )
)
def test_a_proposal_can_be_read_and_accepts_the_values(values):
    rule = narrowest(PlacePattern("m", "*", AT), values)
    assert Tolerance.parse(rule.by, str(rule.place), rule.value) == rule
    assert all(rule.accepts("m", None, Difference(AT, values[0], it)) for it in values)


def test_a_place_that_is_none_is_refused():
    with pytest.raises(UsageError, match="names no place"):
        Echo.parse(" ", "/params/a")
