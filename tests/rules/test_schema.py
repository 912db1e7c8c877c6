"""Message shapes: which definition a message is validated against, and which rule reports which fault."""

import pytest

from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.rules.schema import facts, fits, subject
from tests.rules.examples import findings, records, told


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


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ('> 2 tools/call {"arguments":{}}', ["schema/invalid"]),
        ('> 2 tools/call {"name":"a","mode":5}', []),
        ('> 2 resources/read {"uri":"not a uri"}', ["schema/format"]),
        ("> 2 tools/lists", ["schema/unknown-method"]),
        ("> 2 server/discover", ["schema/method-not-in-revision"]),
        ('> 2 tools/call {"name":"a","task":{}}', ["schema/member-not-in-revision"]),
    ],
)
def test_each_kind_of_fault_has_its_own_rule(line, rules):
    assert [
        finding.rule for finding in findings(f"= 2025-06-18\n{line}") if finding.rule.startswith("schema/")
    ] == rules


def test_a_member_of_another_revision_is_told_once_a_message():
    tools = ",".join(f'{{"name":"t{n}","title":"T","inputSchema":{{"type":"object"}}}}' for n in range(5))
    text = f'= 2025-03-26\n> 2 tools/list\n< 2 = {{"tools":[{tools}]}}'
    assert told(text, "schema/")[1:] == ["#5 schema/member-not-in-revision"]  # the first is in the handshake


def test_a_member_that_several_revisions_have_is_not_said_to_exist_in_one():
    """R-06."""
    found = findings("""
        > 1 initialize {"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"a","version":"1"}}
        < 1 = {"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"a","version":"1","icons":[]}}
    """)
    (sentence,) = [it.message for it in found if it.rule == "schema/member-not-in-revision"]
    assert sentence == "`icons` exists since 2025-11-25; 2025-03-26 does not have it"


DECLARING = """
    > 1 server/discover {META}
    < 1 = {"resultType":"complete","supportedVersions":["2026-07-28"],\
"capabilities":{"tools":{},"extensions":{"%s":{}}},"ttlMs":0,"cacheScope":"public"}
"""
USING = """
    > 2 jobs/start {META}
    < notifications/jobs/done
    > 3 tools/call {META "name":"a"}
    < 3 = {"resultType":"job","id":7}
"""
UNKNOWN = ["schema/unknown-method", "schema/unknown-method", "lifecycle/result-type-unknown"]


@pytest.mark.parametrize(
    ("extension", "found"),
    [("com.example/jobs", []), ("com.example/turbo", UNKNOWN), ("io.modelcontextprotocol/tasks", UNKNOWN)],
)
def test_x_02_an_unknown_extension_is_let_pass_by_its_name_alone(extension, found):
    told = findings(DECLARING % extension + USING)
    assert [it.rule for it in told if it.rule in UNKNOWN] == found


@pytest.mark.parametrize("extension", ["com.example/turbo", "io.modelcontextprotocol/tasks", "experiment"])
def test_x_01_a_declared_extension_switches_off_nothing_else(extension):
    text = """
        > 2 tools/lists {META}
        > 3 resources/subscribe {META "uri":"a:b"}
        > 4 tasks/list {META}
        > 5 tools/call {META "name":"a"}
        < 5 = {"resultType":"parts","content":[]}
    """
    assert [line.partition(" ")[2] for line in told(DECLARING % extension + text, "schema/", "lifecycle/result")] == [
        "schema/unknown-method",
        "schema/method-not-in-revision",
        "schema/method-not-in-revision",
        "lifecycle/result-type-unknown",
    ]


def test_x_01_a_misspelt_method_of_an_extension_is_told_with_the_nearest():
    text = DECLARING % "io.modelcontextprotocol/tasks" + "> 2 tasks/gets {META}"
    (found,) = [it for it in findings(text) if it.rule == "schema/unknown-method"]
    assert "tasks/get" in found.message


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


def test_a_uri_with_letters_beyond_ascii_is_only_mentioned():
    text = '= 2025-11-25\n> 2 resources/read {"uri":"file:///%s"}'
    (mild,) = [it for it in findings(text % "größe") if it.rule == "schema/format"]
    (hard,) = [it for it in findings(text % "a größe") if it.rule == "schema/format"]
    assert (mild.severity, hard.severity) == ("info", "warning")
    assert mild.message == '"file:///größe" is not a valid URI: "ö" must be written as %C3%B6 (RFC 3986)'


@pytest.mark.parametrize("declared", ["extensions", "experimental"])
def test_methods_of_nobody_are_expected_where_a_side_has_declared_some(declared):
    text = """
        > 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-06-18","capabilities":{"%s":%s},"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        < notifications/peer/news
    """
    assert told(text % (declared, '{"peer/news":{}}'), "schema/unknown") == []
    assert told(text % (declared, "{}"), "schema/unknown") == ["#4 schema/unknown-method"]


@pytest.mark.parametrize("schema", ["", ',"inputSchema":null', ',"inputSchema":{"type":"object","required":"x"}'])
def test_a_bad_schema_of_one_tool_hides_no_fault_of_another(schema):
    """R-07: a finding about the schema hides only the `schema/invalid` finding of the same fault."""
    tools = f'[{{"name":"a"{schema}}},{{"name":"b","inputSchema":{{"type":"object"}},"description":7}}]'
    found = findings(f'= 2025-11-25\n> 2 tools/list\n< 2 = {{"tools":{tools}}}')
    assert [it.pointer for it in found if it.rule == "schema/invalid"] == ["/result/tools/1/description"]


@pytest.mark.parametrize("result", ["[]", "[{}]", "7", '"x"', "null", "true"])
@pytest.mark.parametrize("method", ["ping", "tools/list", "tools/call", "resources/read"])
def test_a_result_that_is_no_object_is_invalid(method, result, capsys):
    text = f'= 2025-11-25\n> 2 {method} {{}}\n< {{"jsonrpc":"2.0","id":2,"result":{result}}}'
    assert "#5 schema/invalid" in told(text, "schema/invalid")
    assert capsys.readouterr().err == ""  # a bug in a rule would be reported here
