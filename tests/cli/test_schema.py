import io
import json
import sys

import jsonschema
import pytest

from mcpspy.cli.reference import changes, type_text
from mcpspy.spec import definitions
from mcpspy.spec.revisions import R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28, Revision
from tests.cli.conftest import refusal


def test_the_revisions_and_extensions_are_listed_and_a_definition_is_shown(schema):
    lines = [" ".join(line.split()) for line in schema("list")[1].splitlines()]
    assert len(lines) == len(Revision) + 3
    assert lines[0] == "2024-11-05 handshake 79 definitions, 24 methods"
    assert "io.modelcontextprotocol/tasks since 2026-07-28 13 definitions, 4 methods" in lines
    shown = json.loads(schema("show", "2024-11-05", "ModelHint")[1])
    assert shown == {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.mark.parametrize("revision", Revision, ids=lambda revision: revision.value)
def test_a_revision_is_shown_as_json_schema(schema, revision):
    status, out, err = schema("show", revision.value)
    assert (status, err) == (0, "")
    assert out.count("\n") == 1, "compact where no terminal reads it"
    shown = json.loads(out)
    assert shown == definitions.schema(revision)
    jsonschema.Draft202012Validator.check_schema(shown)


@pytest.mark.parametrize("name", ["tasks", "io.modelcontextprotocol/tasks"])
def test_x_01_an_extension_is_shown_as_json_schema(schema, name):
    status, out, err = schema("show", "2026-07-28", name)
    assert (status, err) == (0, "")
    shown = json.loads(out)
    assert {"tasks.Task", "tasks.CreateTaskResult", "InputRequests"} <= shown["$defs"].keys()
    assert "Prompt" not in shown["$defs"]
    task = {"$ref": "#/$defs/tasks.GetTaskRequest"} | shown
    jsonschema.Draft202012Validator.check_schema(task)
    assert not jsonschema.Draft202012Validator(task).is_valid({"jsonrpc": "2.0", "id": 1, "method": "tasks/get"})


def test_on_a_terminal_json_is_indented(schema, monkeypatch):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdout", terminal)
    assert schema("show", "2025-06-18", "Role")[0] == 0
    assert terminal.getvalue().startswith('{\n  "type": "string",\n')


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["show", "2025-06-17"], "there is no revision '2025-06-17'; did you mean '2025-06-18'?"),
        (["show", "latest"], "the revisions are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"),
        (["diff", "2025-06-18", "next"], "there is no revision 'next'"),
        (["show", "2025-06-18", "tol"], "2025-06-18 has no definition 'tol'; did you mean 'Tool'"),
        (["show", "2025-06-18", "xyzzy"], "'mcpspy schema show 2025-06-18' shows all"),
        (["show", "2026-07-28", "tasks.Tasks"], "did you mean 'tasks.Task'"),
        (["show", "2025-11-25", "tasks.Task"], "(it is in 2026-07-28)"),
        (["show", "2025-11-25", "tasks"], "2025-11-25 has no definition 'tasks'"),
        (["show", "2024-11-05", "ResourceLink"], "(it is in 2025-06-18, 2025-11-25, 2026-07-28)"),
        (["show"], "REVISION"),
        (["lst"], "there is no subcommand 'lst'; did you mean 'list'?"),
        ([], "WHAT"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(schema, arguments, hint):
    assert hint in refusal(schema(*arguments))


@pytest.mark.parametrize(
    ("old", "new", "name", "lines"),
    [
        (R2025_06_18, R2025_11_25, "CallToolRequest", [
            '+ jsonrpc: required "2.0"',
            "+ id: required RequestId",
            "+ params._meta: optional {progressToken?: ProgressToken}",
            "+ params.task: optional TaskMetadata",
        ]),
        (R2025_06_18, R2025_11_25, "JSONRPCNotification", ["~ params: {_meta?: object}  ->  object"]),
        (R2025_11_25, R2026_07_28, "CancelledNotificationParams", [
            "~ _meta: object  ->  NotificationMetaObject",
            "~ requestId: optional  ->  required",
        ]),
        (R2025_11_25, R2026_07_28, "Root", ["~ all of it: deprecated"]),
        (R2026_07_28, R2025_11_25, "Root", ["~ all of it: no longer deprecated"]),
        (R2025_11_25, R2026_07_28, "ToolUseContent", ["~ all of it: deprecated"]),
        (R2025_11_25, R2026_07_28, "ResourceRequestParams", [
            "~ _meta: optional  ->  required",
            "~ _meta: {progressToken?: ProgressToken}  ->  RequestMetaObject",
        ]),
        (R2026_07_28, R2025_11_25, "ListRootsResult", [
            "~ all of it: no longer deprecated",
            "+ _meta: optional object",
        ]),
        (R2025_11_25, R2026_07_28, "CompleteResult", [
            "+ resultType: required string",
            "~ _meta: object  ->  ResultMetaObject",
            "~ completion.values: string[]  ->  string[] (at most 100)",
        ]),
    ],
)  # fmt: skip
def test_a_changed_definition_is_told_by_its_members(old, new, name, lines):
    told = list(changes(old, new))
    start = told.index(f"  {name}") + 1
    end = next(place for place in range(start, len(told)) if not told[place].startswith("    "))
    assert [line.strip() for line in told[start:end]] == lines


@pytest.mark.parametrize("revision", Revision, ids=lambda revision: revision.value)
def test_nothing_changes_from_a_revision_to_itself(revision):
    assert list(changes(revision, revision)) == [f"0 came, 0 went, 0 changed from {revision.value} to {revision.value}"]


def test_what_came_one_way_went_the_other():
    there, back = list(changes(R2025_03_26, R2025_06_18)), list(changes(R2025_06_18, R2025_03_26))
    signs = {"+": "-", "-": "+"}
    assert {signs[line[0]] + line[1:] for line in there if line[0] in signs} == {
        line for line in back if line[0] in signs
    }


@pytest.mark.parametrize(
    ("piece", "text"),
    [
        ({}, "anything"),
        ({"type": "string", "format": "uri"}, "string (uri)"),
        ({"type": ["string", "integer"]}, "string | integer"),
        ({"type": "number", "minimum": 0, "maximum": 1}, "number from 0 to 1"),
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/A"}]}}, "(string | A)[]"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 3}, "string[] (at most 3)"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "map of string"),
        ({"type": "object", "additionalProperties": {}}, "object"),
        ({"allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]}, "A & B"),
        ({"type": "string", "enum": ["a", "b"]}, '"a" | "b"'),
        ({"type": "integer", "const": -32042}, "-32042"),
        ({"type": "object", "properties": {"a": {}, "b": {}}, "required": ["b"]}, "{a?: anything, b: anything}"),
    ],
)
def test_a_type_is_told_shortly(piece, text):
    assert type_text(piece) == text


def test_the_schema_of_the_oldest_revision_names_no_later_definition():
    assert "CallToolRequestParams" not in definitions.schema(R2024_11_05)["$defs"]
