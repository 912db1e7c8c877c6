"""What repeats is reported once, with a count."""

import json
import sys

from mcpspy import cli
from mcpspy.report.checked import check
from mcpspy.report.repeats import counted
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
    """R-07: the value that was found does not matter, the place does."""
    checked = check(repeating(tmp_path / "a"), show=True)
    reported = counted(checked)
    assert [(it.frame, it.pointer, it.count, it.also) for it in reported.findings] == [
        (9, "/result", 3, (11, 17)),
        (13, "/result/content", 1, ()),
    ]
    assert [it.line.split()[0] for it in reported.shown] == ["#9", "#13"]
    assert len(checked.findings) == 4


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
