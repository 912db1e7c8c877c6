"""The built schemas agree with the official schemas, definition by definition."""

import json

import pytest

from mcpspy.spec.definitions import DEFINITIONS, TOPICS, definitions, schema
from mcpspy.spec.revisions import R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28, Revision
from tests.spec.reference import corrected, needed

COUNTS = {R2024_11_05: 79, R2025_03_26: 83, R2025_06_18: 91, R2025_11_25: 145, R2026_07_28: 155}
WORDS = {"description", "title", "default", "deprecated", "$comment", "examples"}  # they do not affect verdicts
NOTHING = [("additionalProperties", {}), ("additionalProperties", True), ("properties", {})]
UNORDERED = {"required", "enum", "anyOf", "type"}


def normal(node, definitions):
    """Return a definition reduced to the parts that affect verdicts, in a fixed order."""
    reduced = plain(node)
    if set(reduced) == {"$ref"}:  # an alias of another definition
        return normal(definitions[reduced["$ref"].removeprefix("#/$defs/")], definitions)
    return reduced


def plain(node):
    if isinstance(node, list):
        return [plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {}
    for key, value in node.items():
        if (
            key in WORDS
            or (key == "additionalProperties" and value in ({}, True))
            or (key, value) == ("properties", {})
        ):
            continue
        reduced = {name: plain(member) for name, member in value.items()} if key == "properties" else plain(value)
        found[key] = sorted(reduced, key=json.dumps) if key in UNORDERED and isinstance(reduced, list) else reduced
    return found


def faults(ours, theirs):
    """Return the names of definitions that only one side has, or that differ."""
    names = ours.keys() | theirs.keys()
    return [
        name
        for name in sorted(names)
        if name not in ours or name not in theirs or normal(ours[name], ours) != normal(theirs[name], theirs)
    ]


def test_there_are_as_many_definitions_as_each_revision_has():
    assert {revision: len(definitions(revision)) for revision in Revision} == COUNTS
    assert sum(COUNTS.values()) == 553


def test_no_definition_stands_in_two_topics():
    assert sum(map(len, TOPICS.values())) == len(DEFINITIONS)


@needed
@pytest.mark.parametrize("revision", Revision, ids=lambda revision: revision.value)
def test_every_definition_agrees_with_the_official_one(revision):
    assert faults(definitions(revision), corrected(revision)) == []


@needed
@pytest.mark.parametrize(
    ("definition", "path", "value"),
    [
        ("Tool", "properties annotations", None),
        ("Tool", "properties name type", "integer"),
        ("Tool", "required", ["name"]),
        ("Tool", "properties extra", {"type": "string"}),
        ("TextContent", "properties type const", "texts"),
        ("Role", "enum", ["user"]),
        ("Result", "additionalProperties", False),
        ("BlobResourceContents", "properties blob format", "uri"),
        ("Annotations", "properties priority maximum", 2),
        ("ContentBlock", "anyOf", [{"$ref": "#/$defs/TextContent"}]),
        ("CallToolResult", "properties content items $ref", "#/$defs/TextContent"),
    ],
)
def test_a_planted_difference_is_found(definition, path, value):
    ours = json.loads(json.dumps(definitions(R2025_06_18)))
    *steps, last = path.split()
    place = ours[definition]
    for step in steps:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    found = faults(ours, corrected(R2025_06_18))
    assert definition in found
    assert len(found) <= 2  # EmptyResult is an alias of Result


@needed
def test_a_definition_that_only_one_side_has_is_found():
    ours, theirs = definitions(R2025_06_18), corrected(R2025_06_18)
    assert faults(ours | {"Extra": {}}, theirs) == ["Extra"]
    assert faults(ours, theirs | {"Extra": {}}) == ["Extra"]


def test_a_schema_says_its_dialect_and_holds_every_definition():
    built = schema(R2025_11_25)
    assert built["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert built["$defs"] is definitions(R2025_11_25)


@pytest.mark.parametrize("revision", Revision, ids=lambda revision: revision.value)
def test_every_reference_leads_to_a_definition(revision):
    def references(node):
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                yield node["$ref"]
            for value in node.values():
                yield from references(value)
        elif isinstance(node, list):
            for value in node:
                yield from references(value)

    built = definitions(revision)
    found = set(references(built))
    assert len(found) > 20
    assert found <= {f"#/$defs/{name}" for name in built}


@pytest.mark.parametrize(
    ("name", "revisions"),
    [
        ("Tool", set(Revision)),
        ("ToolAnnotations", set(Revision) - {R2024_11_05}),
        ("JSONRPCBatchRequest", {R2025_03_26}),
        ("ResourceReference", {R2024_11_05, R2025_03_26}),
        ("CallToolRequestParams", {R2025_11_25, R2026_07_28}),
        ("ListTasksRequest", {R2025_11_25}),
        ("InitializeRequest", set(Revision) - {R2026_07_28}),
        ("DiscoverRequest", {R2026_07_28}),
        ("Nothing", set()),
    ],
)
def test_a_definition_knows_its_revisions(name, revisions):
    assert {it for it in Revision if name in definitions(it)} == revisions


@pytest.mark.parametrize(
    ("revision", "definition", "member", "deprecated"),
    [
        (R2025_11_25, "ClientCapabilities", "roots", False),
        (R2026_07_28, "ClientCapabilities", "roots", True),
        (R2026_07_28, "ClientCapabilities", "sampling", True),
        (R2026_07_28, "ClientCapabilities", "elicitation", False),
        (R2026_07_28, "ServerCapabilities", "logging", True),
        (R2026_07_28, "RequestMetaObject", "io.modelcontextprotocol/logLevel", True),
        (R2025_11_25, "CreateMessageRequestParams", "includeContext", True),
    ],
)
def test_what_is_deprecated_says_so(revision, definition, member, deprecated):
    """2026-07-28, deprecated features."""
    assert definitions(revision)[definition]["properties"][member].get("deprecated", False) is deprecated


def test_deprecated_definitions_are_those_of_the_registry():
    """2026-07-28, deprecated features: roots, sampling and logging."""
    found = {name for name, built in definitions(R2026_07_28).items() if built.get("deprecated")}
    assert found == set(
        "ListRootsRequest ListRootsResult Root"
        " CreateMessageRequest CreateMessageRequestParams CreateMessageResult SamplingMessage"
        " SamplingMessageContentBlock ModelPreferences ModelHint ToolChoice ToolUseContent ToolResultContent"
        " LoggingLevel LoggingMessageNotification LoggingMessageNotificationParams".split()
    )
    assert not [name for name, built in definitions(R2025_11_25).items() if built.get("deprecated")]
