"""A dialect: a revision with its negotiated extensions, each of them independent (X-01, X-02)."""

import pytest

from mcpspy.spec.extensions import EXTENSIONS, TASKS, Dialect, all_definitions, extension_methods
from mcpspy.spec.revisions import R2025_06_18, R2025_11_25, R2026_07_28, Revision
from mcpspy.spec.schema import verdict
from mcpspy.wire.jsonrpc import Notification, Request

WITH_TASKS = Dialect(R2026_07_28, frozenset({TASKS.id}))
WITH_OTHER = Dialect(R2026_07_28, frozenset({"com.example/jobs"}))


def test_a_revision_alone_has_its_own_methods_and_result_types():
    assert Dialect(R2025_11_25).has_method("tasks/list")
    assert not Dialect(R2025_06_18).has_method("tasks/list")
    assert not Dialect(R2026_07_28).has_method("tasks/get")
    assert Dialect(R2026_07_28).has_result_type("input_required", "tools/call")
    assert not Dialect(R2026_07_28).has_result_type("task", "tools/call")


def test_without_a_revision_there_is_nothing():
    assert not Dialect(None).has_method("tools/list")
    assert not Dialect(None, frozenset({TASKS.id})).has_method("tasks/get")


def test_x_01_a_known_extension_adds_what_its_shapes_say_and_no_more():
    assert WITH_TASKS.has_method("tasks/get")
    assert WITH_TASKS.method("tasks/get").definition == "tasks.GetTaskRequest"
    assert not WITH_TASKS.has_method("tasks/list")
    assert not WITH_TASKS.has_method("tools/lists")
    assert WITH_TASKS.has_result_type("task", "tools/call")
    assert not WITH_TASKS.has_result_type("task", "prompts/get")
    assert not WITH_TASKS.has_result_type("partial", "tools/call")


def test_x_01_a_revision_that_lacks_the_shapes_lacks_the_extension():
    older = Dialect(R2025_11_25, frozenset({TASKS.id}))
    assert older.result(older.method("tools/call"), {}, {"resultType": "task"}) == "CallToolResult"
    assert not older.has_result_type("task", "tools/call")
    assert older.method("tasks/get").definition == "GetTaskRequest"
    assert not older.has_method("tasks/update")


def test_x_02_an_unknown_extension_may_have_what_carries_its_name():
    assert WITH_OTHER.has_method("jobs/start")
    assert WITH_OTHER.has_method("notifications/jobs/done")
    assert WITH_OTHER.has_result_type("job", "tools/call")


@pytest.mark.parametrize("name", ["com.example/tools", "com.example/tools-v2", "tools"])
def test_x_02_an_unknown_extension_does_not_have_what_begins_like_the_methods_of_the_protocol(name):
    spoken = Dialect(R2026_07_28, frozenset({name}))
    assert not spoken.has_method("tools/lists")
    assert not spoken.has_method("notifications/tools/changed")
    assert spoken.has_method("com.example/tools/start") == (name == "com.example/tools")


def test_x_02_an_unknown_extension_switches_nothing_else_off():
    assert not WITH_OTHER.has_method("tasks/get")
    assert not WITH_OTHER.has_method("tools/lists")
    assert not WITH_OTHER.has_result_type("task", "tools/call")
    both = Dialect(R2026_07_28, WITH_OTHER.extensions | WITH_TASKS.extensions)
    assert not both.has_method("tasks/list")


def test_x_02_extensions_about_authorization_add_nothing_to_messages():
    names = frozenset(name for name, extension in EXTENSIONS.items() if not extension.definitions)
    assert len(names) == 2
    dialect = Dialect(R2026_07_28, names)
    assert not dialect.has_method("oauth-client-credentials/token")


def test_x_01_a_result_is_judged_by_what_was_negotiated():
    call = WITH_TASKS.method("tools/call")
    assert WITH_TASKS.result(call, {}, {"resultType": "task"}) == "tasks.CreateTaskResult"
    assert Dialect(R2026_07_28).result(call, {}, {"resultType": "task"}) == "Result"
    assert WITH_TASKS.result(call, {}, {"resultType": "complete"}) == "CallToolResult"
    assert WITH_TASKS.result(call, {}, {"resultType": 7}) == "CallToolResult"


def test_x_01_messages_of_the_protocol_get_what_an_extension_adds_to_them():
    assert WITH_TASKS.additions("subscriptions/listen", Request) == ["tasks.Subscription"]
    assert WITH_TASKS.additions("subscriptions/listen", Notification) == []
    assert Dialect(R2026_07_28).additions("subscriptions/listen", Request) == []


@pytest.mark.parametrize("revision", Revision)
@pytest.mark.parametrize("extension", EXTENSIONS.values(), ids=EXTENSIONS)
def test_x_01_every_message_of_an_extension_is_judged_by_definitions_that_its_revision_has(extension, revision):
    spoken, there = Dialect(revision, frozenset({extension.id})), all_definitions(revision)
    used = [name for method, kind in extension.additions for name in spoken.additions(method, kind)]
    for result_type, by_method in extension.result_types.items():
        known = filter(None, map(spoken.method, by_method))
        used += [spoken.result(method, {}, {"resultType": result_type}) for method in known]
    for name in (name for it in Revision for name, (owner, _) in extension_methods(it).items() if owner is extension):
        method = spoken.method(name)
        used += [method.definition, spoken.result(method, {}, {})] if method and method.result else []
    assert set(used) <= there.keys()
    for definition in used:
        assert not verdict(revision, definition, None)
