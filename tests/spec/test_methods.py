from pathlib import Path

import pytest

from mcpspy.spec.definitions import definitions
from mcpspy.spec.methods import (
    error_definition,
    methods,
    result_definition,
    revisions_with_method,
)
from mcpspy.spec.revisions import R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28, Revision
from tests.cases import pairs
from tests.each import each

HANDSHAKE = [R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25]


def told(revision, name):
    method = methods(revision)[name]
    return f"{method.kind} of {' and '.join(method.senders)}: {method.definition} -> {method.result}"


@each("method, text", pairs(Path(__file__).parent / "methods.txt"))
def test_a_method_knows_its_senders_and_definitions(method, text):
    revision, name = method.split(" ")
    assert told(Revision(revision), name) == text


@pytest.mark.parametrize("revision", Revision, ids=lambda revision: revision.value)
def test_every_request_and_notification_of_a_revision_is_a_method(revision):
    """Except the requests that 2026-07-28 puts inside a result, and the common base shapes."""
    common = {"Request", "Notification", "PaginatedRequest", "JSONRPCRequest", "JSONRPCNotification",
              "JSONRPCBatchRequest", "ClientRequest", "ServerRequest", "ClientNotification", "ServerNotification",
              "InputRequest"}  # fmt: skip
    inside = {"CreateMessageRequest", "ListRootsRequest", "ElicitRequest"} if revision is R2026_07_28 else set()
    named = {name for name in definitions(revision) if name.endswith(("Request", "Notification"))}
    assert {method.definition for method in methods(revision).values()} == named - common - inside
    for method in methods(revision).values():
        assert (method.kind == "request") == (method.result in definitions(revision))


@pytest.mark.parametrize(
    ("name", "revisions"),
    [
        ("initialize", HANDSHAKE),
        ("tools/list", list(Revision)),
        ("elicitation/create", [R2025_06_18, R2025_11_25]),
        ("tasks/list", [R2025_11_25]),
        ("server/discover", [R2026_07_28]),
        ("tools/lst", []),
    ],
)
def test_a_method_knows_its_revisions(name, revisions):
    assert list(revisions_with_method(name)) == revisions


def chosen(revision, name, params, result):
    return result_definition(methods(revision)[name], params, result)


@pytest.mark.parametrize(
    ("params", "result", "definition"),
    [
        ({"name": "a"}, {"content": []}, "CallToolResult"),
        ({"name": "a", "task": {}}, {"task": {}}, "CreateTaskResult"),
        ({"name": "a", "task": {}}, {"content": []}, "CallToolResult"),
        ({"name": "a"}, {"task": {}}, "CallToolResult"),
        (None, 5, "CallToolResult"),
    ],
)
def test_a_request_for_a_task_may_be_answered_by_one(params, result, definition):
    """2025-11-25, tasks."""
    assert chosen(R2025_11_25, "tools/call", params, result) == definition


def test_only_some_requests_can_be_tasks():
    assert chosen(R2025_11_25, "prompts/get", {"task": {}}, {"task": {}}) == "GetPromptResult"
    assert chosen(R2026_07_28, "tools/call", {"task": {}}, {"task": {}}) == "CallToolResult"


@pytest.mark.parametrize(
    ("name", "result", "definition"),
    [
        ("tools/call", {"resultType": "complete"}, "CallToolResult"),
        ("tools/call", {"resultType": "input_required"}, "InputRequiredResult"),
        ("prompts/get", {"resultType": "input_required"}, "InputRequiredResult"),
        ("resources/read", {"resultType": "input_required"}, "InputRequiredResult"),
        ("tools/list", {"resultType": "input_required"}, "ListToolsResult"),
        ("tools/call", {}, "CallToolResult"),
        ("tools/call", {"resultType": 5}, "CallToolResult"),
        ("tools/call", {"resultType": "task"}, "Result"),
        ("tools/call", [], "CallToolResult"),
    ],
)
def test_the_result_type_decides(name, result, definition):
    """2026-07-28, multi round-trip requests; other values belong to extensions."""
    assert chosen(R2026_07_28, name, {}, result) == definition


@pytest.mark.parametrize(
    ("revision", "code", "definition"),
    [
        (R2024_11_05, -32601, "JSONRPCError"),
        (R2025_06_18, -32042, "JSONRPCError"),
        (R2025_11_25, -32601, "JSONRPCErrorResponse"),
        (R2025_11_25, -32042, "URLElicitationRequiredError"),
        (R2025_11_25, -32022, "JSONRPCErrorResponse"),
        (R2026_07_28, -32042, "JSONRPCErrorResponse"),
        (R2026_07_28, -32020, "HeaderMismatchError"),
        (R2026_07_28, -32021, "MissingRequiredClientCapabilityError"),
        (R2026_07_28, -32022, "UnsupportedProtocolVersionError"),
        (R2026_07_28, None, "JSONRPCErrorResponse"),
        (R2026_07_28, [], "JSONRPCErrorResponse"),
    ],
)
def test_the_code_decides_what_an_error_is_judged_by(revision, code, definition):
    assert error_definition(revision, code) == definition
    assert definition in definitions(revision)
