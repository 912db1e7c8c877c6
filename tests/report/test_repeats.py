"""Repeated findings are reported once, with a count."""

import json
import sys
from dataclasses import replace

import pytest

from mcpspy import cli
from mcpspy.report.checked import Checked, check, counted, totals
from mcpspy.report.problems import explain, why_lines
from mcpspy.rules import Finding
from tests.rules.examples import findings
from tests.transcript import capture

CALL = """
    > {{"jsonrpc":"2.0","id":{0},"method":"tools/call","params":{{"name":"{1}"}}}}
    < {{"jsonrpc":"2.0","id":{0},"result":{2}}}
"""


def repeating(path):
    text = """
    > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
    < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
    """  # noqa: E501 (messages have one line each)
    for number, result in enumerate(("{}", '{"a":1}', '{"content":5}', '{"content":[]}', "{}"), 1):
        text += CALL.format(number, "echo", result)
    return capture(str(path), text)


def test_a_fault_in_every_result_comes_once_with_a_count(tmp_path):
    """R-07: findings are merged by place, not by value."""
    checked = check(repeating(tmp_path / "a"), show=True)
    reported = counted(checked)
    assert [(it.frame, it.pointer, it.count, it.also) for it in reported.findings] == [
        (9, "/result", 3, (11, 17)),
        (13, "/result/content", 1, ()),
    ]
    assert [it.line.split()[0] for it in reported.shown] == ["#9", "#13"]
    assert len(checked.findings) == 4


def test_why_counts_kinds_as_check_does(tmp_path):
    path = repeating(tmp_path / "a")
    explained = explain(path)
    assert explained.findings == totals([counted(check(path))]) == {"error": 2, "warning": 0, "info": 0}
    assert [*why_lines([explained], 80)][-1] == "'mcpspy check' finds 2 errors in the messages"


def reported(path, text):
    """Return the reported findings of a session of 2025-06-18."""
    head = """
    > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
    < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
    """  # noqa: E501 (messages have one line each)
    return counted(check(capture(str(path), head + text))).findings


def test_what_a_peer_writes_merges_nothing(tmp_path):
    """R-07: three unknown methods whose names contain words that finding messages also use."""
    methods = (f'    > {{"jsonrpc":"2.0","method":"a, found {number}"}}\n' for number in range(3))
    found = reported(tmp_path / "a", "".join(methods))
    assert [(it.rule, it.count) for it in found] == [("schema/unknown-method", 1)] * 3


def test_the_same_fault_of_one_tool_is_one_finding_whatever_the_value_and_of_two_tools_two(tmp_path):
    """R-07: numbers out of range, in different rows of many results; the count is exact, the frames are bounded."""
    text = ""
    for number in range(1, 301):
        rows = f'{"{}," * (number % 3)}{{"ts":{1 << 64 | number}}}'
        result = f'{{"content":[],"structuredContent":{{"rows":[{rows}]}}}}'
        text += CALL.format(number, "ab"[number % 2], result)
    found = [it for it in reported(tmp_path / "a", text) if it.rule == "jsonrpc/number-range"]
    assert [it.count for it in found] == [150, 150]
    assert [len(it.also) for it in found] == [100, 100]
    assert len(set(found[0].also)) == 100
    assert found[0].frame not in found[0].also


def test_two_tools_of_one_list_with_the_same_fault_are_two_findings(tmp_path):
    """R-07: the same tool in two listings gives one finding."""
    tools = ",".join(f'{{"name":"{name}","inputSchema":{{"type":"string"}}}}' for name in "ab")
    listed = """
    > {{"jsonrpc":"2.0","id":{0},"method":"tools/list"}}
    < {{"jsonrpc":"2.0","id":{0},"result":{{"tools":[{1}]}}}}
    """
    found = reported(tmp_path / "a", listed.format(1, tools) + listed.format(2, tools))
    assert [(it.rule, it.pointer, it.count) for it in found if it.severity == "error"] == [
        ("tools/schema-not-object", "/result/tools/0/inputSchema", 2),
        ("tools/schema-not-object", "/result/tools/1/inputSchema", 2),
    ]


SKILLS = [f'{{"uri":"skill://{name}/x","frontmatter":{{"name":"{name}"}}}}' for name in "ab"]
SKILLS_LISTED = f"""
    > 2 skills/list {{META}}
    < 2 = {{"resultType":"complete","skills":[{",".join(SKILLS)}]}}
"""
SKILLS_READ = f"""
    > 2 skills/get {{META "uri":"skill://a/x"}}
    < 2 = {{"resultType":"complete","skill":{SKILLS[0]}}}
    > 3 skills/get {{META "uri":"skill://b/x"}}
    < 3 = {{"resultType":"complete","skill":{SKILLS[1]}}}
"""


@pytest.mark.parametrize("text", [SKILLS_LISTED, SKILLS_READ])
def test_two_skills_with_the_same_fault_are_two_findings(text):
    """R-07."""
    found = tuple(it for it in findings(text) if it.rule == "skills/entry")
    kept = counted(Checked("x", 9, (), found)).findings
    assert {it.concerns[1] for it in kept} == {"skill://a/x", "skill://b/x"}


def test_two_findings_of_a_rule_at_one_place_of_one_message_are_two():
    """R-07: they differ in something other than their place."""
    finding = Finding("compat/tool-name", "warning", "server", 5, 0, (), "/result/tools/0/name", "a", None, "")
    found = [replace(finding, message=text, frame=frame) for frame in (5, 7) for text in "ab"]
    kept = counted(Checked("x", 9, (), tuple(found))).findings
    assert [(it.message, it.count, it.also) for it in kept] == [("a", 2, (7,)), ("b", 2, (7,))]


def test_reports_tell_how_often(tmp_path, capsys, monkeypatch):
    """R-07."""
    path = repeating(tmp_path / "a")
    told = {}
    for form in ("text", "json", "sarif", "junit", "github"):
        monkeypatch.setattr(sys, "argv", ["mcpspy", "check", path, "--format", form])
        assert cli.main() == 1
        told[form] = capsys.readouterr().out
    assert "3 times, also in #11, #17" in told["text"]
    assert "2 errors, " in told["text"]
    first, second = json.loads(told["json"])["captures"][0]["findings"]
    assert (first["count"], first["also"], second["count"], second["also"]) == (3, [11, 17], 1, [])
    results = json.loads(told["sarif"])["runs"][0]["results"]
    assert [it["occurrenceCount"] for it in results] == [3, 1]
    assert all(told[form].count("(3 times)") == 1 for form in ("sarif", "junit", "github"))
