"""Which side the session waits for at each moment, tested with transcripts, in seconds."""

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Release
from mcpspy.conversation import bounds
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.times import WAITED, Times, waited_text
from tests.timelines import CAPTURES
from tests.transcript import OPENS, events

CALL = '{"id":%d,"method":"tools/call","params":{"name":"book"}}'
META = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}'
)


def told(text):
    """Return the seconds of waiting for each side, and for each call the seconds of waiting for a person."""
    times = Times()
    for event in events(text):
        times.add(event)
    spent = {whom: span / 1e9 for whom, span in times.spent.items() if span}
    return spent, {ordinal: span / 1e9 for ordinal, span in times.asked.items()}


def test_the_server_is_waited_for_from_a_request_to_its_answer_else_the_client():
    assert told("@1 > 1 ping\n@3 < 1 = {}\n@10 > 2 ping\n@11 < 2 = {}") == ({"server": 3, "client": 7}, {})


def test_requests_side_by_side_count_once():
    assert told("@0 > 1 ping\n@1 > 2 ping\n@2 < 1 = {}\n@4 < 2 = {}")[0] == {"server": 4}


def test_a_person_who_is_asked_during_a_call_is_not_the_server_and_the_call_knows():
    text = f"""
    @0 > {CALL % 1}
    @1 < {{"id":7,"method":"elicitation/create"}}
    @13 > {{"id":7,"result":{{"action":"accept"}}}}
    @14 < {{"id":8,"method":"roots/list"}}
    @15 > {{"id":8,"result":{{"roots":[]}}}}
    @16 < {{"id":1,"result":{{}}}}
    """
    assert told(text) == ({"server": 3, "asked": 12, "client": 1}, {0: 12})


def test_whose_call_it_is_that_asks_is_left_open_where_several_run():
    text = f"""
    @0 > {CALL % 1}
    @0 > {CALL % 2}
    @1 < {{"id":7,"method":"sampling/createMessage"}}
    @3 > {{"id":7,"result":{{}}}}
    """
    assert told(text) == ({"server": 1, "asked": 2}, {})


@pytest.mark.parametrize(("method", "whom"), [("elicitation/create", "asked"), ("roots/list", "client")])
def test_an_answer_that_asks_for_input_counts_until_the_client_comes_back(method, whom):
    call = '{"id":%d,"method":"tools/call","params":{"name":"book",' + META + "%s}}"
    text = f"""
    @0 > {call % (1, "")}
    @1 < {{"id":1,"result":{{"resultType":"input_required","inputRequests":{{"a":{{"method":"{method}"}}}}}}}}
    @9 > {call % (2, ',"inputResponses":{"a":{}}')}
    @10 < {{"id":2,"result":{{}}}}
    """
    assert told(text) == ({"server": 2, whom: 8}, {1: 8} if whom == "asked" else {})


@pytest.mark.parametrize(
    "end",
    ['> {"method":"notifications/cancelled","params":{"requestId":1}}', "~ 3", '> {"id":2,"method":"ping"}\n@2 ~ 1'],
)
def test_a_request_ends_with_its_cancellation_and_where_records_are_missing(end):
    assert told(f"@0 > {CALL % 1}\n@2 {end}\n@5 > 9 ping")[0] == {"server": 2, "client": 3}


def test_a_subscription_is_not_waited_for():
    text = f'@0 > {{"id":1,"method":"subscriptions/listen","params":{{{META}}}}}\n@5 > 2 ping\n@6 < 2 = {{}}'
    assert told(text)[0] == {"client": 5, "server": 1}


def test_a_request_without_an_answer_counts_no_longer_after_many_messages(monkeypatch):
    monkeypatch.setattr(bounds, "STALE", 3)
    text = f"@0 > {CALL % 1}\n" + "".join(f'@{n} > {{"method":"notifications/x"}}\n' for n in range(1, 9))
    assert told(text)[0] == {"server": 4, "client": 4}


def test_what_is_followed_is_bounded():
    text = "".join(f"@{n} > {n} ping\n" for n in range(bounds.WAITS + 1))
    last = "".join(f"@{bounds.WAITS + 1} < {n} = {{}}\n" for n in range(1, bounds.WAITS + 1))
    assert told(f"{text}{last}@{bounds.WAITS + 3} > 99 ping")[0] == {"server": bounds.WAITS + 1, "client": 2}, (
        "the oldest is forgotten"
    )


def test_a_held_frame_counts_as_held_until_it_is_let_go():
    second, call = 10**9, (CALL % 1).encode()
    records = [
        *OPENS,
        Frame(4, 1, 0, call, by="gate g", held=4),
        Frame(5, 3, second, b"on stderr"),
        Release(6, 3 * second, 4, "continued"),
        Frame(7, 2, 7 * second, b'{"id":1,"result":{}}'),
        Frame(8, 1, 9 * second, b'{"method":"notifications/x"}'),
    ]
    times, conversation = Times(), Conversation()
    for record in records:
        for event in conversation.feed(record):
            times.add(event)
    assert {whom: span // second for whom, span in times.spent.items()} == {
        "server": 4,
        "asked": 0,
        "held": 3,
        "client": 2,
    }


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_the_times_of_a_golden_capture_add_up(path):
    times, conversation, seen = Times(), Conversation(), []
    for record in Capture(path).records():
        for event in conversation.feed(record):
            times.add(event)
            seen += [event.t] if hasattr(event, "body") else []
    assert tuple(times.spent) == WAITED
    assert sum(times.spent.values()) <= max(seen) - min(seen)
    assert times.spent["server"] > 0


def test_who_was_waited_for_is_told_in_parts():
    assert waited_text({"server": 10**9, "asked": 3 * 10**9, "held": 0, "client": 0}) == (
        "server 1.00 s (25%), asked 3.00 s (75%)"
    )
    assert waited_text({"server": 10**9, "asked": 10**6, "held": 0, "client": 10**7}) == (
        "server 1.00 s (99%), asked 1.0 ms (<1%), client 10.0 ms (1%)"
    )
    assert waited_text(dict.fromkeys(WAITED, 0)) == ""
