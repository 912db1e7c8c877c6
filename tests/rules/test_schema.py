"""Message shapes: which definition a message is validated against, and which rule reports which fault."""

import pytest

from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.rules.schema import facts, fits, subject
from tests.rules.examples import records, told


def last(text):
    conversation = Conversation()
    events = [event for record in records(text) for event in conversation.feed(record)]
    return [event for event in events if isinstance(event, Message)][-1]


def exact(text):
    """Return whether the last message matches its definition exactly."""
    message = last(text)
    return fits(message, facts(message.method, message.revision))


@pytest.mark.parametrize(
    ("text", "definition", "pointer"),
    [
        ("= 2025-06-18\n> 2 tools/list", "ListToolsRequest", ""),
        ("= 2025-06-18\n> notifications/roots/list_changed", "RootsListChangedNotification", ""),
        ('= 2025-06-18\n> 2 tools/list\n< 2 = {"tools":[]}', "ListToolsResult", "/result"),
        ('= 2025-06-18\n> 2 ping\n< 2 ! {"code":1,"message":"x"}', "JSONRPCError", ""),
        ('> 1 tools/call {META "name":"a"}\n< 1 = {"resultType":"input_required"}', "InputRequiredResult", "/result"),
    ],
)
def test_a_message_is_judged_by_the_definition_of_its_own_method(text, definition, pointer):
    found = subject(last(text))
    assert (found[0], found[2]) == (definition, pointer)


@pytest.mark.parametrize(
    "text",
    [
        "> 2 tools/list",
        "= 2025-06-18\n> 2 peer/unknown",
        "= 2025-06-18\n> tools/list",
        "= 2025-06-18\n> 2 notifications/initialized",
        "= 2025-06-18\n< 9 = {}",
        "= 2025-06-18\n< | 5",
    ],
)
def test_what_nobody_can_judge_has_no_definition(text):
    assert subject(last(text)) is None
    assert not exact(text)


def test_an_ordinary_message_fits_exactly():
    for text in ("> 2 tools/list", '> 2 tools/call {"name":"a","arguments":{"x":[1]}}', "> 2 ping"):
        assert exact(f"= 2025-06-18\n{text}")


TASK = """
    = 2025-11-25
    > 2 tools/call {"name":"slow","task":{}}
    < 2 = {"task":{"taskId":"a","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}
    > 3 tasks/result {"taskId":"a"}
"""


def test_the_result_of_a_task_is_judged_as_that_of_its_request():
    assert subject(last(TASK + '< 3 = {"content":[]}'))[0] == "CallToolResult"
    assert exact(TASK + '< 3 = {"content":[]}')
    assert told(TASK + '< 3 = {"contents":[]}', "schema/") == ["#7 schema/invalid"]
    assert told(TASK + '< 3 ! {"code":-32603,"message":"no"}', "schema/") == []


def test_the_result_of_a_task_that_is_not_known_is_not_judged():
    text = TASK.replace('tasks/result {"taskId":"a"}', 'tasks/result {"taskId":"b"}')
    assert subject(last(text + "< 3 = {}")) is None


@pytest.mark.parametrize("result", ["[]", "[{}]", "7", '"x"', "null", "true"])
@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call", "resources/read"])
def test_a_result_that_is_no_object_is_invalid(method, result, capsys):
    text = f'= 2025-11-25\n> 2 {method} {{}}\n< {{"jsonrpc":"2.0","id":2,"result":{result}}}'
    assert "#5 schema/invalid" in told(text, "schema/invalid")
    assert capsys.readouterr().err == ""  # a bug in a rule would be reported here
