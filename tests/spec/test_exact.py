"""The fast path of the shape rules: a message that it accepts has no fault that a full check would find."""

import json

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.json_values import Number
from mcpspy.rules.schema import subject
from mcpspy.spec.definitions import definitions
from mcpspy.spec.members import bad_formats, elsewhere, outdated
from mcpspy.spec.revisions import Revision
from mcpspy.spec.schema import fits_exactly, verdict
from tests.findings import CAPTURES

OLD, NEW = Revision.R2025_06_18, Revision.R2026_07_28


def spoken():
    """Yield the messages of the golden captures with their revision, definition and value."""
    for path in sorted(CAPTURES.glob("*.jsonl")):
        conversation = Conversation()
        for record in Capture(str(path)).records():
            for event in conversation.feed(record):
                found = subject(event) if isinstance(event, Message) else None
                if found:
                    yield event, event.revision, found[0], found[1]


def fault_of(revision, definition, value):
    """Return whether one of the full checks finds a fault."""
    wrong = not verdict(revision, definition, value)
    return wrong or any(look(revision, definition, value) for look in (bad_formats, elsewhere, outdated))


def changed(value):
    """Yield copies of a value, each with one change, for every place in it."""
    if isinstance(value, dict):
        for name in value:
            yield {key: inner for key, inner in value.items() if key != name}
            yield value | {name: 5}
            for inner in changed(value[name]):
                yield value | {name: inner}
        yield value | {"somethingElse": 1}
    elif isinstance(value, list):
        for place, held in enumerate(value[:3]):
            for inner in changed(held):
                yield [*value[:place], inner, *value[place + 1 :]]


def test_most_of_what_sdks_say_takes_the_short_way():
    taken = [fits_exactly(revision, name, value) for event, revision, name, value in spoken()]
    assert sum(taken) > 0.85 * len(taken) > 300


def test_what_takes_the_short_way_has_no_fault_that_a_long_way_would_find():
    for _, revision, definition, value in spoken():
        if fits_exactly(revision, definition, value):
            assert not fault_of(revision, definition, value)


def test_what_takes_the_short_way_after_a_change_has_no_fault_either():
    seen = set()
    for event, revision, definition, value in spoken():
        key = (revision, definition)
        if key in seen or len(event.frame.raw) > 3000:
            continue
        seen.add(key)
        for other in changed(value):
            if fits_exactly(revision, definition, other):
                assert not fault_of(revision, definition, other), json.dumps(other)
    assert len(seen) > 100


def request(method, revision=OLD, **params):
    meta = {"io.modelcontextprotocol/protocolVersion": NEW.value, "io.modelcontextprotocol/clientCapabilities": {}}
    given = ({"_meta": meta} if revision is NEW else {}) | params
    return {"jsonrpc": "2.0", "id": 1, "method": method} | ({"params": given} if given else {})


@pytest.mark.parametrize(
    ("revision", "definition", "value"),
    [
        (OLD, "ListToolsRequest", request("tools/list")),
        (OLD, "CallToolRequest", request("tools/call", name="a", arguments={"anything": [1, {}]})),
        (OLD, "CallToolRequest", request("tools/call", name="a", _meta={"progressToken": 1, "of.mine/x": 2})),
        (NEW, "ListToolsRequest", request("tools/list", NEW)),
        (OLD, "ReadResourceRequest", request("resources/read", uri="weather:oslo")),
        (OLD, "ListToolsResult", {"tools": [{"name": "a", "inputSchema": {"type": "object", "anything": 1}}]}),
        (OLD, "CallToolResult", {"content": [{"type": "text", "text": "a"}], "structuredContent": {"x": 1}}),
    ],
)
def test_what_is_exactly_right_fits(revision, definition, value):
    assert fits_exactly(revision, definition, value)


@pytest.mark.parametrize(
    ("revision", "definition", "value"),
    [
        (OLD, "ListToolsRequest", request("tools/list") | {"extra": 1}),
        (OLD, "ListToolsRequest", {"id": 1, "method": "tools/list"}),
        (OLD, "ListToolsRequest", request("tools/list") | {"id": None}),
        (OLD, "CallToolRequest", request("tools/call", name="a", mode="x")),
        (OLD, "CallToolRequest", request("tools/call", name=5)),
        (OLD, "ReadResourceRequest", request("resources/read", uri="weather oslo")),
        (OLD, "ListToolsResult", {"tools": [{"name": "a", "inputSchema": {"type": "object"}, "icons": []}]}),
        (OLD, "CallToolResult", {"content": [{"type": "image", "data": "no base64", "mimeType": "image/png"}]}),
        (NEW, "ListToolsRequest", request("tools/list")),
        (NEW, "LoggingMessageNotification", {"jsonrpc": "2.0", "method": "notifications/message",
                                             "params": {"level": "info", "data": 1}}),
    ],
)  # fmt: skip
def test_what_is_not_exactly_right_takes_the_long_way(revision, definition, value):
    assert not fits_exactly(revision, definition, value)


def test_what_no_json_holds_does_not_make_it_stumble():
    for arguments in ({"n": Number("9" * 5000)}, {"n": "\ud800"}, {"\ud800": 1}, {"n": float("nan")}, {"n": 10**400}):
        assert fits_exactly(OLD, "CallToolRequest", request("tools/call", name="a", arguments=arguments)) in (
            True,
            False,
        )


def test_a_definition_that_the_revision_lacks_is_a_mistake_of_ours():
    with pytest.raises(KeyError):
        fits_exactly(Revision.R2024_11_05, "ElicitRequest", {})


@pytest.mark.parametrize("revision", Revision)
def test_every_definition_can_be_closed(revision):
    for definition in definitions(revision):
        assert fits_exactly(revision, definition, {"jsonrpc": 5}) in (True, False)
