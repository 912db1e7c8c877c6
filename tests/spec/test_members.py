import sys

import pytest

from mcpspy.spec.definitions import definitions
from mcpspy.spec.extensions import all_definitions
from mcpspy.spec.members import BadFormat, bad_formats, elsewhere, outdated
from mcpspy.spec.revisions import R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28, Revision
from tests.each import each


def resource(uri):
    return {"contents": [{"uri": "file:///a", "text": ""}, {"uri": uri, "blob": "YQ=="}]}


@pytest.mark.parametrize(
    "uri",
    ["file:///a%20b", "https://[::1]:80/a?b=c&d=(e)#f", "urn:x:y", "a:", "a+b-c.d:x", "data:text/plain;base64,YQ=="],
)
def test_a_uri_is_a_uri(uri):
    """RFC 3986."""
    assert bad_formats(R2025_06_18, "ReadResourceResult", resource(uri)) == []


NO_SCHEME, DIGITS = "it has no scheme", "it has a % without two hexadecimal digits after it, or a second #"


@each(
    "uri, kind, why",
    [
        *((uri, "uri", NO_SCHEME) for uri in ("", "a", "/a/b", "//host/a", "1a:b", "ä:b")),
        ("file:///a b", "uri", '" " must be written as %20 (RFC 3986)'),
        ("file:///ä b", "uri", '"ä" must be written as %C3%A4 (RFC 3986)'),
        ("C:\\a", "uri", '"\\\\" must be written as %5C (RFC 3986)'),
        ("http://a/%zz", "uri", DIGITS),
        ("a:b#c#d", "uri", DIGITS),
        ("a:b\n", "uri", ""),
        ("file:///ä", "iri", '"ä" must be written as %C3%A4 (RFC 3986)'),
        ("https://пример.рф/я?я#я", "iri", ""),
        ("urn:\ud800", "iri", ""),
    ],
)
def test_what_is_no_uri_is_found_and_told_why(uri, kind, why):
    """RFC 3987: most readers accept an IRI, which is not a URI by RFC 3986."""
    (found,) = bad_formats(R2025_06_18, "ReadResourceResult", resource(uri))
    assert (found.pointer, found.format) == ("/contents/1/uri", kind)
    assert not why or found.why == f"URI: {why}"


@pytest.mark.parametrize("text", ["", "YQ==", "YWI=", "YWJj", "+/+/"])
def test_base64_is_base64(text):
    """RFC 4648, section 4."""
    message = {"content": [{"type": "image", "mimeType": "image/png", "data": text}]}
    assert bad_formats(R2025_06_18, "CallToolResult", message) == []


@pytest.mark.parametrize("text", ["a", "YQ", "YQ=", "Y Q==", "YQ==\n", "-_-_", "YQ==YQ==", "ä", "\ud800", "===="])
def test_what_is_no_base64_is_found(text):
    message = {"content": [{"type": "text", "text": "YQ"}, {"type": "image", "mimeType": "image/png", "data": text}]}
    found = bad_formats(R2025_06_18, "CallToolResult", message)
    assert [(bad.pointer, bad.format) for bad in found] == [("/content/1/data", "byte")]


def test_a_bad_format_shows_an_excerpt():
    message = {"content": [{"type": "audio", "mimeType": "audio/wav", "data": "?" * 1_000_000}]}
    (found,) = bad_formats(R2025_06_18, "CallToolResult", message)
    assert found == BadFormat("/content/0/data", "byte", '"' + "?" * 59 + '…"', "base64")


def test_formats_are_looked_for_only_where_a_definition_has_them():
    message = {"content": [{"type": "text", "text": "x", "data": "?", "uri": "?"}], "structuredContent": {"uri": "?"}}
    assert bad_formats(R2025_06_18, "CallToolResult", message) == []


TOOL = {"name": "a", "inputSchema": {"type": "object", "$schema": "x", "additionalProperties": False}}


def told(revision, definition, message):
    return {
        found.pointer: [each.value for each in found.revisions] for found in elsewhere(revision, definition, message)
    }


def test_a_member_of_other_revisions_is_found_with_them():
    message = {"tools": [TOOL, TOOL | {"icons": [], "title": "A", "execution": {}, "mine": 1}]}
    assert told(R2025_03_26, "ListToolsResult", message) == {
        "/tools/1/icons": ["2025-11-25", "2026-07-28"],
        "/tools/1/title": ["2025-06-18", "2025-11-25", "2026-07-28"],
        "/tools/1/execution": ["2025-11-25"],
    }
    assert told(R2025_11_25, "ListToolsResult", message) == {}
    assert told(R2026_07_28, "ListToolsResult", message) == {"/tools/1/execution": ["2025-11-25"]}


def test_a_member_that_went_is_found():
    message = {
        "method": "elicitation/create",
        "params": {"mode": "url", "message": "", "url": "a:", "elicitationId": ""},
    }
    assert told(R2026_07_28, "ElicitRequest", message) == {"/params/elicitationId": ["2025-11-25"]}


def test_a_member_is_found_in_revisions_that_have_it_in_another_message():
    """R-06: 2026-07-28 has no `initialize`, but its capabilities and implementations have the same members."""
    capabilities = {"completions": {}, "tasks": {}}
    server = {"name": "a", "version": "1", "title": "A", "websiteUrl": "https://a.example"}
    result = {"protocolVersion": "2024-11-05", "capabilities": capabilities, "serverInfo": server}
    assert told(R2024_11_05, "InitializeResult", result) == {
        "/capabilities/completions": ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
        "/capabilities/tasks": ["2025-11-25"],
        "/serverInfo/title": ["2025-06-18", "2025-11-25", "2026-07-28"],
        "/serverInfo/websiteUrl": ["2025-11-25", "2026-07-28"],
    }
    params = {"protocolVersion": "2025-03-26", "capabilities": {"elicitation": {}}, "clientInfo": server}
    assert told(R2025_03_26, "InitializeRequest", {"id": 1, "method": "initialize", "params": params}) == {
        "/params/capabilities/elicitation": ["2025-06-18", "2025-11-25", "2026-07-28"],
        "/params/clientInfo/title": ["2025-06-18", "2025-11-25", "2026-07-28"],
        "/params/clientInfo/websiteUrl": ["2025-11-25", "2026-07-28"],
    }


@pytest.mark.parametrize("revision", Revision, ids=lambda revision: revision.value)
def test_the_envelope_and_the_meta_of_params_belong_to_every_revision(revision):
    """Up to 2025-06-18 only JSONRPCRequest has them."""
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "a", "_meta": {"progressToken": 1}},
    }
    assert told(revision, "CallToolRequest", request) == {}
    notification = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"_meta": {}}}
    assert told(revision, "ProgressNotification", notification) == {}


def test_a_pointer_is_escaped():
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/list",
        "params": {"_meta": {"io.modelcontextprotocol/logLevel": 1}},
    }
    assert list(told(R2025_11_25, "ListToolsRequest", message)) == ["/params/_meta/io.modelcontextprotocol~1logLevel"]


def test_free_content_is_not_looked_into():
    message = {"content": [], "structuredContent": {"icons": [], "title": ""}, "_meta": {"resultType": 1}}
    assert told(R2025_06_18, "CallToolResult", message) == {}
    assert told(R2025_06_18, "Result", {"tools": []}) == {}


def test_the_alternative_is_the_one_that_the_constants_tell():
    message = {
        "content": [{"type": "text", "text": "", "data": ""}, {"type": "resource_link", "title": "", "data": ""}]
    }
    assert told(R2025_06_18, "CallToolResult", message) == {}


@pytest.mark.parametrize(
    ("revision", "definition", "message", "pointers"),
    [
        (R2026_07_28, "ListRootsResult", {"roots": [{"uri": "a:"}]}, [""]),
        (R2025_11_25, "ListRootsResult", {"roots": [{"uri": "a:"}]}, []),
        (R2026_07_28, "DiscoverResult", {"capabilities": {"tools": {}, "logging": {}}}, ["/capabilities/logging"]),
        (R2026_07_28, "InputRequiredResult", {"inputRequests": {"a": {"method": "roots/list"}}}, ["/inputRequests/a"]),
        (R2026_07_28, "InputRequiredResult", {"inputRequests": {"a": {"method": "elicitation/create"}}}, []),
        (R2025_11_25, "CreateMessageRequest", {"params": {"includeContext": "thisServer"}}, ["/params/includeContext"]),
        (R2025_11_25, "CreateMessageRequest", {"params": {"includeContext": "none"}}, []),
    ],
)
def test_what_is_deprecated_is_found_once(revision, definition, message, pointers):
    """2026-07-28, deprecated features."""
    assert [found.pointer for found in outdated(revision, definition, message)] == pointers


def test_a_deprecated_part_is_named():
    (found,) = outdated(R2026_07_28, "DiscoverResult", {"capabilities": {"logging": {}}})
    assert found.name == "logging"
    asked = {"inputRequests": {"where": {"method": "roots/list"}}}
    (found,) = outdated(R2026_07_28, "InputRequiredResult", asked | {"resultType": "input_required"})
    assert (found.pointer, found.name) == ("/inputRequests/where", "roots/list")
    (found,) = outdated(R2026_07_28, "ListRootsResult", {})
    assert found.name == "ListRootsResult"


def deep(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


MESSAGES = {
    "null": None,
    "number": 5,
    "string": "x",
    "array": [{}],
    "object": {},
    "deep": deep(2000),
    "deep where it is known": {"capabilities": {"experimental": deep(2000)}},
    "wrong kinds": {"content": [[[[]]]], "tools": 5, "params": [], "contents": {"a": 1}, "type": []},
}


@pytest.mark.parametrize("name", MESSAGES)
def test_any_message_can_be_walked(name):
    for revision in Revision:
        for definition in definitions(revision):
            for look in (elsewhere, bad_formats, outdated):
                assert len(look(revision, definition, MESSAGES[name])) <= 2


def test_a_definition_of_one_revision_only_is_no_trouble():
    assert elsewhere(R2024_11_05, "ResourceReference", {"type": "ref/resource", "uri": "a", "name": 1}) == []


def test_a_member_that_no_revision_has_is_not_looked_for_in_all_definitions():
    """Measure the function calls, not the time."""
    message = {"method": "ping", "jsonrpc": "2.0", "id": 1, "params": {"_meta": {}}, "nobody's": 1}
    elsewhere(R2024_11_05, "PingRequest", message)  # fill the caches first
    ran = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: ran.append(event))
    try:
        assert elsewhere(R2024_11_05, "PingRequest", message) == []
    finally:
        sys.setprofile(before)
    assert ran.count("call") < 2 * len(all_definitions(R2024_11_05))
