"""The findings of `scrub --check`, and their formats."""

import json

import pytest

from mcpspy.report.checked import ReportOptions
from mcpspy.report.findings import PLACE_FORMATS
from mcpspy.sharing.scrub.scrub import check
from mcpspy.sharing.scrub.texts import ScrubOptions
from mcpspy.sharing.scrub.values import RULES
from tests.each import each
from tests.sharing.scrub.captures import ERR, IN, call, capture, frame

SECRET = "correct-horse-99"
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
    found = [(it.rule, it.frame, it.pointer, it.count, it.also) for it in checked.findings]
    assert found == [
        ("scrub/home-directory", 1, "cwd", 1, ()),
        (RULE, 5, "/params/arguments/list/0/password", 3, (6, 7)),
        (RULE, 8, "", 1, ()),
        ("scrub/secret", 9, "/params/arguments", 1, ()),
        ("scrub/email", 9, "/params/arguments/redacted-github-token-1", 1, ()),
    ]


def told(form, *captures):
    return "".join(PLACE_FORMATS[form].write(captures, ReportOptions(rules=RULES)))


@each("form", PLACE_FORMATS)
def test_no_format_tells_a_value(checked, form):
    text = told(form, checked)
    assert SECRET not in text
    assert "bob" not in text
    assert "ghp_" not in text
    assert text.endswith("\n")


def test_sarif_has_the_lines_the_places_and_a_sentence_about_each_rule(checked):
    (run,) = json.loads(told("sarif", checked))["runs"]
    result = run["results"][1]
    rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
    assert rule == {"id": RULE, "shortDescription": {"text": RULES[RULE]}}
    assert result["locations"][0]["physicalLocation"]["region"] == {"startLine": 5}
    assert result["locations"][0]["logicalLocations"] == [{"fullyQualifiedName": "/params/arguments/list/0/password"}]
    assert (result["level"], result["occurrenceCount"], "properties" in result) == ("error", 3, False)


def test_a_place_is_one_line_of_text_and_one_command_for_github(checked):
    sentence = "value under a secret name at /params/arguments/list/0/password (3 times)"
    assert told("text", checked).splitlines()[1] == f"{checked.path}:5: {sentence}  [{RULE}]"
    command = told("github", checked).splitlines()[1].replace("%3A", ":")
    assert command.endswith(f",line=5,title=mcpspy ({RULE})::{sentence}")


def test_session_ids_and_request_states_are_no_findings(tmp_path):
    path = capture(tmp_path / "a.jsonl", frame(IN, call({}, requestState="abc")), frame(ERR, "?session_id=abc"))
    assert not check(path, ScrubOptions()).findings
