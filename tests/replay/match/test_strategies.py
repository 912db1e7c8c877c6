import json

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.cli.commands import COMMANDS
from mcpspy.replay.match import STRATEGIES, Matcher, Miss, key, plain
from mcpspy.wire.jsonrpc import parse
from tests.each import each
from tests.replay.scripts import INITIALIZE, call, result, script


def asked(text):
    return parse(text.encode())[0]


def matcher(*requests):
    return Matcher(script("\n".join(f"> {request}" for request in requests)).turns)


def found(matches, text):
    turn = matches.by_params(asked(text))
    return turn.cause.n if turn else matches.miss(asked(text))


def test_a_request_is_answered_by_the_one_that_asks_the_same():
    matches = matcher(call(1, "a", '{"x":1,"y":2}'), call(2, "a", '{"x":2}'), call(3, "b"))
    assert found(matches, call(9, "a", '{"x":2}')) == 2
    assert found(matches, call(9, "a", '{"y":2,"x":1}')) == 1


def test_requests_that_are_alike_answer_in_their_order_and_the_last_again_and_again():
    matches = matcher(call(1, "a"), call(2, "b"), call(3, "a"))
    assert [found(matches, call(9, "a")) for _ in range(4)] == [1, 3, 3, 3]


@each(
    "meta",
    [
        {"progressToken": 5},
        {"traceparent": "00-1-2-01", "tracestate": "a=1", "baggage": "b"},
        {"io.modelcontextprotocol/clientInfo": {"name": "x"}, "io.modelcontextprotocol/clientCapabilities": {}},
    ],
)
def test_what_a_client_says_of_itself_and_of_the_moment_does_not_count(meta):
    matches = matcher(call(1, "a"))
    assert found(matches, call(2, "a", meta=json.dumps(meta))) == 1


def test_other_members_of_meta_count():
    matches = matcher(call(1, "a", meta='{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'))
    assert isinstance(found(matches, call(2, "a")), Miss)


def test_another_client_may_initialize_in_the_same_revision():
    matches = matcher(INITIALIZE)
    assert found(matches, INITIALIZE.replace("scripted", "another")) == 1
    miss = found(matches, INITIALIZE.replace("2025-06-18", "2025-11-25"))
    assert miss.difference.pointer == "/params/protocolVersion"


def test_no_params_are_empty_params():
    matches = matcher('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
    for params in ("{}", '{"_meta":{"progressToken":1}}', "null"):
        assert found(matches, f'{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{params}}}') == 1


def test_a_miss_names_the_nearest_and_where_it_differs():
    matches = matcher(call(1, "a", '{"city":"Oslo","days":2}'), call(2, "a", '{"city":"Bergen"}'), call(3, "b"))
    assert str(found(matches, call(9, "a", '{"city":"Paris"}'))) == (
        'tools/call a was not recorded; the nearest is #2, with "Bergen" at /params/arguments/city instead of "Paris"'
    )
    assert str(found(matches, call(9, "c"))) == (
        'tools/call c was not recorded; the nearest is #3, with "b" at /params/name instead of "c"'
    )
    assert str(found(matches, '{"jsonrpc":"2.0","id":1,"method":"tools/cal"}')) == (
        "tools/cal was not recorded; the nearest is #1, tools/call"
    )
    assert str(found(matches, '{"jsonrpc":"2.0","id":1,"method":"\\u001b[2J"}')).endswith("nor anything like it")


def test_by_name_alone_params_do_not_count():
    matches = matcher(call(1, "a", '{"x":1}'), call(2, "a", '{"x":2}'))
    request = asked(call(9, "a", '{"x":3}'))
    assert [matches.by_name(request).cause.n for _ in range(3)] == [1, 2, 2]
    assert matches.by_name(asked(call(9, "b"))) is None
    assert matches.miss(request).nearest.cause.n == 1  # also among requests that were already used


def test_the_first_strategy_reports_nothing_and_each_of_the_others_has_an_option_of_its_own():
    assert not STRATEGIES[0].notice
    assert len({strategy.name for strategy in STRATEGIES}) == len(STRATEGIES)
    options = [it for it in COMMANDS["mock"].options if it.dest == "strategies"]
    assert [(it.names, it.const) for it in options] == [((f"--{it.name}",), it.name) for it in STRATEGIES[1:]]


NAMES = st.sampled_from(["a", "b", "progressToken", "_meta", "name"])
PARAMS = st.dictionaries(
    NAMES,
    st.recursive(st.integers(0, 2) | st.text(max_size=2), lambda it: st.dictionaries(NAMES, it, max_size=2)),
    max_size=3,
)


@given(st.lists(PARAMS, min_size=1, max_size=5), st.data())
def test_what_was_recorded_is_always_found(recorded, data):
    requests = [{"jsonrpc": "2.0", "id": n, "method": "m", "params": params} for n, params in enumerate(recorded)]
    matches = matcher(*map(json.dumps, requests))
    wanted = data.draw(st.sampled_from(requests))
    turn = matches.by_params(asked(json.dumps(wanted)))
    assert key("m", turn.params) == key("m", wanted["params"])


@given(PARAMS)
def test_what_counts_is_left_as_it_is(params):
    assert plain("m", plain("m", params)) == plain("m", params)
    assert {name for name in plain("m", params) if name != "_meta"} == params.keys() - {"_meta"}


def test_a_request_without_an_answer_does_not_hide_that_of_another_session():
    turns = [turn for text in ("", f"\n< {result(1, 'A')}") for turn in script(f"> {call(1, 'a')}{text}").turns]
    request = parse(call(2, "a").encode())[0]
    assert Matcher(turns).by_params(request) is turns[1]
    assert Matcher(turns[:1]).by_params(request) is turns[0]
    retried = script(f"> {call(1, 'a')}\n> {call(2, 'a')}\n< {result(2, 'A')}").turns
    assert Matcher(retried).by_params(request) is retried[0], "so it was, in one session"
