"""Extensions must be negotiated before they are used, and correct sessions with extensions pass (X-01, X-02)."""

import itertools
import json

import pytest

from mcpspy.rules.judge import Judge
from mcpspy.spec.extensions import EXTENSIONS, extension_methods
from mcpspy.spec.revisions import Revision
from tests.rules.examples import findings, records, told

TASKS = "io.modelcontextprotocol/tasks"


def discover(*extensions, capabilities='"tools":{},"resources":{},"prompts":{}'):
    """Return the discovery of a server that declares extensions, each as `id` or `id={settings}`."""
    pairs = [(name, settings or "{}") for name, _, settings in (it.partition("=") for it in extensions)]
    own = ",".join(f'"{name}":{settings}' for name, settings in pairs)
    return f"""
        > 1 server/discover {{META}}
        < 1 = {{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"public",\
"capabilities":{{{capabilities},"extensions":{{{own}}}}}}}
    """


STATE = '"createdAt":"2026-11-20T10:00:00Z","lastUpdatedAt":"2026-11-20T10:00:00Z","ttlMs":60000'
CREATED = f'{{"resultType":"task","taskId":"t-1","status":"working",{STATE}}}'
WORKING = f'{{"resultType":"complete","taskId":"t-1","status":"working",{STATE}}}'
DONE = f'{{"resultType":"complete","taskId":"t-1","status":"completed",{STATE},"result":{{"content":[]}}}}'
CALL = f'{{META with {TASKS} "name":"build","arguments":{{}}}}'
NAMED = f'{{META with {TASKS} "taskId":"t-1"}}'
ASKING = (
    f'{{"resultType":"complete","taskId":"t-1","status":"input_required",{STATE},"inputRequests":{{"q":'
    '{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":'
    '{"type":"object","properties":{}}}}}}'
)
ID = '"_meta":{"io.modelcontextprotocol/subscriptionId":3}'

CLEAN = {
    "a task is polled to its end": f"""{discover(TASKS)}
        > 2 tools/call {CALL}
        < 2 = {CREATED}
        @5 > 3 tasks/get {NAMED}
        @5 < 3 = {WORKING}
        @9 > 4 tasks/get {NAMED}
        @9 < 4 = {DONE}
    """,
    "a task asks for input and is updated": f"""{discover(TASKS)}
        > 2 tools/call {CALL}
        < 2 = {CREATED}
        > 3 tasks/get {NAMED}
        < 3 = {ASKING}
        > 4 tasks/update {{META with {TASKS} "taskId":"t-1","inputResponses":{{"q":{{"action":"decline"}}}}}}
        < 4 = {{"resultType":"complete"}}
    """,
    "a task is cancelled and ends as it likes": f"""{discover(TASKS)}
        > 2 tools/call {CALL}
        < 2 = {CREATED}
        > 3 tasks/cancel {NAMED}
        < 3 = {{"resultType":"complete"}}
        > 4 tasks/get {NAMED}
        < 4 = {DONE}
    """,
    "a client that could take a task gets the result at once": f"""{discover(TASKS)}
        > 2 tools/call {CALL}
        < 2 = {{"resultType":"complete","content":[]}}
    """,
    "a server that was never asked what it can do": f"""
        > 2 tools/call {CALL}
        < 2 = {CREATED}
        > 3 tasks/get {NAMED}
        < 3 ! {{"code":-32602,"message":"Task has expired"}}
    """,
    "the state of a task comes on a subscription": f"""{discover(TASKS)}
        > 2 tools/call {CALL}
        < 2 = {CREATED}
        > 3 subscriptions/listen {{META with {TASKS} "notifications":{{"taskIds":["t-1"]}}}}
        < notifications/subscriptions/acknowledged {{{ID},"notifications":{{"taskIds":["t-1"]}}}}
        < notifications/tasks {{{ID},"taskId":"t-1","status":"cancelled",{STATE}}}
    """,
    "a tool that needs tasks refuses who lacks them": f"""{discover(TASKS)}
        > 2 tools/call {{META "name":"build","arguments":{{}}}}
        < 2 ! {{"code":-32021,"message":"no","data":{{"requiredCapabilities":{{"extensions":{{"{TASKS}":{{}}}}}}}}}}
    """,
    "a race between a task and a cancellation": f"""{discover(TASKS)}
        > 2 tools/call {CALL}
        < 2 = {CREATED}
        > notifications/cancelled {{"requestId":2}}
    """,
    "an extension of nobody's, under its own name": f"""{discover("com.example/turbo-v2")}
        > 2 turbo/start {{META with com.example/turbo-v2 "speed":9}}
        < 2 = {{"resultType":"turbo_started","lap":1}}
        < notifications/turbo/lap {{"lap":2}}
    """,
    "an experiment of a session with a handshake": """
        > 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
        < 1 = {"protocolVersion":"2025-11-25","capabilities":{"experimental":{"claude/channel":{}}},\
"serverInfo":{"name":"s","version":"1"}}
        > notifications/initialized
        < notifications/claude/channel {"content":"hello"}
    """,
}


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN.keys())
def test_x_01_x_02_a_session_with_extensions_that_is_right_has_no_finding(text):
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ('> 2 tasks/get {META "taskId":"t-1"}\n< 2 ! {"code":-32601,"message":"no"}', ["extension/not-negotiated"]),
        (f"> 2 tasks/get {NAMED}\n< 2 = {DONE}", []),
        (f"> 2 tasks/get {NAMED}\n< 2 = {CREATED}", ["lifecycle/result-type-unknown"]),
        (f'> 2 tasks/get {NAMED}\n< 2 = {{"resultType":"complete","taskId":"t-1"}}', ["schema/invalid"]),
        (f'> 2 tasks/get {{META with {TASKS} "task":"t-1"}}', ["schema/invalid"]),
        (f"> 2 tools/call {CALL}\n< 2 = {CREATED.replace('60000', '[]')}", ["schema/invalid"]),
        (f'> 2 prompts/get {{META with {TASKS} "name":"a"}}\n< 2 = {CREATED}', ["lifecycle/result-type-unknown"]),
        (f"> 2 tasks/list {{META with {TASKS} }}", ["schema/method-not-in-revision"]),
        (f"< notifications/tasks {{{ID}}}", ["schema/invalid"]),
        (f"< 2 tasks/get {NAMED}", ["lifecycle/wrong-direction"]),
        (f'> 2 subscriptions/listen {{META with {TASKS} "notifications":{{"taskIds":"t-1"}}}}', ["schema/invalid"]),
        ('> 2 tasks/get {"taskId":"t-1","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}',
         ["lifecycle/meta-missing"]),
    ],
)  # fmt: skip
def test_x_01_an_exchange_is_judged_by_what_was_negotiated_for_it(text, rules):
    groups = ("schema/", "extension/not", "lifecycle/")
    assert [line.partition(" ")[2] for line in told(discover(TASKS) + text, *groups)] == rules


def pieces():
    """Yield each known extension with its methods and result types, as extension, method and result."""
    for extension in EXTENSIONS.values():
        names = {name for it in Revision for name, (owner, _) in extension_methods(it).items() if owner is extension}
        for method in sorted(names | {method for method, _ in extension.additions}):
            yield extension, method, {"resultType": "complete"}
        for result_type, by_method in extension.result_types.items():
            yield from ((extension, method, {"resultType": result_type}) for method in sorted(by_method))


@pytest.mark.parametrize("revision", [it.value for it in Revision])
@pytest.mark.parametrize(("extension", "method", "result"), list(pieces()))
def test_x_01_no_rule_fails_at_a_message_of_an_extension(extension, method, result, revision):
    """Under every revision, whichever side has declared the extension."""
    for client, server in itertools.product([{}, {"extensions": {extension.id: {}}}], repeat=2):
        capabilities = {"io.modelcontextprotocol/clientCapabilities": client}
        meta = capabilities | {"io.modelcontextprotocol/protocolVersion": revision}
        params = {"notifications": {"taskIds": 3}} | ({"_meta": meta} if revision == "2026-07-28" else {})
        begin = {"protocolVersion": revision, "capabilities": client, "clientInfo": {"name": "c", "version": "1"}}
        agree = {"protocolVersion": revision, "capabilities": server, "serverInfo": {"name": "s", "version": "1"}}
        text = f"> 1 initialize {json.dumps(begin)}\n< 1 = {json.dumps(agree)}\n> notifications/initialized"
        if revision == "2026-07-28":
            text = f"> 1 server/discover {{META}}\n< 1 = {json.dumps(agree)}"
        sentences = []
        judge = Judge(report=sentences.append)
        asked = json.dumps(params)
        for record in records(f"""{text}
            > 2 {method} {asked}
            < 2 = {json.dumps(result)}
            < {method} {asked}
        """):
            list(judge.feed(record))
        assert (list(judge.end()), sentences)[1] == []


BOTH = f'"capabilities":{{"extensions":{{"{TASKS}":{{}}}}}}'
OLDER = f"""
    > 1 initialize {{"protocolVersion":"2025-11-25",{BOTH},"clientInfo":{{"name":"c","version":"1"}}}}
    < 1 = {{"protocolVersion":"2025-11-25",{BOTH},"serverInfo":{{"name":"s","version":"1"}}}}
    > notifications/initialized
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('> 2 tasks/update {"taskId":"t-1"}', f"tasks/update belongs to {TASKS}, which 2025-11-25 does not have"),
        ("< notifications/tasks", f"notifications/tasks belongs to {TASKS}, which 2025-11-25 does not have"),
        ('> 2 subscriptions/listen {"notifications":{"taskIds":["t-1"]}}',
         "subscriptions/listen exists in 2026-07-28 only; 2025-11-25 does not have it"),
        ('> 2 tasks/cancel {"taskId":"t-1"}', None),
    ],
)  # fmt: skip
def test_x_01_an_older_revision_does_not_have_what_is_declared(line, message):
    rules = ("schema/", "extension/")
    assert [it.message for it in findings(OLDER + line) if it.rule.startswith(rules)] == ([message] if message else [])


def test_x_01_of_a_method_of_an_extension_nothing_is_said_where_no_revision_is_known():
    assert told("> 2 tasks/update", "schema/") == []


def test_x_01_what_is_negotiated_for_one_request_is_not_for_another():
    text = f"""{discover(TASKS)}
        > 2 tools/call {CALL}
        < 2 = {CREATED}
        > 3 tools/call {{META "name":"build","arguments":{{}}}}
        < 3 = {CREATED}
    """
    (found,) = findings(text)
    assert (found.frame, found.rule, found.blame) == (6, "extension/not-negotiated", "server")
    assert found.message == f'the result type "task" belongs to {TASKS}, which the client did not declare'


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (f"= {DONE}", f"tasks/get is answered, but the client did not declare {TASKS}; expected the error -32021"),
        ('! {"code":-32603,"message":"no"}', f"expected the error -32021, because the client did not declare {TASKS}"),
        ('! {"code":-32021,"message":"no","data":{"requiredCapabilities":{"extensions":{"a/b":{}}}}}',
         f"data.requiredCapabilities.extensions does not name {TASKS}"),
        (f'! {{"code":-32021,"message":"no","data":{{"requiredCapabilities":{{"extensions":{{"{TASKS}":{{}}}}}}}}}}',
         None),
    ],
)  # fmt: skip
def test_x_01_who_lacks_an_extension_is_told_which(answer, message):
    text = f'{discover(TASKS)}\n> 2 tasks/get {{META "taskId":"t-1"}}\n< 2 {answer}'
    rules = ("extension/required-error", "extension/served-undeclared")
    found = [it.message for it in findings(text) if it.rule in rules]
    assert found == ([message] if message else [])


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32020, -32022])
def test_x_01_a_server_may_refuse_a_request_for_what_is_wrong_with_it_first(code):
    text = f'{discover(TASKS)}\n> 2 tasks/get {{META "taskId":"t-1"}}\n< 2 ! {{"code":{code},"message":"no"}}'
    assert "extension/required-error" not in [it.rule for it in findings(text)]


def test_x_01_an_error_that_another_finding_explains_is_not_called_the_wrong_one():
    """Any other error is only a warning, because its cause is unknown."""
    for params, code, expected in (
        ('"taskId":7', "-32603", []),
        ('"taskId":"t-1"', "-32603", ["warning"]),
        ('"taskId":"t-1"', "{}", ["warning"]),
    ):
        text = f'{discover(TASKS)}\n> 2 tasks/get {{META {params}}}\n< 2 ! {{"code":{code},"message":"no"}}'
        assert [it.severity for it in findings(text) if it.rule == "extension/required-error"] == expected


def test_x_01_an_extension_that_was_declared_is_not_called_missing():
    error = f'{{"code":-32021,"message":"no","data":{{"requiredCapabilities":{{"extensions":{{"{TASKS}":{{}}}}}}}}}}'
    assert told(f"{discover(TASKS)}\n> 2 tools/call {CALL}\n< 2 ! {error}", "extension/") == [
        "#4 extension/required-error"
    ]


def test_x_01_a_task_in_answer_to_another_method_is_an_error():
    text = f'{discover(TASKS)}\n> 2 prompts/get {{META with {TASKS} "name":"a"}}\n< 2 = {CREATED}'
    assert [(it.message, it.severity) for it in findings(text) if it.frame == 4] == [
        ('the result type "task" is allowed for tools/call only', "error")
    ]


def test_x_01_a_task_is_cancelled_by_its_own_method_alone():
    text = f"{discover(TASKS)}\n> 2 tools/call {CALL}\n< 2 = {CREATED}\n"
    late = told(text + '@5 > notifications/cancelled {"requestId":2}')
    named = told(text + '> notifications/cancelled {"requestId":"t-1"}')
    assert late == named == ["#5 cancel/task"]
    again = f'@5 > 2 tools/call {CALL}\n@6 > notifications/cancelled {{"requestId":2}}'
    assert "#6 cancel/task" not in told(text + again)


def test_x_01_the_state_of_a_task_comes_only_to_who_has_asked_for_it():
    text = f"""{discover(TASKS)}
        > 3 subscriptions/listen {{META with {TASKS} "notifications":{{"toolsListChanged":true}}}}
        < notifications/subscriptions/acknowledged {{{ID},"notifications":{{"toolsListChanged":true}}}}
        < notifications/tasks {{{ID},"taskId":"t-1","status":"working",{STATE}}}
        < notifications/tasks {{"taskId":"t-1","status":"working",{STATE}}}
    """
    assert [(it.frame, it.rule, it.severity) for it in findings(text)] == [
        (5, "subscription/unrequested", "error"),
        (6, "subscription/missing-id", "warning"),
    ]


@pytest.mark.parametrize(
    ("header", "rules"),
    [("mcp-name: t-1", []), ("mcp-name:", ["http/header-missing"]), ("mcp-name: t-2", ["http/header-mismatch"])],
)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel"])
def test_x_01_over_http_mcp_name_repeats_the_id_of_the_task(header, rules, method):
    answer = '<< 400 2 ! {"code":-32020,"message":"no"}'
    found = told(f">> [{header}] 2 {method} {NAMED}\n{answer}", "http/header")
    assert [line.partition(" ")[2] for line in found] == rules
