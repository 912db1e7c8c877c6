import json

import pytest

from tests.cli.conftest import refusal
from tests.cli.test_replay import OSLO, SESSION
from tests.replay.scripts import call, result
from tests.transcript import capture


@pytest.fixture
def diff(tmp_path, monkeypatch, run):
    """Compare two transcripts and return exit status, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def diff(old, new, *options):
        capture("a.jsonl", old)
        capture("b.jsonl", new)
        return run("diff", "a.jsonl", "b.jsonl", *options)

    return diff


CHANGED = (
    SESSION.replace('"required":["city"]', '"required":["city","days"]')
    .replace('"capabilities":{"tools":{}}', '"capabilities":{"tools":{},"logging":{}}')
    .replace("12 °C", "13 °C")
    .replace('{"name":"report","description":"Take an observation","inputSchema":{"type":"object"}}', '{"name":"new"}')
)


def test_changes_are_told_for_programs(diff):
    code, out, _ = diff(SESSION, CHANGED, "--format", "json")
    report = json.loads(out)
    assert code == 1
    assert report["server"] == [{"pointer": "/result/capabilities/logging", "observed": {}}]
    assert [(it["name"], it["change"], it["breaking"]) for it in report["tools"]] == [
        ("get_forecast", "changed", ["/inputSchema/required/days"]),
        ("report", "removed", [""]),
        ("new", "added", []),
    ]
    assert report["resources"] == report["resourceTemplates"] == report["prompts"] == []
    assert [it["outcome"] for it in report["exchanges"]] == ["changed", "same", "same"]
    assert {it["method"] for it in report["latencies"]} == {"initialize", "tools/list", "tools/call"}
    assert diff(SESSION, CHANGED)[1].startswith("~ the server's own description\n    /result/capabilities/logging\n")


def test_what_is_ignored_does_not_count(diff):
    ignored = [
        "initialize /result/capabilities",
        "tools/list /result/tools/*",
        "tools/call get_forecast /result/content/0/text",
    ]
    options = [word for pattern in ignored for word in ("--ignore", pattern)]
    assert diff(SESSION, CHANGED, *options)[0] == 0


def test_what_takes_much_longer_is_shown_and_is_no_difference(diff):
    slow = f"@1 > {call(1, 'get_forecast', OSLO)}\n@2 < {result(1, 'A')}"
    code, out, _ = diff(slow.replace("@2", "@1.01"), slow)
    assert (code, out.splitlines()[0]) == (0, "· tools/call get_forecast: 10.0 ms became 1.00 s")


def test_a_mistake_is_one_line_and_exit_status_2(diff):
    refusal(diff(SESSION, SESSION, "--ignore", "result/x"))
