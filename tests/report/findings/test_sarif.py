import json
import os
from urllib.parse import unquote

import jsonschema

from tests.report.captures import faulty
from tests.report.findings import told

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
