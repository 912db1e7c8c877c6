"""The shapes of extensions (X-01), tested with messages written for this test."""

from mcpspy.spec.extensions import EXTENSIONS, SKILLS, TASKS, UI, Dialect, all_definitions, extension_methods
from mcpspy.spec.revisions import R2025_06_18, R2025_11_25, R2026_07_28, Revision
from mcpspy.spec.schema import explain, verdict
from mcpspy.wire.jsonrpc import Result
from tests.each import each

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
TASK = {"taskId": "t-1", "status": "working", "createdAt": "a", "lastUpdatedAt": "b", "ttlMs": 60000}
ERROR = {"code": -32603, "message": "x"}
ASKS = {"name": {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {
    "type": "object", "properties": {}}}}}  # fmt: skip


def call(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": META} | params}


FILE = {"uri": "skill://pdf/SKILL.md", "digest": "sha256:00", "size": 7}
SKILL = {"uri": "skill://pdf/SKILL.md", "frontmatter": {"name": "pdf", "description": "d", "license": "MIT"},
         "resources": [FILE]}  # fmt: skip
CACHE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "public"}
CSP = {"connectDomains": ["https://example.com"], "resourceDomains": []}


def tool(**ui):
    return {"tools": [{"name": "map", "_meta": {"ui": ui}}]}


def contents(**ui):
    return {"contents": [{"uri": "ui://map", "text": "", "_meta": {"ui": ui}}]}


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
    ("skills.ListSkillsResult", CACHE | {"skills": [SKILL, SKILL | {"resources": "dynamic"}], "nextCursor": "c"}),
    ("skills.ListSkillsResult", CACHE | {"skills": []}),
    ("skills.GetSkillResult", CACHE | {"skill": SKILL}),
    ("skills.ReadResourceDirectoryResult",
     {"resultType": "complete", "resources": [{"uri": "skill://pdf", "name": "a", "mimeType": "inode/directory"}]}),
    ("ui.Tools", tool(resourceUri="ui://map", visibility=["app", "model"])),
    ("ui.Tools", {"tools": [{"name": "plain"}, {"_meta": {"com.example/x": 1}}]}),
    ("ui.Contents", contents(csp=CSP, permissions={"camera": {}}, prefersBorder=True, domain="a.example.com")),
    ("ui.Resources", {"resources": []}),
]  # fmt: skip
WRONG = [
    ("tasks.GetTaskRequest", call("tasks/get"), 'the member "taskId"'),
    ("tasks.UpdateTaskRequest", call("tasks/update", taskId="t-1"), 'the member "inputResponses"'),
    ("tasks.CreateTaskResult", {"resultType": "task", "task": TASK}, '"createdAt", "lastUpdatedAt" and "ttlMs"'),
    ("tasks.CreateTaskResult", {"resultType": "task"} | TASK | {"ttlMs": "1"}, "an integer or null"),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK | {"status": "completed"}, 'the member "result"'),
    ("tasks.GetTaskResult", {"resultType": "complete"} | TASK | {"status": "done"},
     '"working", "input_required", "completed", "failed" or "cancelled"'),
    ("tasks.TaskStatusNotification",
     {"jsonrpc": "2.0", "method": "notifications/tasks", "params": TASK | {"status": "failed"}}, 'the member "error"'),
    ("tasks.Subscription", {"params": {"notifications": {"taskIds": "t-1"}}}, "an array"),
    ("skills.ListSkillsResult", {"resultType": "complete", "skills": []}, 'the members "ttlMs" and "cacheScope"'),
    ("skills.GetSkillResult", CACHE | {"skill": {**SKILL, "frontmatter": {"name": "pdf"}}}, 'the member "description"'),
    ("skills.GetSkillResult", CACHE | {"skill": SKILL | {"resources": [{"uri": "a:b", "digest": "x"}]}},
     'the member "size"'),
    ("skills.GetSkillResult", CACHE | {"skill": {"uri": "a:b", "frontmatter": SKILL["frontmatter"]}},
     'the member "resources"'),
    ("ui.Tools", tool(resourceUri=7), "/tools/0/_meta/ui/resourceUri: a string"),
    ("ui.Tools", tool(visibility=["user"]), '/tools/0/_meta/ui/visibility/0: "model" or "app"'),
    ("ui.Tools", tool(visibility="app"), "/tools/0/_meta/ui/visibility: an array"),
    ("ui.Contents", contents(csp={"connectDomains": "*"}), "/contents/0/_meta/ui/csp/connectDomains: an array"),
    ("ui.Contents", contents(permissions={"camera": True}), "/contents/0/_meta/ui/permissions/camera: an object"),
]  # fmt: skip


@each("definition, message", RIGHT)
def test_x_01_a_message_of_an_extension_has_its_shape(definition, message):
    for revision in (R2025_11_25, R2026_07_28) if definition.startswith("ui.") else (R2026_07_28,):
        assert not explain(revision, definition, message)
        assert verdict(revision, definition, message)


@each("definition, message, expected", WRONG)
def test_x_01_x_04_what_is_wrong_in_a_message_of_an_extension_is_told(definition, message, expected):
    assert not verdict(R2026_07_28, definition, message)
    why, *_ = explain(R2026_07_28, definition, message)
    assert f"{why.pointer}: {why.expected}".endswith(expected)


def test_x_04_a_revision_without_caching_needs_no_hints():
    assert verdict(R2025_06_18, "skills.ListSkillsResult", {"skills": [SKILL]})


def test_x_01_every_revision_may_have_skills():
    for revision in Revision:
        methods = {name for name, (extension, _) in extension_methods(revision).items() if extension is SKILLS}
        assert methods == {"skills/list", "skills/get", "resources/directory/read"}


def test_x_01_the_tasks_of_2025_11_25_are_other_ones():
    assert set(extension_methods(R2026_07_28)) >= {"tasks/get", "tasks/update", "tasks/cancel", "notifications/tasks"}
    for revision in Revision:
        if revision is not R2026_07_28:
            assert not any(extension is TASKS for extension, _ in extension_methods(revision).values())
    assert "Task" in all_definitions(R2025_11_25)
    assert not TASKS.definitions.keys() & all_definitions(R2025_11_25).keys()


def test_x_01_only_results_get_what_ui_adds():
    dialect = Dialect(R2025_11_25, frozenset({UI.id}))
    assert dialect.additions("tools/list", Result) == ["ui.Tools"]
    assert dialect.additions("tools/call", Result) == []


@each("extension", EXTENSIONS.values())
def test_every_name_begins_with_the_prefix(extension):
    assert all(name.startswith(extension.prefix) for name in extension.definitions)
