"""Expectations about sessions and about tool calls."""

from mcpspy.contract import watch
from mcpspy.contract.expectations import (
    Expectations,
    NoErrors,
    SessionDuration,
    StderrWithout,
    ToolCalled,
    ToolForbidden,
    times_text,
)
from tests.contract.examples import failures, watched
from tests.each import each

SESSION = """
    @1 = 2025-06-18
    @2 > 2 tools/list
    @2.5 < 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}
    @3 > 3 tools/call {"name":"echo"}
    @4 < 3 = {"content":[{"type":"text","text":"a"}]}
"""


def session(key, value):
    return f"[session]\n{key} = {value}"


def test_a_session_lasts_from_its_first_message_to_its_end():
    assert failures(SESSION, session("max_duration", '"3s"')) == []
    assert [frame for frame, *_ in failures(SESSION, session("max_duration", '"1.2s"'))] == [5]
    ended = SESSION + "@9 . exit 0"
    found = failures(ended, session("max_duration", '"5s"'))
    assert [message for *_, message in found] == [
        "expected that the session takes at most 5.00 s; this is after 8.00 s"
    ]
    assert failures(ended, session("max_duration", '"5s"'), transport="http") == []


def test_tokens_are_definitions_and_results():
    ((frame, rule, message),) = failures(SESSION, session("max_tokens", "20"))
    assert (frame, rule) == (7, "expect/tokens")
    assert message.endswith("definitions ~11, results ~10 so far")
    assert [frame for frame, *_ in failures(SESSION, session("max_tokens", "5"))] == [5]
    assert failures(SESSION, session("max_tokens", "22")) == []


def test_a_tool_that_is_listed_again_counts_once():
    again = '    @5 > 4 tools/list\n    @6 < 4 = {"tools":[{"name":"echo","inputSchema":{"type":"object"}}]}'
    assert failures(SESSION + again, session("max_tokens", "22")) == []


def test_errors_of_any_request_and_of_tools_are_found():
    text = (
        SESSION
        + """
        > 4 ping
        < 4 ! {"code":-32603,"message":"broken"}
        > 5 tools/call {"name":"echo"}
        < 5 = {"content":[],"isError":true}
        < 0 roots/list
        > 0 ! {"code":-32601,"message":"no roots"}
    """
    )
    found, (outcome,) = watched(text, session("no_errors", "true"))
    assert [(it.frame, it.pointer, it.blame) for it in found] == [
        (9, "/error", "server"), (11, "/result/isError", "server"), (13, "/error", "client"),
    ]  # fmt: skip
    assert found[0].message.endswith('ping: error -32603: "broken"')
    assert outcome.passed is False


@each(
    "text, wanted",
    [
        ("= 2025-06-18 http\n>> 5 ping\n<< 500", ["ping: refused, status 500"]),
        (">> 1 initialize {}\n<< 401", ["initialize: refused, status 401"]),
        (">> 1 initialize {}\n<< 401\n>> 1 initialize {}\n<< 200 1 = {}", []),
        ("= 2025-06-18 http\n>> GET\n<< 405", []),
        ("= 2025-06-18 http\n>> GET\n<< 404", ["GET /mcp: refused, status 404"]),
        ("= 2025-06-18 http\n>> notifications/progress {}\n<< 500", ["POST /mcp: refused, status 500"]),
        ("> 1 server/discover {META}\n< 1 ! {}\n= 2025-06-18", []),
        ("> 1 server/discover {META}\n< 1 ! {}", ["server/discover: error null: null"]),
        ("= 2025-06-18\n> 5 ping\n@70 . stdin closed\n. exit 0", ["ping: timed-out"]),
        ("= 2025-06-18\n> 5 ping\n. stdin closed\n. exit 0", []),
        ("= 2025-06-18\n< 5 roots/list\n. stdout closed\n. exit 1", []),
        ("= 2025-06-18\n> 5 tools/call\n. stdout closed\n. exit 1", ["tools/call: server-exit"]),
        ('= 2025-06-18\n< 5 ping\n@12 < notifications/cancelled {"requestId":5}', ["ping: timed-out"]),
    ],
)
def test_a_request_that_failed_is_found_unless_that_was_normal(text, wanted):
    found = failures(text, session("no_errors", "true"))
    assert [message.rpartition("; ")[2] for *_, message in found] == wanted


def test_of_failures_that_may_turn_out_normal_only_the_latest_are_kept(monkeypatch):
    monkeypatch.setattr(watch, "KEPT", 2)
    refused = "= 2025-06-18 http\n" + "".join(f'>> {n} resources/read {{"uri":"{n}"}}\n<< 500\n' for n in range(2, 6))
    assert len(failures(refused, session("no_errors", "true"), live=True)) == 2
    assert len(failures(refused, session("no_errors", "true"))) == 4


@each(
    "pattern, found",
    [
        ("Traceback", 1),
        ("traceback", 0),
        ("Trace*last", 1),
        ("last*Trace", 0),
        ("*", 2),
        ("ready", 1),
        ("(most*last)", 1),
        ("(most|last)", 0),
    ],
)
def test_a_line_of_stderr_is_compared_with_a_text(pattern, found):
    text = SESSION + "! Traceback (most recent call last):\n! ready"
    assert len(failures(text, session("stderr_without", f'["{pattern}"]'))) == found


def test_a_server_starts_with_its_first_answer():
    assert failures(SESSION, session("started_within", '"1.5s"')) == []
    late = "@1 > 1 ping\n@3 < 1 = {}\n@4 > 2 ping\n@9 < 2 = {}"
    ((frame, _, message),) = failures(late, session("started_within", '"2.5s"'))
    assert frame == 2
    assert message.endswith("the first answer came after 3.00 s")
    assert failures(late, session("started_within", '"2.5s"'), transport="http") == []
    ((frame, _, message),) = failures("@1 > 1 ping", session("started_within", '"2s"'))
    assert (frame, message.rpartition("; ")[2]) == (1, "it answered nothing")


START = "= 2025-06-18\n"


def call(number, name, arguments="{}"):
    return f'> {number} tools/call {{"name":"{name}","arguments":{arguments}}}\n< {number} = {{"content":[]}}\n'


def tool(**keys):
    return "[[tool]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items())


@each(
    "times, calls, met",
    [
        (None, 0, False), (None, 1, True), (None, 3, True),
        ("1", 1, True), ("1", 2, False), ("1", 0, False),
        ('">=2"', 1, False), ('">=2"', 2, True), ('">1"', 1, False),
        ('"<=1"', 0, True), ('"<=1"', 2, False), ('"<2"', 1, True), ('"<2"', 2, False),
        ('"2-3"', 1, False), ('"2..3"', 3, True), ('"2-3"', 4, False), ('"2"', 2, True),
        ("0", 0, True), ("0", 1, False),
    ],
)  # fmt: skip
def test_calls_are_counted(times, calls, met):
    text = START + "".join(call(n, "echo") for n in range(2, 2 + calls)) + call(90, "other")
    keys = {"name": '"echo"'} | ({"times": times} if times else {})
    found, outcomes = watched(text, tool(**keys))
    assert [it.passed for it in outcomes] == [met]
    assert bool(found) is not met


def test_any_number_of_calls_expects_nothing():
    assert watched(START, tool(name='"echo"', times='">=0"')) == ([], ())


def test_a_call_too_many_is_named_with_those_before_it():
    (finding,), _ = watched(START + call(2, "echo") + call(3, "echo"), tool(name='"echo"', times="1"))
    assert (finding.frame, finding.related) == (6, (4,))
    assert finding.message == "expected that echo is called once; this is call 2"
    assert (finding.severity, finding.blame) == ("error", "client")


def test_a_call_too_few_names_what_came_near():
    text = START + call(2, "get", '{"city":"Bergen"}') + call(3, "get") + call(4, "get", '{"city":["Oslo"]}')
    (finding,), _ = watched(text, tool(name='"get"', arguments='{ city = "Oslo" }'))
    assert (finding.frame, finding.related) == (1, (4, 6, 8))
    assert finding.message == (
        'expected that get with /city "Oslo" is called; there was no call; #4 has /city "Bergen", '
        "#6 has /city missing, #8 has /city an array of 1"
    )


@each(
    "arguments, given, met",
    [
        ('{ city = "Oslo" }', '{"city":"Oslo","days":3}', True),
        ('{ "/a/0/b" = 1 }', '{"a":[{"b":1}]}', True),
        ('{ "/a/0/b" = 1 }', '{"a":[{"b":1.0}]}', True),
        ('{ "/a/0/b" = 1 }', '{"a":[{"b":true}]}', False),
        ("{ a = true }", '{"a":1}', False),
        ("{ a = [1, { b = 2 }] }", '{"a":[1,{"b":2}]}', True),
        ("{ a = [1, { b = 2 }] }", '{"a":[1,{"b":2,"c":3}]}', False),
        ("{ a = [1] }", '{"a":[1,2]}', False),
        ('{ "a~/b" = 1 }', '{"a~/b":1}', True),
        ("{ a = 1 }", "5", False),
    ],
)
def test_arguments_choose_the_calls_that_count(arguments, given, met):
    found, _ = watched(START + call(2, "get", given), tool(name='"get"', arguments=arguments))
    assert bool(found) is not met


def test_a_tool_that_is_forbidden_may_be_a_glob_and_may_depend_on_arguments():
    text = START + call(2, "delete_file", '{"path":"/tmp/a"}') + call(3, "delete_dir") + call(4, "list")
    found = failures(text, tool(name='"delete_*"', never="true"))
    assert [(frame, rule) for frame, rule, _ in found] == [(4, "expect/never"), (6, "expect/never")]
    assert [frame for frame, *_ in failures(text, tool(name='"*"', never="true", arguments='{ path = "/tmp/a" }'))] == [
        4
    ]


def test_arguments_that_violate_the_schema_are_pointed_at():
    schema = '{ type = "object", properties = { days = { type = "integer" } }, required = ["days"] }'
    text = START + call(2, "get", '{"days":"two"}') + call(3, "get", '{"days":2}')
    (finding,), _ = watched(text, tool(name='"get"', schema=schema))
    assert (finding.frame, finding.pointer) == (4, "/params/arguments/days")
    assert '"two" is not of type "integer"' in finding.message


def test_a_call_that_takes_too_long_or_is_never_answered():
    text = START + '@1 > 2 tools/call {"name":"a"}\n@4 < 2 = {"content":[]}\n@5 > 3 tools/call {"name":"a"}'
    assert failures(text, tool(name='"a"', max_duration='"2s"')) == [
        (5, "expect/call-duration", "expected that a takes at most 2.00 s; it took 3.00 s"),
        (6, "expect/call-duration", "expected that a takes at most 2.00 s; it was not answered"),
    ]


def test_time_in_which_a_person_was_asked_does_not_count():
    text = (
        START
        + """
        @1 > 2 tools/call {"name":"a"}
        @2 < 0 elicitation/create {"message":"m","requestedSchema":{"type":"object","properties":{}}}
        @9 > 0 = {"action":"accept","content":{}}
        @10 < 2 = {"content":[]}
    """
    )
    assert failures(text, tool(name='"a"', max_duration='"2.5s"')) == []
    assert len(failures(text, tool(name='"a"', max_duration='"1.5s"'))) == 1


@each(
    "called, missing",
    [
        ("login search logout", None),
        ("login other search other logout", None),
        ("search login search logout", None),
        ("login logout search", "logout was not called after search (#8)"),
        ("search logout", "login was not called"),
        ("", "login was not called"),
    ],
)
def test_an_order_is_followed_whatever_stands_between(called, missing):
    text = START + "".join(call(n, name) for n, name in enumerate(called.split(), 2))
    found = failures(text, 'order = ["login", "search", "logout"]')
    assert [message.rpartition("; ")[2] for _, _, message in found] == ([missing] if missing else [])


def test_a_request_that_goes_on_is_the_same_call():
    names = ("protocolVersion", '"2026-07-28"'), ("clientCapabilities", "{}")
    meta = '"_meta":{' + ",".join(f'"io.modelcontextprotocol/{name}":{value}' for name, value in names) + "}"
    ask = '{"elicit":{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object"}}}}'
    text = f"""
        > 1 tools/call {{"name":"a",{meta}}}
        < 1 = {{"resultType":"input_required","requestState":"s","inputRequests":{ask}}}
        > 2 tools/call {{"name":"a",{meta},"requestState":"s","inputResponses":{{"elicit":{{"action":"decline"}}}}}}
        < 2 = {{"resultType":"complete","content":[]}}
    """
    assert failures(text, tool(name='"a"', times="1")) == []


@each(
    "least, most, told",
    [
        (1, None, ""), (2, None, " at least 2 times"), (1, 1, " once"), (3, 3, " 3 times"),
        (0, 1, " at most 1 time"), (0, 2, " at most 2 times"), (1, 4, " 1 to 4 times"),
    ],
)  # fmt: skip
def test_a_number_of_times_is_told_in_words(least, most, told):
    assert times_text(least, most) == told


def test_a_title_names_tool_arguments_and_server():
    expected = ToolCalled("wea*", "get_*", (("/city", "Oslo"), ("/days", 3)), 1, 1)
    assert expected.title == 'get_* with /city "Oslo" and /days 3 is called once, of server wea*'


def test_what_two_expect_counts_once_and_slow_calls_are_those_of_the_first():
    one = Expectations((NoErrors(None), SessionDuration(None, 1)), 5)
    two = Expectations((NoErrors(None), NoErrors("x"), SessionDuration(None, 1_000)))
    assert one.joined(two) == Expectations(
        (NoErrors(None), SessionDuration(None, 1), NoErrors("x"), SessionDuration(None, 1_000)), 5
    )
    assert two.joined(one).slow_call == 5


def test_a_call_is_one_that_counts_by_name_and_arguments():
    expected = ToolForbidden(None, "a*", (("/x", 1),))
    assert expected.counts("ab", {"x": 1})
    assert not expected.counts("b", {"x": 1})
    assert not expected.counts(None, {"x": 1})
    assert expected.misses({}) == ["/x"]
    assert expected.seen({}, "/x") == "missing"
    assert expected.seen({"x": None}, "/x") == "null"


def test_a_long_line_with_many_stars_takes_no_time():
    assert not StderrWithout(None, "*a" * 500 + "b").finds("a" * 100_000)
