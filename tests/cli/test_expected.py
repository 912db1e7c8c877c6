"""`mcpspy check` with expectations: exit status, every format, waivers, several captures, and one line for mistakes."""

import json
import xml.etree.ElementTree as ET

import pytest

from tests.cli.conftest import refusal
from tests.transcript import begin, capture, finish, record

SESSION = """
    = 2025-06-18
    > 2 tools/call {"name":"echo","arguments":{"text":"a"}}
    < 2 = {"content":[]}
    > 3 tools/call {"name":"bad"}
    < 3 = {"content":[],"isError":true}
"""
TOML = """
[[tool]]
name = "echo"
times = 1

[[tool]]
name = "bad"
never = true

[[tool]]
name = "good"
"""


@pytest.fixture
def session(tmp_path):
    return capture(tmp_path / "a.jsonl", SESSION)


@pytest.fixture
def expect(tmp_path):
    file = tmp_path / "expect.toml"
    file.write_text(TOML)
    return file


def test_what_is_not_as_expected_fails_the_check_and_stands_at_its_frame(check, session, expect):
    status, out, err = check(session, "--expect", expect)
    assert (status, err) == (1, "")
    assert "#1     the session\n  ✗ error  expect/called  by the client\n" in out
    assert "    expected that good is called; there was no call\n" in out
    assert "    expected that bad is never called; it is called here\n" in out
    assert out.splitlines()[-1].startswith("2 errors, 0 warnings, 0 info, 1 of 3 expectations met in ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--expect-tool", "echo", "--expect-tool", "b*", "--max-duration", "50s"], 0),
        (["--forbid-tool", "echo"], 1),
        (["--expect-tool", "good"], 1),
        (["--max-duration", "1ms"], 1),
        (["--forbid-tool", "echo", "--fail-on", "never"], 0),
        (["--forbid-tool", "echo", "--ignore", "expect/*"], 0),
        (["--forbid-tool", "echo", "--ignore", "expect/never"], 0),
    ],
)
def test_the_usual_expectations_are_options(check, session, options, expected):
    status, _, err = check(session, *options)
    assert (status, err) == (expected, "")


def test_operational_findings_come_only_with_a_table(check, session, tmp_path):
    assert "ops/" not in check(session)[1]
    file = tmp_path / "ops.toml"
    file.write_text("[ops]\n")
    status, out, _ = check(session, "--expect", file)
    assert status == 0
    assert "ops/tool-failed" in out
    assert check(session, "--expect", file, "--fail-on", "warning")[0] == 1


def test_json_tells_what_came_of_each(check, session, expect):
    found = json.loads(check(session, "--expect", expect, "--format", "json")[1])["captures"][0]
    assert found["expectations"] == [
        {"title": "echo is called once", "rule": "expect/called", "passed": True},
        {"title": "bad is never called", "rule": "expect/never", "passed": False},
        {"title": "good is called", "rule": "expect/called", "passed": False},
    ]
    assert [(it["rule"], it["frame"]) for it in found["findings"]] == [("expect/called", 1), ("expect/never", 10)]
    assert "expectations" not in json.loads(check(session, "--format", "json")[1])["captures"][0]


def test_junit_has_a_case_for_each_expectation(check, session, expect, tmp_path):
    def cases(*options):
        suite = ET.fromstring(check(session, "--expect", expect, "--format", "junit", *options)[1])  # noqa: S314 (it is ours)
        return {it.get("name"): [how.tag for how in it] for it in suite.iter("testcase")}

    named = {"echo is called once": [], "bad is never called": ["failure"], "good is called": ["failure"]}
    assert cases() == named
    assert cases("--fail-on", "never") == named | {
        "bad is never called": ["system-out"],
        "good is called": ["system-out"],
    }
    assert cases("--ignore", "expect/never") == named | {"bad is never called": []}
    waiver = tmp_path / "waivers.toml"
    waiver.write_text('[[waiver]]\nrule = "expect/called"\ncapture = "*"\nreason = "soon"\n')
    assert cases("--waivers", waiver) == named | {"good is called": []}


def test_sarif_and_github_have_the_line(check, session, expect):
    log = json.loads(check(session, "--expect", expect, "--format", "sarif")[1])["runs"][0]
    lines = [it["locations"][0]["physicalLocation"]["region"]["startLine"] for it in log["results"]]
    assert lines == [1, 10]
    assert {it["id"] for it in log["tool"]["driver"]["rules"]} == {"expect/called", "expect/never"}
    commands = check(session, "--expect", expect, "--format", "github")[1].splitlines()
    assert [it.partition("::")[2].partition(" ")[0] for it in commands] == ["error", "error"]
    assert "line=10" in commands[1]


def test_each_capture_is_held_to_all_or_to_what_is_about_its_server(check, tmp_path):
    for name, text in (("weather", SESSION), ("files", "= 2025-06-18\n> 2 ping\n< 2 = {}")):
        writer = begin(tmp_path / f"{name}.jsonl", name=name)
        record(writer, text)
        finish(writer)
    assert check(tmp_path, "--expect-tool", "echo")[0] == 1
    file = tmp_path / "expect.toml"
    file.write_text('[[tool]]\nname = "echo"\nserver = "weather"\n')
    status, out, _ = check(tmp_path, "--expect", file)
    assert (status, "1 of 1 expectation met" in out) == (0, True)
    file.write_text('[[tool]]\nname = "echo"\nserver = "wether"\nnever = true\n')
    status, out, err = check(tmp_path, "--expect", file)
    assert (status, out) == (2, "")
    assert err == (
        "mcpspy: no capture is of a server 'wether', which an expectation names; "
        "'mcpspy ls' shows the server of each capture\n"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--expect", "missing.toml"], "cannot read missing.toml"),
        (["--max-duration", "soon"], '--max-duration: it is "soon"; write a time with its unit'),
        (["--expect-tool", ""], "--expect-tool has no name"),
        (["--forbid-tool", "a", "--expect-tool", "a"], "--expect-tool, --forbid-tool: no session can meet both: a is"),
        (["--forbid-tool", ""], "--forbid-tool has no name"),
        (["--follow", "--expect-tool", "a"], "--follow prints findings as they occur"),
    ],
)
def test_a_mistake_is_one_line(check, session, options, told):
    assert told in refusal(check(session, *options))
