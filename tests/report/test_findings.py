"""Every format of `mcpspy check`: valid whatever text the messages contain, and the text report."""

import json
import os
import random
import re
import xml.etree.ElementTree as ET
from urllib.parse import unquote

import jsonschema
import pytest

from mcpspy.capture.records import Frame, Open
from mcpspy.errors import CaptureError
from mcpspy.report.checked import ReportOptions, check
from mcpspy.report.ci_formats import Case, command, document
from mcpspy.report.findings import FORMATS
from tests.conversation.http import Exchange
from tests.findings import CAPTURES
from tests.report.captures import HOSTILE, faulty, hostile
from tests.transcript import begin, capture, finish


def told(form, *paths, fail_on="error", colour=False):
    """Return the report on some captures in a format."""
    chosen = FORMATS[form]
    captures = [check(str(path), show=chosen.shows_frames) for path in paths]
    return "".join(chosen.write(captures, ReportOptions(fail_on, colour)))


EACH = pytest.mark.parametrize("form", FORMATS)
CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e\u2028\ud800-\udfff]")


def parsed(text):
    return ET.fromstring(text)  # noqa: S314 (it is our own)


@EACH
def test_hostile_text_breaks_no_format(tmp_path, form):
    """F-08: control characters, direction marks, lone surrogates, and characters that XML forbids."""
    text = told(form, hostile(tmp_path / "a"))
    assert len(text.encode()) > 1000
    if form != "json":  # JSON escapes them
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
    if form == "github":
        assert len(text.splitlines()) == 6


def test_every_report_on_a_damaged_file_is_written(tmp_path):
    """A truncated file, or one with changed or lost bytes: the rest is checked and reported, or refused in one line."""
    chance = random.Random(3)  # noqa: S311 (seeded, so that a failure can be reproduced)
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
            checked = [check(str(path), show=True)]
        except CaptureError:
            refused += 1
            continue
        assert all(map(str.isprintable, "".join(FORMATS["text"].write(checked, ReportOptions())).split("\n")))
        for form in FORMATS.values():
            "".join(form.write(checked, ReportOptions())).encode()
    assert refused < 75


def report_lines(*paths, colour=False):
    return told("text", *paths, colour=colour).splitlines()


def test_nothing_that_a_peer_says_reaches_the_terminal_as_it_is(tmp_path):
    """F-08."""
    lines = report_lines(hostile(tmp_path / "a"))
    assert len(lines) > 20
    assert all(text.replace("\ufffe", "").isprintable() for text in lines)
    assert max(map(len, lines)) < 700


def test_a_frame_in_pieces_is_fetched_whole(tmp_path):
    writer = begin(tmp_path / "a")
    writer.open(1, 0, "client", "stdin", "lines")
    raw = b'{"jsonrpc":"2.0","id":1,"method":"ping","extra":"' + b"x" * 100_000 + b'"}'
    writer.frame(1, 1, raw[:65536], more=True, cut=False)
    writer.frame(1, 2, raw[65536:], more=False, cut=False)
    finish(writer)
    lines = report_lines(str(tmp_path / "a"))
    assert any("→ ping" in text for text in lines)
    assert max(map(len, lines)) < 300


@pytest.mark.parametrize("depth", [300, 900])
def test_a_value_of_any_depth_is_shown(tmp_path, depth):
    writer = begin(tmp_path / "a")
    writer.open(1, 0, "client", "stdin", "lines")
    nested = b"[" * depth + b"]" * depth
    writer.frame(1, 1, b'{"jsonrpc":"2.0","id":1,"method":"ping","x":' + nested + b"}", more=False, cut=False)
    finish(writer)
    assert any("jsonrpc/extra-member" in text for text in report_lines(str(tmp_path / "a")))


def test_the_report_does_not_open_the_capture_again(tmp_path):
    path = faulty(tmp_path / "a")
    checked = check(path, show=True)
    expected = report_lines(path)
    (tmp_path / "a").unlink()
    assert "".join(FORMATS["text"].write([checked], ReportOptions())).splitlines() == expected


def test_a_finding_over_http_is_told_with_the_request_that_it_answers(tmp_path):
    exchange = Exchange()
    for n in range(1, 4):
        asked = exchange.ask({"jsonrpc": "2.0", "id": n, "method": "tools/list"}, mcp_session_id="s")
        exchange.answer(asked, {"jsonrpc": "2.0", "id": n, "result": {"tools": []}, "extra": n})
    path = tmp_path / "a"
    writer = begin(path, transport="http")
    for record in exchange.records:
        if isinstance(record, Open):
            fields = {"head": record.head, "peer": record.peer, "answers": record.answers}
            given = {name: value for name, value in fields.items() if value is not None}
            writer.open(record.ch, record.t, record.sender, record.role, record.framing, given)
        elif isinstance(record, Frame):
            writer.frame(record.ch, record.t, record.raw, more=False, cut=False)
        else:
            writer.close(record.ch, record.t, record.how)
    finish(writer, 10**9)
    titles = [" ".join(text.split()) for text in report_lines(str(path)) if text.startswith("#")]
    assert len(titles) == 3
    assert all("← tools/list no tools id" in text and " ok " in text for text in titles)


def test_the_findings_of_a_frame_stand_below_it_once(tmp_path):
    batch = ",".join(['{"jsonrpc":"2.0","method":"no/such","x":1}'] * 50)
    lines = report_lines(capture(str(tmp_path / "a"), f"< [{batch}]"))
    assert sum(text.startswith("#") for text in lines) == 50
    assert sum("schema/unknown-method" in text for text in lines) == 50
    assert sum("jsonrpc/extra-member" in text for text in lines) == 50


def test_an_answer_on_another_stream_is_shown_with_its_request():
    """Over HTTP+SSE (2024-11-05) the answer arrives on a stream that an earlier request opened."""
    lines = report_lines(CAPTURES / "sse-python1-2024-11-05.jsonl", CAPTURES / "field-sse.jsonl")
    assert any("tools/list" in text and "← tools/list" in text for text in lines)
    assert not any("(no request seen)" in text for text in lines)


def test_the_findings_that_are_left_keep_their_frames(tmp_path):
    checked = check(faulty(tmp_path / "a"), show=True).without(["schema/invalid"])
    lines = "".join(FORMATS["text"].write([checked], ReportOptions())).splitlines()
    assert [text.split()[0] for text in lines if text.startswith("#")] == ["#10", "#12", "#13"]
    assert lines == [text for text in lines if "#11 " not in text]


@pytest.mark.parametrize(("fail_on", "failures"), [("never", 0), ("error", 2), ("warning", 3), ("info", 4)])
def test_junit_counts_as_failures_what_reaches_the_threshold(tmp_path, fail_on, failures):
    suites = parsed(told("junit", faulty(tmp_path / "a"), fail_on=fail_on))
    assert suites.get("failures") == str(failures) == str(len(suites.findall(".//failure")))


def test_github_commands_cannot_be_forged_by_a_peer(tmp_path):
    text = told("github", hostile(tmp_path / "a"))
    lines = text.splitlines()
    checked = check(str(tmp_path / "a"))
    assert len(lines) == len(checked.findings) + len(checked.problems)
    for one in lines:
        assert re.fullmatch(r"::(error|warning|notice) file=[^,:]*,line=\d+,title=[^,:]*::.*", one)
        assert "%0A::" not in one


# SARIF: the parts of the 2.1.0 schema for the members that mcpspy writes. (The logs were valid against the full OASIS
# schema when this was written; no package that the tests could install contains that schema.)


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
    "help": TEXT,
    "helpUri": {"type": "string", "pattern": "^https://"},
    "defaultConfiguration": {"type": "object", "properties": {"level": {"enum": ["none", "note", "warning", "error"]}}},
}
RESULT = {
    "ruleId": {"type": "string"},
    "ruleIndex": {"type": "integer", "minimum": -1},
    "level": {"enum": ["none", "note", "warning", "error"]},
    "message": TEXT,
    "locations": {"type": "array", "items": {"type": "object", "properties": LOCATION}},
    "occurrenceCount": {"type": "integer", "minimum": 1},
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
    """Return a schema that allows only the members that it names, as the SARIF schema does."""
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
    assert rules[0]["help"]["text"].startswith("fix (")
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


def test_a_path_that_is_no_text_is_a_uri(tmp_path):
    sarif(faulty(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\x1b[2J<&\n,::.jsonl")))


def test_without_a_line_it_belongs_to_the_file():
    assert command("notice", "a.jsonl", None, "odd", "x") == "::notice file=a.jsonl,title=odd::x\n"


def test_nothing_in_a_text_ends_the_command_or_begins_a_member():
    told = command("warning", "a,b:c", 1, "x:y,z%", "100%\n::error::no")
    assert told == "::warning file=a%2Cb%3Ac,line=1,title=x%3Ay%2Cz%25::100%25%0A::error::no\n"


def suites(*suites):
    return ET.fromstring(document("mcpspy", suites))  # noqa: S314 (our own)


CASES = [Case("fine"), Case("noted", "system-out", lines=["a", "b"]), Case("left out", "skipped", "why")]
FAILED = Case("wrong", "failure", "it is not", "changed", ["recorded 1", "observed 2"])


def test_cases_are_counted_in_their_suite_and_in_all():
    root = suites(("a.jsonl", CASES), ("b.jsonl", [FAILED, FAILED]))
    assert root.attrib == {"name": "mcpspy", "tests": "5", "failures": "2", "errors": "0", "skipped": "1"}
    assert [(it.get("name"), it.get("tests"), it.get("failures"), it.get("skipped")) for it in root] == [
        ("a.jsonl", "3", "0", "1"),
        ("b.jsonl", "2", "2", "0"),
    ]


def test_a_case_says_how_it_went():
    fine, noted, left_out, wrong = suites(("a.jsonl", [*CASES, FAILED]))[0]
    assert (fine.attrib, len(fine)) == ({"name": "fine", "classname": "a.jsonl"}, 0)
    assert (noted[0].tag, noted[0].attrib, noted[0].text) == ("system-out", {}, "a\nb")
    assert (left_out[0].tag, left_out[0].get("message")) == ("skipped", "why")
    assert (wrong[0].tag, wrong[0].attrib) == ("failure", {"message": "it is not", "type": "changed"})
    assert wrong[0].text == "recorded 1\nobserved 2"


def test_whatever_peers_say_the_report_is_xml():
    case = Case(HOSTILE, "failure", HOSTILE, HOSTILE, [HOSTILE, "\ufffe\x00]]>"])
    assert len(suites((HOSTILE, [case])).findall(".//failure")) == 1
