"""The reports for programs, whatever stands in the messages."""

import json
import os
import random
import re
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import jsonschema
import pytest

from mcpspy.cli.show import line
from mcpspy.errors import CaptureError
from mcpspy.report.checked import check
from mcpspy.report.findings.sarif import FORMATS
from mcpspy.report.findings.text import report
from mcpspy.rules import RULES
from tests.findings import CAPTURES
from tests.report.captures import faulty, fine, hostile

EACH = pytest.mark.parametrize("form", FORMATS)
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e\u2028\ud800-\udfff]")


def parsed(text):
    return ET.fromstring(text)  # noqa: S314 (it is our own)


def told(form, *paths, fail_on="error"):
    return FORMATS[form]([check(path) for path in paths], fail_on)


# JSON


def test_json_is_what_the_design_says(tmp_path):
    """docs/json.md."""
    path = faulty(tmp_path / "a")
    text = told("json", path)
    assert text.count("\n") == 1
    found = json.loads(text)
    assert list(found) == ["captures", "totals"]
    assert found["totals"] == {"error": 2, "warning": 1, "info": 1}
    (capture,) = found["captures"]
    assert list(capture) == ["path", "frames", "revisions", "findings"]
    assert (capture["path"], capture["frames"], capture["revisions"]) == (path, 9, ["2025-06-18"])
    assert capture["findings"][0] == {
        "rule": "tools/arguments",
        "severity": "error",
        "blame": "client",
        "frame": 10,
        "part": 0,
        "related": [9],
        "pointer": "/params/arguments",
        "message": 'echo was listed with another inputSchema: "text" is a required property',
        "revision": "2025-06-18",
        "spec": "https://modelcontextprotocol.io/specification/2025-06-18/server/tools#tool",
    }


# JUnit


def test_junit_has_a_suite_for_each_capture_and_a_failure_for_what_makes_the_check_fail(tmp_path):
    suites = parsed(told("junit", faulty(tmp_path / "a"), fine(tmp_path / "b")))
    assert suites.attrib == {"name": "mcpspy", "tests": "5", "failures": "2", "errors": "0", "skipped": "0"}
    first, second = suites
    assert first.attrib == {"name": str(tmp_path / "a"), "tests": "4", "failures": "2", "errors": "0", "skipped": "0"}
    assert [case.get("name") for case in first] == [
        "tools/arguments #10",
        "schema/invalid #11",
        "schema/unknown-method #12",
        "jsonrpc/extra-member #13",
    ]
    assert [case[0].tag for case in first] == ["failure", "failure", "system-out", "system-out"]
    assert first[0][0].get("type") == "tools/arguments"
    assert "line 10" in first[0][0].text
    assert [case.get("name") for case in second] == ["nothing found"]


@pytest.mark.parametrize(("fail_on", "failures"), [("never", 0), ("error", 2), ("warning", 3), ("info", 4)])
def test_junit_counts_as_failures_what_reaches_the_threshold(tmp_path, fail_on, failures):
    suites = parsed(told("junit", faulty(tmp_path / "a"), fail_on=fail_on))
    assert suites.get("failures") == str(failures) == str(len(suites.findall(".//failure")))


# SARIF: what the schema of 2.1.0 says of the parts that we write, and nothing besides. (The logs were valid against the
# schema of OASIS when this was written; no package that tests could install has it.)

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
LOCATION = {
    "id": {"type": "integer", "minimum": 0},
    "physicalLocation": {
        "type": "object",
        "properties": {
            "artifactLocation": {
                "type": "object",
                "properties": {"uri": {"type": "string", "pattern": r"^(?:[\w.~/!$&'()*+,;=@-]|%[0-9A-F]{2}|file:)+$"}},
                "required": ["uri"],
            },
            "region": {
                "type": "object",
                "properties": {"startLine": {"type": "integer", "minimum": 1}},
                "required": ["startLine"],
            },
        },
        "required": ["artifactLocation", "region"],
    },
    "logicalLocations": {
        "type": "array",
        "items": {"type": "object", "properties": {"fullyQualifiedName": {"type": "string"}}},
    },
}
RULE = {
    "id": {"type": "string"},
    "shortDescription": TEXT,
    "fullDescription": TEXT,
    "helpUri": {"type": "string", "pattern": "^https://"},
    "defaultConfiguration": {"type": "object", "properties": {"level": {"enum": ["none", "note", "warning", "error"]}}},
}
RESULT = {
    "ruleId": {"type": "string"},
    "ruleIndex": {"type": "integer", "minimum": -1},
    "level": {"enum": ["none", "note", "warning", "error"]},
    "message": TEXT,
    "locations": {"type": "array", "items": {"type": "object", "properties": LOCATION}},
    "relatedLocations": {"type": "array", "uniqueItems": True, "items": {"type": "object", "properties": LOCATION}},
    "properties": {"type": "object", "additionalProperties": True},
}
DRIVER = {
    "name": {"type": "string"},
    "version": {"type": "string"},
    "rules": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "object", "properties": RULE, "required": ["id"]},
    },
}
LOG = {
    "type": "object",
    "properties": {
        "$schema": {"type": "string"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "tool": {
                        "type": "object",
                        "properties": {"driver": {"type": "object", "properties": DRIVER, "required": ["name"]}},
                        "required": ["driver"],
                    },
                    "results": {
                        "type": "array",
                        "items": {"type": "object", "properties": RESULT, "required": ["message", "locations"]},
                    },
                },
                "required": ["tool", "results"],
            },
        },
    },
    "required": ["version", "runs"],
}


def closed(schema):
    """A schema with no member beside those that it names, as that of SARIF has none."""
    if isinstance(schema, list):
        return [closed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(inner) for name, inner in schema.items()}
    return {"additionalProperties": False} | found if found.get("type") == "object" else found


def sarif(*paths):
    log = json.loads(told("sarif", *paths))
    jsonschema.Draft202012Validator(closed(LOG)).validate(log)
    (run,) = log["runs"]
    return run


def test_sarif_puts_each_result_on_the_line_of_its_frame(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faulty(tmp_path / "a capture.jsonl")
    run = sarif("a capture.jsonl")
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({result["ruleId"] for result in run["results"]})
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    first = run["results"][0]
    (location,) = first["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "a%20capture.jsonl"},
        "region": {"startLine": 10},
    }
    assert location["logicalLocations"] == [{"fullyQualifiedName": "/params/arguments"}]
    assert [it["physicalLocation"]["region"]["startLine"] for it in first["relatedLocations"]] == [9]
    assert [result["level"] for result in run["results"]] == ["error", "error", "warning", "note"]


def test_sarif_names_an_absolute_path_by_its_uri(tmp_path):
    (location,) = sarif(faulty(tmp_path / "ä: b"))["results"][0]["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.startswith("file:///")
    assert unquote(uri.removeprefix("file://")) == str(tmp_path / "ä: b")


def test_sarif_of_nothing_is_a_log_without_results(tmp_path):
    run = sarif(fine(tmp_path / "a"))
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])


def test_every_rule_can_stand_in_a_sarif_log():
    for rule in RULES.values():
        assert rule.summary.endswith(".")
        assert rule.explanation.startswith(rule.summary)


# GitHub


def test_github_shows_each_finding_beside_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faulty(tmp_path / "a,b:c.jsonl")
    lines = told("github", "a,b:c.jsonl").splitlines()
    assert lines[0] == (
        "::error file=a%2Cb%3Ac.jsonl,line=10,title=mcpspy (tools/arguments)::client: echo was listed with another "
        'inputSchema: "text" is a required property (/params/arguments)'
    )
    assert [text.split()[0] for text in lines] == ["::error", "::error", "::warning", "::notice"]


def test_github_commands_cannot_be_forged_by_a_peer(tmp_path):
    text = told("github", hostile(tmp_path / "a"))
    lines = text.splitlines()
    assert len(lines) == len(check(str(tmp_path / "a")).findings)
    for command in lines:
        assert re.fullmatch(r"::(error|warning|notice) file=[^,:]*,line=\d+,title=[^,:]*::.*", command)
        assert "%0A::" not in command


# Every format


@EACH
def test_hostile_text_breaks_no_format(tmp_path, form):
    """F-08: controls, directions, lone surrogates, and what XML forbids."""
    text = told(form, hostile(tmp_path / "a"))
    assert len(text.encode()) > 1000
    if form != "json":  # which escapes them
        assert not CONTROLS.search(text)
    if form in ("json", "sarif"):
        json.loads(text)
    if form == "junit":
        assert len(parsed(text)[0]) > 5


@EACH
def test_a_path_that_is_no_text_breaks_no_format(tmp_path, form):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[2J<&\n,::.jsonl")
    text = told(form, faulty(path))
    text.encode()
    if form == "junit":
        parsed(text)
    if form == "sarif":
        sarif(path)
    if form == "github":
        assert len(text.splitlines()) == 4


def test_every_report_on_a_damaged_file_is_written(tmp_path):
    """Bits flipped, lines lost, the end cut off: what is left is checked and reported, or refused in one sentence."""
    chance = random.Random(3)  # noqa: S311 (seeded, so that a failure can be had again)
    whole = (CAPTURES / "field-stdio.jsonl").read_bytes()
    path = tmp_path / "damaged_file"
    refused = 0
    for _ in range(150):
        content = bytearray(whole[: chance.randrange(len(whole))] if chance.random() < 0.2 else whole)
        for _ in range(chance.randint(1, 20)):
            place = chance.randrange(len(content) + 1)
            content[place : place + chance.choice((1, 1, 300))] = chance.choice((b"", b"\n", b"\xff", b"}", b"9" * 30))
        path.write_bytes(content)
        try:
            checked = [check(str(path))]
        except CaptureError:
            refused += 1
            continue
        assert all(map(str.isprintable, report(checked, line, colour=False)))
        for form in FORMATS.values():
            form(checked, "error").encode()
    assert refused < 75
