import json

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.replay.match import Matcher, Miss, key, plain
from mcpspy.wire.jsonrpc import parse
from tests.each import each
from tests.replay.scripts import INITIALIZE, call, result, script


def asked(text):
    return parse(text.encode())[0]


def matcher(*requests):
    return Matcher(script("\n".join(f"> {request}" for request in requests)).turns)


def found(matches, text):
    turn = matches.find(asked(text))
    return turn if isinstance(turn, Miss) else turn.cause.n


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


def nearest(matches, text):
    miss = matches.find(asked(text))
    return matches.serve(miss.nearest).cause.n


def test_the_nearest_has_the_fewest_values_that_differ():
    """A missing value, an additional one and another one count the same, and an object as much as its values."""
    matches = matcher(
        call(1, "a", '{"when":{"day":1,"month":2},"who":"x"}'),
        call(2, "a", '{"when":{"day":1,"month":3},"who":"y"}'),
        call(3, "a", '{"who":"x"}'),
        call(4, "b", '{"when":{"day":1,"month":3},"who":"z"}'),
    )
    assert nearest(matches, call(9, "a", '{"when":{"day":1,"month":2},"who":"z"}')) == 1
    assert nearest(matches, call(9, "a", '{"when":{"day":1,"month":3},"who":"z"}')) == 2
    assert nearest(matches, call(9, "a", '{"who":"z"}')) == 3
    assert nearest(matches, call(9, "a", '{"who":"x","more":true}')) == 3
    assert nearest(matches, call(9, "c", '{"when":{"day":1,"month":3},"who":"z"}')) == 4, "no request has this name"


def test_among_equals_the_nearest_is_the_first_that_was_not_served_yet_then_the_first():
    matches = matcher(call(1, "a", '{"x":1}'), call(2, "a", '{"x":2}'), call(3, "a", '{"x":2,"y":3}'))
    assert [nearest(matches, call(9, "a", '{"x":3}')) for _ in range(4)] == [1, 2, 1, 1]
    assert found(matches, call(9, "a", '{"x":2}')) == 2


def test_what_the_server_issues_counts_in_a_request():
    task = '{{"jsonrpc":"2.0","id":{},"method":"tasks/get","params":{{"taskId":"{}"}}}}'
    miss = found(matcher(task.format(1, "a"), task.format(2, "b")), task.format(3, "c"))
    assert miss.difference.pointer == "/params/taskId"


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
    turn = matches.find(asked(json.dumps(wanted)))
    assert key("m", turn.params) == key("m", wanted["params"])


@given(PARAMS)
def test_what_counts_is_left_as_it_is(params):
    assert plain("m", plain("m", params)) == plain("m", params)
    assert {name for name in plain("m", params) if name != "_meta"} == params.keys() - {"_meta"}


def test_a_request_without_an_answer_does_not_hide_that_of_another_session():
    turns = [turn for text in ("", f"\n< {result(1, 'A')}") for turn in script(f"> {call(1, 'a')}{text}").turns]
    request = parse(call(2, "a").encode())[0]
    assert Matcher(turns).find(request) is turns[1]
    assert Matcher(turns[:1]).find(request) is turns[0]
    assert Matcher(turns).unserved == turns[1:], "the other one is never used"
    retried = script(f"> {call(1, 'a')}\n> {call(2, 'a')}\n< {result(2, 'A')}").turns
    assert Matcher(retried).find(request) is retried[0], "so it was, in one session"
