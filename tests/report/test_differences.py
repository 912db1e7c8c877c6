"""What `mcpspy replay` reports of compared exchanges, in each format."""

import json
import xml.etree.ElementTree as ET

import pytest

from mcpspy.replay.differences import ABSENT, Difference
from mcpspy.replay.sessions import Compared
from mcpspy.report.differences import (
    FORMATS,
    as_github,
    as_json,
    as_junit,
    as_text,
    from_fields,
    sides,
    subject,
    to_json,
    totals,
)  # fmt: skip
from tests.report.captures import HOSTILE

SAME = Compared(5, "initialize", None, "same")
SKIPPED = Compared(7, "tools/call", "write", "skipped", (), "the tool has no readOnlyHint")
CHANGED = Compared(9, "tools/call", "read", "changed", (Difference(("result", "a/b", 0), 1, "x"),))
MISSING = Compared(11, "ping", None, "missing", (Difference((), {"result": {}}, ABSENT),), "no answer within 10 s")
EXTRA = Compared(None, None, None, "extra", (Difference((), ABSENT, "oops"),))
ALL = (SAME, SKIPPED, CHANGED, MISSING, EXTRA)


def test_values_that_a_strict_encoder_refuses_are_json_all_the_same():
    assert json.loads(to_json({"a": "\ud800", "b": 1 << 100})) == {"a": "\ud800", "b": 1 << 100}


def test_long_values_are_shown_from_a_little_before_they_part():
    one, other = sides(Difference(("a",), "x" * 500 + "one", "x" * 500 + "two"))
    assert one == "…" + "x" * 30 + 'one"'
    assert other == "…" + "x" * 30 + 'two"'
    one, other = sides(Difference(("a",), "y" * 500, "z" * 500))
    assert (len(one), len(other)) == (160, 160)


def test_the_subject_is_method_and_name():
    assert (subject(CHANGED), subject(EXTRA)) == ("tools/call read", "a line that is not a message")


def test_every_outcome_has_a_total():
    assert totals(()) == dict.fromkeys(("same", "changed", "error-changed", "missing", "extra", "skipped"), 0)
    assert sum(totals(ALL).values()) == len(ALL)


@pytest.mark.parametrize("name", FORMATS)
def test_what_peers_say_breaks_no_report(name):
    difference = Difference((HOSTILE,), HOSTILE, {HOSTILE: [HOSTILE]})
    report = FORMATS[name](HOSTILE, [Compared(5, HOSTILE, HOSTILE, "changed", (difference,), HOSTILE)])
    assert "\x1b" not in report
    assert report.encode()
    if name == "junit":
        ET.fromstring(report)  # noqa: S314 (our own)
    elif name == "json":
        assert json.loads(report)["exchanges"][0]["method"] == HOSTILE
    else:
        assert len(report.splitlines()) == (5 if name == "text" else 1)


def test_github_gets_one_command_for_each_difference():
    lines = as_github("a,b:c.jsonl", ALL).splitlines()
    assert lines[0] == (
        "::error file=a%2Cb%3Ac.jsonl,line=9,title=#9 tools/call read%3A changed"
        '::/result/a~1b/0: recorded 1, observed "x"'
    )
    assert (
        lines[2]
        == '::error file=a%2Cb%3Ac.jsonl,title=a line that is not a message%3A extra::recorded nothing, observed "oops"'
    )


def test_programs_read_everything():
    report = json.loads(as_json("c.jsonl", ALL))
    assert [it["outcome"] for it in report["exchanges"]] == ["same", "skipped", "changed", "missing", "extra"]
    assert report["exchanges"][2]["differences"] == [{"pointer": "/result/a~1b/0", "recorded": 1, "observed": "x"}]
    assert report["exchanges"][3]["differences"] == [{"pointer": "", "recorded": {"result": {}}}]
    assert report["exchanges"][3]["reason"] == "no answer within 10 s"
    assert report["totals"] == {"same": 1, "changed": 1, "error-changed": 0, "missing": 1, "extra": 1, "skipped": 1}


def test_what_programs_read_can_be_written_as_text():
    again = [from_fields(it) for it in json.loads(as_json("c.jsonl", ALL))["exchanges"]]
    assert as_text("c.jsonl", again) == as_text("c.jsonl", ALL)


def test_junit_has_a_case_for_each():
    suite = ET.fromstring(as_junit("c.jsonl", ALL))[0]  # noqa: S314 (our own)
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "3",
        "errors": "0",
        "skipped": "1",
    }
    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("initialize #5", []),
        ("tools/call write #7", ["skipped"]),
        ("tools/call read #9", ["failure"]),
        ("ping #11", ["failure"]),
        ("a line that is not a message", ["failure"]),
    ]
    assert "/result/a~1b/0" in suite[2][0].text


def test_an_answer_to_nothing_is_called_that():
    it = Compared(None, None, None, "extra", (Difference((), ABSENT, {"id": "1", "result": {}}),))
    assert as_text("c.jsonl", [it]).startswith("✗ a response to no request: extra\n")
