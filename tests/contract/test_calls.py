"""Expectations about tool calls: number, arguments, order and duration."""

import pytest

from tests.contract.examples import failures, watched

START = "= 2025-06-18\n"


def call(number, name, arguments="{}"):
    return f'> {number} tools/call {{"name":"{name}","arguments":{arguments}}}\n< {number} = {{"content":[]}}\n'


def tool(**keys):
    return "[[tool]]\n" + "\n".join(f"{key} = {value}" for key, value in keys.items())


@pytest.mark.parametrize(
    ("times", "calls", "met"),
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


@pytest.mark.parametrize(
    ("arguments", "given", "met"),
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


@pytest.mark.parametrize(
    ("called", "missing"),
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
