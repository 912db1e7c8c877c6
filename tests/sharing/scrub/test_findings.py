"""The findings of `scrub --check`, and their formats."""

import json
from datetime import date

import pytest

from mcpspy.report.waivers import Waiver
from mcpspy.sharing.scrub.findings import FORMATS, check, without_waived
from mcpspy.sharing.scrub.options import ScrubOptions
from tests.sharing.scrub.captures import ERR, IN, call, capture, frame

SECRET = "correct-horse-99"
TODAY = date(2026, 11, 23)
RULE = "scrub/value-under-secret-name"


@pytest.fixture
def checked(tmp_path):
    """A check of a capture with a secret at the same place in three messages, and with other secrets."""
    token = "gh" + "p_" + "a1B2" * 9
    return check(
        capture(
            tmp_path / "a.jsonl",
            *(frame(IN, call({"list": [{"x": 1}] * n + [{"password": SECRET}]})) for n in range(3)),
            frame(ERR, f"using {SECRET}"),
            frame(IN, call({token: "bob@corp.com"}, requestState="abc")),
            cwd="/home/bob",
        ),
        ScrubOptions(),
    )


def test_what_repeats_comes_once_with_its_first_line_and_the_others(checked):
    found = [(it.rule, it.line, it.pointer, it.count, it.also) for it in checked.findings]
    assert found == [
        ("scrub/home-directory", 1, "cwd", 1, ()),
        (RULE, 5, "/params/arguments/list/0/password", 3, (6, 7)),
        (RULE, 8, "", 1, ()),
        ("scrub/secret", 9, "/params/arguments", 1, ()),
        ("scrub/email", 9, "/params/arguments/redacted-github-token-1", 1, ()),
    ]


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_tells_a_value(checked, form):
    text = "".join(FORMATS[form]([checked]))
    assert SECRET not in text
    assert "bob" not in text
    assert "ghp_" not in text
    assert text.endswith("\n")


def test_the_formats_for_others_have_line_and_kind(checked):
    (run,) = json.loads("".join(FORMATS["sarif"]([checked])))["runs"]
    assert run["results"][1]["locations"][0]["physicalLocation"]["region"] == {"startLine": 5}
    assert run["tool"]["driver"]["rules"][run["results"][1]["ruleIndex"]]["id"] == RULE
    github = "".join(FORMATS["github"]([checked])).splitlines()
    assert github[1].startswith("::error file=")
    assert ",line=5,title=mcpspy (scrub/value-under-secret-name)::" in github[1].replace("%3A", ":")


def test_a_waiver_accepts_a_place_and_one_without_a_use_is_stale(checked):
    used = Waiver(RULE, "*.jsonl", "made up", "/params/arguments/list/0/password")
    stale = Waiver("scrub/user-name", "a.jsonl", "made up")
    elsewhere = Waiver("scrub/user-name", "b.jsonl", "made up")
    expired = Waiver("scrub/email", "a.jsonl", "made up", expires=date(2026, 11, 22))
    (left,), unused, past = without_waived([used, stale, elsewhere, expired], [checked], TODAY)
    assert len(left.findings) == len(checked.findings) - 1
    assert left.waived == 1
    assert (unused, past) == ([stale], [expired])


def test_session_ids_and_request_states_are_no_findings(tmp_path):
    path = capture(tmp_path / "a.jsonl", frame(IN, call({}, requestState="abc")), frame(ERR, "?session_id=abc"))
    assert not check(path, ScrubOptions()).findings
