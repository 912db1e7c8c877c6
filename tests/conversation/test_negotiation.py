"""Which extension a message uses, and which side has not declared it (X-01)."""

import pytest

from mcpspy.conversation.context import Declarations, declares, undeclared_by, used_extension
from mcpspy.conversation.model import Session
from mcpspy.spec.extensions import TASKS
from tests.rules.examples import messages

DECLARES = {"extensions": {TASKS.id: {}}}


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ('> 1 tasks/get {META "taskId":"a"}', True),
        ("> 1 tools/list {META}", False),
        ('> 1 subscriptions/listen {META "notifications":{"taskIds":["a"]}}', True),
        ('> 1 subscriptions/listen {META "notifications":{"toolsListChanged":true}}', False),
        ("> 1 subscriptions/listen {META}", False),
        ('> 1 tools/call {META "name":"a"}\n< 1 = {"resultType":"task"}', True),
        ('> 1 tools/call {META "name":"a"}\n< 1 = {"resultType":["task"]}', False),
        ('> 1 prompts/get {META "name":"a"}\n< 1 = {"resultType":"task"}', False),
        ("= 2025-11-25\n> 1 tasks/list", False),
        ('= 2025-11-25\n> 1 subscriptions/listen {"notifications":{"taskIds":["a"]}}', False),
        ('= 2025-11-25\n> 1 tools/call {"name":"a"}\n< 1 = {"resultType":"task"}', False),
        ("> 1 tasks/get", False),  # the revision is unknown
    ],
)
def test_x_01_a_message_uses_an_extension_by_method_result_type_or_filter(text, used):
    found = used_extension(messages(text)[-1])
    assert (found.id if found else None) == (TASKS.id if used else None)


@pytest.mark.parametrize(
    ("client", "server", "sides"),
    [
        ("", {}, ["client", "server"]),
        (f"with {TASKS.id} ", {}, ["server"]),
        ("", DECLARES, ["client"]),
        ("", None, ["client"]),
        (f"with {TASKS.id} ", DECLARES, []),
        (f"with {TASKS.id} ", None, []),
    ],
)
def test_x_01_what_is_not_known_of_a_side_counts_for_nothing(client, server, sides):
    (request,) = messages(f'> 1 tasks/get {{META {client}"taskId":"a"}}')
    assert undeclared_by(TASKS, request, Session(server=server)) == sides


def test_x_01_after_a_loss_nothing_is_held_against_the_server():
    (request,) = messages(f'> 1 tasks/get {{META with {TASKS.id} "taskId":"a"}}')
    assert undeclared_by(TASKS, request, Session(server={}, lossy=True)) == []


def test_x_03_what_a_message_declares_is_known_of_both_eras():
    discover = '{"resultType":"complete","capabilities":{"extensions":{"b/b":{},"a/a":{}}}}'
    asked, answered, listed, listing = messages(f"""
        > 1 server/discover {{META with a/a}}
        < 1 = {discover}
        > 2 tools/list {{META}}
        < 2 = {discover}
    """)
    assert [declares(message) for message in (asked, answered, listed, listing)] == [("a/a",), ("a/a", "b/b"), (), ()]
    begun, agreed = messages("""
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{"experimental":{"turbo":{}}}}
        < 1 = {"protocolVersion":"2025-11-25","capabilities":{"extensions":7}}
    """)
    assert [declares(begun), declares(agreed)] == [("turbo",), ()]


def test_x_03_who_declared_what_is_told_by_name():
    declarations = Declarations()
    declarations.add(5, "client", ["b/b", "a/a"])
    declarations.add(6, "server", ["a/a"])
    declarations.add(7, "client", ["a/a"])
    assert declarations.told() == ["a/a (client, server)", "b/b (client)"]
    assert declarations.sides["a/a"] == {"client": 5, "server": 6}
    declarations.add(8, "client", map(str, range(1000)))
    assert len(declarations.sides) == 100
