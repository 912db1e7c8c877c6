"""The shapes of tasks (X-01), tested with messages written for this test."""

import pytest

from mcpspy.spec.extensions import all_definitions, extension_methods
from mcpspy.spec.extensions.tasks import TASKS
from mcpspy.spec.revisions import R2025_11_25, R2026_07_28, Revision
from mcpspy.spec.schema import explain, verdict

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
TASK = {"taskId": "t-1", "status": "working", "createdAt": "a", "lastUpdatedAt": "b", "ttlMs": 60000}
ERROR = {"code": -32603, "message": "x"}
ASKS = {"name": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {
    "type": "object", "properties": {}}}}}  # fmt: skip


def call(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META} | params}


RIGHT = [
    ("tasks.GetTaskRequest", call("tasks/get", taskId="t-1")),
    ("tasks.UpdateTaskRequest", call("tasks/update", taskId="t-1", inputResponses={"name": {"action": "decline"}})),
    ("tasks.CancelTaskRequest", call("tasks/cancel", taskId="t-1")),
    ("tasks.CreateTaskResult", {"resultType": "task"} | TASK),
    ("tasks.CreateTaskResult", {"resultType": "task"} | TASK | {"ttlMs": None, "pollIntervalMs": 5}),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK | {"status": "cancelled", "statusMessage": "why"}),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK | {"status": "completed", "result": {"content": []}}),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK | {"status": "failed", "error": ERROR}),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK | {"status": "input_required", "inputRequests": ASKS}),
    ("tasks.UpdateTaskResult", {"resultType": "complete"}),
    ("tasks.TaskStatusNotification", {"jsonrpc": "2.0", "method": "notifications/tasks", "params": TASK}),
    ("tasks.Subscription", {"params": {"notifications": {"taskIds": ["t-1"], "toolsListChanged": True}}}),
]  # fmt: skip
WRONG = [
    ("tasks.GetTaskRequest", call("tasks/get"), 'the member "taskId"'),
    ("tasks.UpdateTaskRequest", call("tasks/update", taskId="t-1"), 'the member "inputResponses"'),
    ("tasks.CreateTaskResult", {"resultType": "task", "task": TASK}, 'the member "taskId"'),
    ("tasks.CreateTaskResult", {"resultType": "task"} | TASK | {"ttlMs": "1"}, "an integer or null"),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK | {"status": "completed"}, 'the member "result"'),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK | {"status": "done"},
     '"working", "input_required", "completed", "failed" or "cancelled"'),
    ("tasks.TaskStatusNotification",
     {"jsonrpc": "2.0", "method": "notifications/tasks", "params": TASK | {"status": "failed"}}, 'the member "error"'),
    ("tasks.Subscription", {"params": {"notifications": {"taskIds": "t-1"}}}, "an array"),
]  # fmt: skip


@pytest.mark.parametrize(("definition", "message"), RIGHT)
def test_x_01_a_message_of_tasks_has_its_shape(definition, message):
    assert explain(R2026_07_28, definition, message) is None
    assert verdict(R2026_07_28, definition, message)


@pytest.mark.parametrize(("definition", "message", "expected"), WRONG)
def test_x_01_what_is_wrong_in_a_message_of_tasks_is_said(definition, message, expected):
    assert not verdict(R2026_07_28, definition, message)
    assert explain(R2026_07_28, definition, message).expected == expected


def test_x_01_the_tasks_of_2025_11_25_are_other_ones():
    assert set(extension_methods(R2026_07_28)) >= {"tasks/get", "tasks/update", "tasks/cancel", "notifications/tasks"}
    for revision in Revision:
        if revision is not R2026_07_28:
            assert not any(extension is TASKS for extension, _ in extension_methods(revision).values())
    assert "Task" in all_definitions(R2025_11_25)
    assert not TASKS.definitions.keys() & all_definitions(R2025_11_25).keys()


def test_every_name_begins_with_the_prefix():
    assert all(name.startswith(TASKS.prefix) for name in TASKS.definitions)
