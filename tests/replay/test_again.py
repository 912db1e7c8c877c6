"""Which messages are sent with a request that is sent again, and what an edited request must be."""

import pytest

from mcpspy.errors import UsageError
from mcpspy.replay.again import edit, edited_request, narrowed, requests_of
from mcpspy.wire.jsonrpc import Id
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result, script

HANDSHAKE = f"""
    > {INITIALIZE}
    < {INITIALIZED}
    > notifications/initialized
"""


def sent(text, *rows):
    """Return the client's messages that are sent again with some rows, as their lines."""
    whole = script(text)
    part = narrowed(whole, requests_of(whole, rows))
    return [turn.cause.n for turn in part.turns]


CALLS = f"""{HANDSHAKE}
    > 2 tools/list
    < 2 = {{"tools":[],"nextCursor":"a"}}
    > 3 tools/list {{"cursor":"a"}}
    < 3 = {{"tools":[]}}
    > 4 tools/list
    < 4 = {{"tools":[]}}
    > {call(5, "report")}
    < {result(5, "done")}
    > {call(6, "get_forecast")}
    < {result(6, "rain")}
    > 7 resources/list
    < 7 = {{"resources":[]}}
"""


def test_a_call_comes_with_the_handshake_and_the_last_listing_and_without_other_calls():
    assert sent(CALLS, 12) == [1, 3, 8, 12]


def test_a_call_is_given_by_its_answer_too():
    assert sent(CALLS, 13) == [1, 3, 8, 12]


def test_several_calls_share_what_they_need():
    assert sent(CALLS, 12, 10) == [1, 3, 8, 10, 12]


def test_a_listing_needs_only_the_handshake_and_a_later_page_also_the_page_before():
    assert sent(CALLS, 8) == [1, 3, 8]
    assert sent(CALLS, 6) == [1, 3, 4, 6]


def test_all_pages_of_the_last_listing_are_asked_for():
    pages = CALLS.replace("> 4 tools/list\n", '> 4 tools/list {"cursor":"b"}\n')
    assert sent(pages, 12) == [1, 3, 4, 6, 8, 12]


def test_subscriptions_and_the_level_of_logs_come_first():
    text = f"""{HANDSHAKE}
        > 2 resources/subscribe {{"uri":"file:///a"}}
        < 2 = {{}}
        > 3 logging/setLevel {{"level":"debug"}}
        < 3 = {{}}
        > 4 ping
        < 4 = {{}}
        > 5 resources/read {{"uri":"file:///a"}}
        < 5 = {{"contents":[]}}
    """
    assert sent(text, 10) == [1, 3, 4, 6, 10]


def test_a_question_about_a_task_comes_with_the_call_that_began_it():
    text = f"""{HANDSHAKE}
        > {call(2, "slow")}
        < 2 = {{"task":{{"taskId":"t1","status":"working"}}}}
        > {call(3, "slow")}
        < 3 = {{"task":{{"taskId":"t2","status":"working"}}}}
        > 4 tasks/result {{"taskId":"t2"}}
        < 4 = {{"content":[]}}
    """
    assert sent(text, 8) == [1, 3, 6, 8]


def test_a_later_round_comes_with_the_rounds_before():
    text = """
        > 1 tools/call {"name":"ask"}
        < 1 = {"resultType":"input_required","inputRequests":{"a":{}},"requestState":"s1"}
        > 2 tools/call {"name":"ask","inputResponses":{"a":{}},"requestState":"s1"}
        < 2 = {"resultType":"input_required","inputRequests":{"b":{}},"requestState":"s2"}
        > 3 tools/call {"name":"ask","inputResponses":{"b":{}},"requestState":"s2"}
        < 3 = {"content":[]}
    """
    assert sent(text, 5) == [1, 3, 5]


def test_all_requests_of_the_server_stay_so_that_they_can_be_answered():
    text = f"""{HANDSHAKE}
        > {call(2, "first")}
        < {{"jsonrpc":"2.0","id":"r","method":"roots/list"}}
        > {{"jsonrpc":"2.0","id":"r","result":{{"roots":[]}}}}
        < {result(2, "done")}
        > {call(3, "second")}
        < {result(3, "done")}
    """
    whole = script(text)
    part = narrowed(whole, requests_of(whole, [8]))
    assert [message.n for message in part.asked] == [5]


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (3, "#3 is neither a request of the client nor the answer to one; the nearest is #4, tools/list"),
        (99, "#99 is neither a request of the client nor the answer to one; the nearest is #14, resources/list"),
    ],
)
def test_a_row_without_a_request_names_the_nearest(row, why):
    with pytest.raises(UsageError) as error:
        requests_of(script(CALLS), [row])
    assert str(error.value) == why


def test_a_capture_without_requests_says_so():
    with pytest.raises(UsageError, match="and the capture has none"):
        requests_of(script("> notifications/initialized"), [1])


def test_an_edited_request_is_sent_as_it_was_typed():
    whole = script(CALLS)
    (turn,) = requests_of(whole, [12])
    text = '{"jsonrpc":"2.0", "id":6, "method":"tools/call", "params":{"name":"other","a":1.50}}'
    edit(turn, text)
    assert (turn.cause.frame.raw, turn.name) == (text.encode(), "other")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not a request"),
        ("{", "not a request"),
        ('{"id":6,"result":{}}', "not a request"),
        ('{"jsonrpc":"2.0","method":"ping"}', "not a request"),
        ('[{"jsonrpc":"2.0","id":6,"method":"a"},{"jsonrpc":"2.0","id":7,"method":"a"}]', "not a request"),
        ('{"jsonrpc":"2.0","id":"6","method":"ping"}', "the id must stay 6"),
        ("[" * 100_000, "not a request"),
        ('{"jsonrpc":"2.0","id":6,"method":"\ud800"}', None),
    ],
)
def test_what_an_edited_text_must_be(text, why):
    if why is None:
        assert edited_request(text, Id.of(6)).method
        return
    with pytest.raises(UsageError, match=why):
        edited_request(text, Id.of(6))
