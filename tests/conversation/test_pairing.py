"""Conversations as transcripts (see tests/transcript.py), and the messages and exchanges that the fold computes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.records import Close, End, Frame, Gap
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import ENDLESS, Message
from mcpspy.spec.revisions import PROTOCOL_VERSION, SUBSCRIPTION_ID
from mcpspy.wire.jsonrpc import Id
from tests.transcript import OPENS, events, records, revisions, told

BIG = "12345678901234567890123"
META = f'"_meta":{{"{PROTOCOL_VERSION}":"2026-07-28"}}'


def test_a_session_from_the_first_word_to_the_last():
    assert told("""
        > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        ! ready
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_forecast"}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.5}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}
        > {"jsonrpc":"2.0","id":2,"method":"nope"}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Method not found"}}
        > {"jsonrpc":"2.0","id":3,"method":"ping"}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/list"}
    """) == [
        "#1 initialize ok",
        "#2 Result of #1",
        "#3 notifications/initialized",
        "#4 stderr",
        "#5 tools/call tool-error",
        "#6 notifications/progress",
        "#7 Result of #5",
        "#8 nope error",
        "#9 Error of #8",
        "#10 ping ok",
        "#11 Result of #10",
        "#12 tools/list pending",
    ]


def test_messages_know_their_exchange_and_how_long_it_took():
    request, response = events("""
        @1.000 > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get_forecast"}}
        @1.250 < {"jsonrpc":"2.0","id":1,"result":{}}
    """)
    exchange = request.exchange
    assert response.exchange is exchange
    assert (exchange.request, exchange.response) == (request, response)
    assert (exchange.method, exchange.name, exchange.ordinal) == ("tools/call", "get_forecast", 0)
    assert exchange.latency == 250_000_000
    assert (request.sender, response.sender, request.ch, response.ch) == ("client", "server", 1, 2)


def test_a_request_without_an_answer_has_no_latency():
    (request,) = events('> {"id":1,"method":"ping"}')
    assert request.exchange.latency is None


# Pairing: by direction and typed id (F-05, F-06).


@pytest.mark.parametrize("ids", [["1", "1.0", '"1"', "1e0", BIG]])
def test_ids_that_look_alike_are_paired_each_with_its_own(ids):
    """F-05: 1, 1.0, "1", 1e0 and 23 digits stay distinct, whatever the order of the answers."""
    asked = "\n".join(f'> {{"jsonrpc":"2.0","id":{id_},"method":"m{n}"}}' for n, id_ in enumerate(ids))
    answered = "\n".join(f'< {{"jsonrpc":"2.0","id":{id_},"result":{{}}}}' for id_ in reversed(ids))
    assert told(f"{asked}\n{answered}")[5:] == [f"#{6 + n} Result of #{5 - n}" for n in range(5)]


@pytest.mark.parametrize(
    ("asked", "answered"), [("1", '"1"'), ("1", "1.0"), (BIG, "1.2345678901234568e+22"), ('"1"', "1")]
)
def test_an_answer_with_an_id_of_another_type_answers_nothing(asked, answered):
    """F-05, F-06."""
    assert told(f"""
        > {{"jsonrpc":"2.0","id":{asked},"method":"ping"}}
        < {{"jsonrpc":"2.0","id":{answered},"result":{{}}}}
    """) == ["#1 ping pending", "#2 Result of nothing"]


def test_both_peers_count_from_1():
    """F-06: the same id in both directions at once."""
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask"}}
        < {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"maxTokens":5}}
        > {"jsonrpc":"2.0","id":1,"result":{"role":"assistant"}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    """) == ["#1 tools/call ok", "#2 sampling/createMessage ok", "#3 Result of #2", "#4 Result of #1"]


def test_an_id_is_free_again_once_it_is_answered():
    """F-06: id 1 in two successive exchanges is legal."""
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"query"}]}}
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"query","arguments":{"sql":"SELECT 1"}}}
        < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"1"}],"isError":false}}
    """) == ["#1 tools/list ok", "#2 Result of #1", "#3 tools/call ok", "#4 Result of #3"]


def test_of_two_requests_in_flight_with_one_id_the_first_is_answered_first():
    """F-06."""
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"first"}
        > {"jsonrpc":"2.0","id":1,"method":"second"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}
    """) == ["#1 first ok", "#2 second error", "#3 Result of #1", "#4 Error of #2"]


def test_an_id_reused_at_once_is_paired_by_time():
    """F-06: the second request was sent after the answer to the first request, but recorded before it."""
    assert told("""
        @1.0 > {"jsonrpc":"2.0","id":1,"method":"first"}
        @1.2 > {"jsonrpc":"2.0","id":1,"method":"second"}
        @1.1 < {"jsonrpc":"2.0","id":1,"result":{}}
        @1.3 < {"jsonrpc":"2.0","id":1,"result":{}}
    """) == ["#1 first ok", "#3 Result of #1", "#2 second ok", "#4 Result of #2"]


def test_a_second_answer_answers_nothing():
    """F-06."""
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
    """) == ["#1 ping ok", "#2 Result of #1", "#3 Result of nothing"]


def test_an_answer_from_the_wrong_side_answers_nothing():
    """F-06."""
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        > {"jsonrpc":"2.0","id":1,"result":{}}
    """) == ["#1 ping pending", "#2 Result of nothing"]


# Records may be out of order; their times are correct.


def test_a_response_recorded_before_its_request_answers_it():
    assert told("""
        @1.001 < {"jsonrpc":"2.0","id":1,"result":{}}
        @1.000 > {"jsonrpc":"2.0","id":1,"method":"ping"}
    """) == ["#2 ping ok", "#1 Result of #2"]


def test_a_response_answers_its_request_also_where_others_were_recorded_between():
    assert told("""
        @1.001 < {"jsonrpc":"2.0","id":1,"result":{}}
        @2.001 ! busy
        @1.000 > {"jsonrpc":"2.0","id":1,"method":"ping"}
    """) == ["#3 ping ok", "#1 Result of #3", "#2 stderr"]


def test_a_request_that_was_recorded_too_late_is_shown_where_it_stands_and_in_doubt():
    """R-01: forwarding it was blocked for more than the second that pairing waits."""
    assert told("""
        @1.000 < {"jsonrpc":"2.0","id":1,"result":{}}
        @2.000000002 ! late
        @0.999 > {"jsonrpc":"2.0","id":1,"method":"ping"}
    """) == ["#1 Result of nothing", "#3 ping pending, in doubt", "#2 stderr"]


def test_a_response_never_answers_a_request_that_was_sent_after_it():
    assert told("""
        @1.000 < {"jsonrpc":"2.0","id":1,"result":{}}
        @1.001 > {"jsonrpc":"2.0","id":1,"method":"ping"}
        @1.002 < {"jsonrpc":"2.0","id":1,"result":{}}
    """) == ["#1 Result of nothing", "#2 ping ok", "#3 Result of #2"]


def test_several_responses_find_their_requests():
    assert told("""
        @1.001 < {"jsonrpc":"2.0","id":1,"result":{}}
        @1.003 < {"jsonrpc":"2.0","id":2,"result":{}}
        @1.000 > {"jsonrpc":"2.0","id":1,"method":"first"}
        @1.002 > {"jsonrpc":"2.0","id":2,"method":"second"}
    """) == ["#3 first ok", "#1 Result of #3", "#4 second ok", "#2 Result of #4"]


def test_a_duplicate_by_line_is_the_answer_to_the_next_request_with_its_id():
    assert told("""
        @1.001 < {"jsonrpc":"2.0","id":1,"result":{}}
        @1.003 < {"jsonrpc":"2.0","id":1,"result":{}}
        @1.000 > {"jsonrpc":"2.0","id":1,"method":"first"}
        @1.002 > {"jsonrpc":"2.0","id":1,"method":"second"}
    """) == ["#3 first ok", "#1 Result of #3", "#4 second ok", "#2 Result of #4"]


def test_a_response_at_the_very_time_of_its_request_answers_it():
    assert told("""
        @1 > {"jsonrpc":"2.0","id":1,"method":"ping"}
        @1 < {"jsonrpc":"2.0","id":1,"result":{}}
    """) == ["#1 ping ok", "#2 Result of #1"]


# Errors without a request.


def test_an_error_without_an_id_comes_out_at_once():
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":
        < {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}
        < {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
    """) == ["#1 not JSON (error at character 33)", "#2 Error of nothing", "#3 Error of nothing", "#4 ping pending"]


def test_a_request_with_the_id_null_is_answered_with_it():
    assert told("""
        > {"jsonrpc":"2.0","id":null,"method":"ping"}
        < {"jsonrpc":"2.0","id":null,"result":{}}
    """) == ["#1 ping ok", "#2 Result of #1"]


# Cancellations (F-07).


def test_a_cancelled_request_is_cancelled_also_when_its_answer_comes_late():
    """F-07: the race is legal."""
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"bored"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
    """) == [
        "#1 tools/call cancelled",
        "#2 notifications/cancelled",
        "#3 Result of #1",
        "#4 tools/call cancelled",
        "#5 notifications/cancelled",
    ]


def test_only_the_side_that_asked_cancels_and_only_by_the_same_id():
    """F-05, F-06."""
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"tools/call"}
        < {"jsonrpc":"2.0","id":1,"method":"roots/list"}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled"}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":[1]}
    """)[:2] == ["#1 tools/call pending", "#2 roots/list cancelled"]


@pytest.mark.parametrize("token", ["1.0", "1e0", BIG, '"a"', "-7"])
def test_a_cancellation_names_its_request_digit_by_digit(token):
    """F-05."""
    assert (
        told(f"""
        > {{"jsonrpc":"2.0","id":{token},"method":"tools/call"}}
        > {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{token}}}}}
    """)[0]
        == "#1 tools/call cancelled"
    )


def test_a_cancellation_after_the_answer_changes_nothing():
    assert (
        told("""
        > {"jsonrpc":"2.0","id":1,"method":"tools/call"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
    """)[0]
        == "#1 tools/call ok"
    )


def test_an_answer_belongs_to_the_request_that_was_not_cancelled():
    """Nobody waits for a cancelled request: the first answer is for the other request, the second is the late one."""
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"slow"}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        > {"jsonrpc":"2.0","id":1,"method":"quick"}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
    """)[2:] == ["#3 quick ok", "#4 Result of #3", "#5 Result of #1"]


# Tasks (2025-11-25): the result of a request arrives as the answer to another request.

TASK = """
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
    < {"id":0,"result":{"protocolVersion":"2025-11-25"}}
    > {"id":1,"method":"tools/call","params":{"name":"slow","task":{}}}
    < {"id":1,"result":{"task":{"taskId":"a"}}}
"""


@pytest.mark.parametrize(
    ("asked", "method"),
    [
        ('> {"id":2,"method":"tasks/result","params":{"taskId":"a"}}', "tools/call"),
        ('> {"id":2,"method":"tasks/result","params":{"taskId":"b"}}', None),
        ('> {"id":2,"method":"tasks/result","params":{"taskId":["a"]}}', None),
        ('> {"id":2,"method":"tasks/result"}', None),
        ('> {"id":2,"method":"tasks/get","params":{"taskId":"a"}}', None),
    ],
)
def test_the_result_of_a_task_is_that_of_the_request_which_created_it(asked, method):
    *_, answer = events(f'{TASK}\n{asked}\n< {{"id":2,"result":{{}}}}')
    assert answer.exchange.underlying == method


def test_a_task_is_known_to_the_side_that_asked_for_it():
    asked = '< {"id":2,"method":"tasks/result","params":{"taskId":"a"}}\n> {"id":2,"result":{}}'
    assert events(TASK + asked)[-1].exchange.underlying is None


# Batches (F-09).


def test_each_message_of_a_batch_is_paired_on_its_own():
    """F-09: the address is the frame, with `part` as the position in it."""
    assert told("""
        > [{"id":1,"method":"a"},{"method":"n"},{"id":2,"method":"b"},{"id":3,"method":"c"},5]
        < [{"id":3,"result":{}},{"id":1,"error":{"code":1,"message":""}}]
        < {"id":2,"result":{}}
    """) == [
        "#1.0 a error",
        "#1.1 n",
        "#1.2 b ok",
        "#1.3 c ok",
        "#1.4 a number, not an object",
        "#2.0 Result of #1.3",
        "#2.1 Error of #1.0",
        "#3 Result of #1.2",
    ]


def test_a_batch_may_answer_and_ask_at_once():
    """F-09."""
    assert told("""
        > [{"id":1,"method":"ping"}]
        < [{"id":1,"result":{}},{"id":1,"method":"ping"}]
        > [{"id":1,"result":{}}]
    """) == ["#1.0 ping ok", "#2.0 Result of #1.0", "#2.1 ping ok", "#3.0 Result of #2.1"]


def test_a_batch_of_answers_recorded_too_early_is_paired_one_by_one():
    assert told("""
        @1.001 < [{"id":1,"result":{}},{"method":"n"},{"id":2,"result":{}}]
        @1.000 > [{"id":1,"method":"a"},{"id":2,"method":"b"}]
    """) == ["#2.0 a ok", "#2.1 b ok", "#1.0 Result of #2.0", "#1.1 n", "#1.2 Result of #2.1"]


# Gaps: no request is called unanswered across a gap.


def test_what_was_pending_at_a_gap_is_in_doubt():
    assert told("""
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        ~ 3
        > {"jsonrpc":"2.0","id":3,"method":"ping"}
    """) == [
        "#1 ping pending, in doubt",
        "#2 ping ok",
        "#3 Result of #2",
        "#4 gap",
        "#5 ping pending",
    ]


def test_an_answer_after_a_gap_takes_the_doubt_away():
    assert "#1 ping ok, in doubt" in told("""
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
        ~ 1
        < {"jsonrpc":"2.0","id":1,"result":{}}
    """)


# The revision belongs to the exchange, not to the connection.


def test_what_a_session_negotiates_holds_for_both_sides_from_then_on():
    assert revisions("""
        > {"jsonrpc":"2.0","id":0,"method":"ping"}
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":9,"method":"roots/list"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        < {"jsonrpc":"2.0","method":"notifications/message"}
        < {"jsonrpc":"2.0","id":0,"result":{}}
        > {"jsonrpc":"2.0","id":9,"result":{}}
    """) == [
        "#1 unknown",
        "#2 2025-11-25",
        "#3 2025-03-26",
        "#4 2025-03-26",
        "#5 2025-03-26",
        "#6 2025-03-26",
        "#7 2025-03-26",
        "#8 2025-03-26",
        "#9 unknown",
        "#10 2025-03-26",
    ]


@pytest.mark.parametrize("asked", ['"2099-01-01"', "20250618", "null", "[]", '"2025-11-25"'])
def test_an_initialize_that_asks_for_an_unknown_revision_is_judged_by_the_newest_handshake(asked):
    assert revisions(f"""
        > {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":{asked}}}}}
        < {{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"2024-11-05"}}}}
        > {{"jsonrpc":"2.0","id":1,"method":"ping"}}
    """) == ["#1 2025-11-25", "#2 2024-11-05", "#3 2024-11-05"]


def test_an_initialize_without_params_is_judged_by_the_newest_handshake():
    assert revisions('> {"jsonrpc":"2.0","id":0,"method":"initialize"}') == ["#1 2025-11-25"]


def test_a_result_that_states_no_known_revision_leaves_the_session_unknown():
    assert revisions("""
        > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"draft"}}
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
    """) == ["#1 2025-06-18", "#2 unknown", "#3 unknown"]


def test_an_initialize_that_is_refused_negotiates_nothing():
    assert revisions("""
        > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
    """) == ["#1 2025-06-18", "#2 2025-06-18", "#3 unknown"]


def test_the_newest_handshake_holds_when_a_client_reconnects_to_the_same_process():
    assert (
        revisions("""
        > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2024-11-05"}}
        < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}
        > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}
        > {"jsonrpc":"2.0","id":1,"method":"ping"}
    """)[-1]
        == "#5 2025-06-18"
    )


def test_a_request_states_its_revision_itself_in_the_per_request_era():
    assert revisions(f"""
        > {{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        < {{"jsonrpc":"2.0","method":"notifications/message"}}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
    """) == ["#1 2026-07-28", "#2 2026-07-28", "#3 2026-07-28", "#4 2026-07-28"]


def test_both_eras_live_in_one_process():
    """A refused `server/discover` is a probe; each request keeps the revision that it states."""
    assert revisions(f"""
        > {{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{{{META}}}}}
        < {{"jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"Method not found"}}}}
        > {{"jsonrpc":"2.0","id":2,"method":"initialize","params":{{"protocolVersion":"2025-11-25"}}}}
        < {{"jsonrpc":"2.0","id":2,"result":{{"protocolVersion":"2025-11-25"}}}}
        > {{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{{{META}}}}}
        > {{"jsonrpc":"2.0","id":4,"method":"tools/list"}}
        < {{"jsonrpc":"2.0","id":4,"result":{{}}}}
        < {{"jsonrpc":"2.0","id":3,"result":{{}}}}
        < {{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}
    """) == [
        "#1 2026-07-28",
        "#2 2026-07-28",
        "#3 2025-11-25",
        "#4 2025-11-25",
        "#5 2026-07-28",
        "#6 2025-11-25",
        "#7 2025-11-25",
        "#8 2026-07-28",
        "#9 2025-11-25",
    ]


@pytest.mark.parametrize("token", ["7", '"sub"', BIG])
def test_a_notification_belongs_to_the_listen_request_that_its_subscription_names(token):
    """F-07: a listen request is supposed to stay unanswered."""
    found = events(f"""
        > {{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-11-25"}}}}
        < {{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":"2025-11-25"}}}}
        > {{"jsonrpc":"2.0","id":{token},"method":"subscriptions/listen","params":{{{META}}}}}
        < {{"jsonrpc":"2.0","method":"notifications/tools/list_changed",\
          "params":{{"_meta":{{"{SUBSCRIPTION_ID}":{token}}}}}}}
        < {{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}}
    """)
    assert [message.revision.value for message in found[2:]] == ["2026-07-28", "2026-07-28", "2025-11-25"]
    assert found[2].exchange.status == "pending"
    assert found[2].exchange.method == ENDLESS


# Oddities from the field (F-01, F-03).


def test_cursor_to_a_mem0_server():
    """Seen in the field: id 0, boolean capabilities, id 2 skipped."""
    text = """
        > {"method":"initialize","params":{"protocolVersion":"2024-11-05",\
          "capabilities":{"tools":true,"prompts":false,"resources":true,"logging":false,"roots":{"listChanged":false}},\
          "clientInfo":{"name":"cursor-vscode","version":"1.0.0"}},"jsonrpc":"2.0","id":0}
        < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05","capabilities":{"experimental":{},\
          "prompts":{"listChanged":false},"resources":{"listChanged":false},"tools":{"listChanged":false}},\
          "serverInfo":{"name":"mem0-mcp","version":"1.3.0"}}}
        > {"method":"notifications/initialized","jsonrpc":"2.0"}
        > {"method":"tools/list","jsonrpc":"2.0","id":1}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add_coding_preference","inputSchema":{"type":"object"}}]}}
        > {"method":"tools/call","params":{"name":"get_all_coding_preferences","arguments":{}},"jsonrpc":"2.0","id":3}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"[]"}],"isError":false}}
    """
    assert told(text) == [
        "#1 initialize ok",
        "#2 Result of #1",
        "#3 notifications/initialized",
        "#4 tools/list ok",
        "#5 Result of #4",
        "#6 tools/call ok",
        "#7 Result of #6",
    ]
    assert {line.partition(" ")[2] for line in revisions(text)} == {"2024-11-05"}


def test_a_tutorials_method_of_no_revision_is_shown():
    """Seen in the field."""
    (message,) = events('< {"jsonrpc":"2.0","method":"notifications/resources/changed","params":{"uri":"file:///x"}}')
    assert message.body.method == "notifications/resources/changed"


def test_a_description_that_is_not_quite_json_rpc_is_paired():
    """F-03: no `jsonrpc`, `result` and `error` together, a method of no revision."""
    assert told("""
        > {"id":"discovery-1","method":"rpc.discover","params":{}}
        < {"id":"discovery-1","result":{"methods":[]},"error":null}
        < {"id":"request-123","result":"…","error":null}
    """) == ["#1 rpc.discover ok", "#2 Result of #1", "#3 Result of nothing"]


def test_sampling_and_roots_go_from_server_to_client():
    """Seen in the field."""
    assert told("""
        < {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage","params":{"messages":[],"maxTokens":100}}
        < {"jsonrpc":"2.0","id":2,"method":"roots/list"}
        > {"jsonrpc":"2.0","id":2,"result":{"roots":[]}}
        > {"jsonrpc":"2.0","id":1,"result":{"model":"m","stopReason":"endTurn","role":"assistant","content":{}}}
    """) == ["#1 sampling/createMessage ok", "#2 roots/list ok", "#3 Result of #2", "#4 Result of #1"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", "a blank line"),
        ("Server running on stdio", "not JSON (error at character 0)"),
        ('{"jsonrpc":"2.0","id":1}', "neither method nor result nor error"),
        ("{", "not JSON (error at character 1)"),
    ],
)
def test_what_is_no_message_takes_its_place_in_the_conversation(line, expected):
    """F-03."""
    assert told(f"""
        > {{"jsonrpc":"2.0","id":1,"method":"ping"}}
        < | {line}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
    """) == ["#1 ping ok", f"#2 {expected}", "#3 Result of #1"]


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b" ", b"\t"])
@pytest.mark.parametrize("suffix", [b"\r", b"", b"  "])
def test_a_byte_order_mark_and_blanks_do_not_hinder_pairing(prefix, suffix):
    """F-01, F-03."""
    conversation = Conversation()
    for opening in OPENS:
        assert not list(conversation.feed(opening))
    frames = [b'{"id":1,"method":"ping"}', b'{"id":1,"result":{}}']
    found = [
        message
        for n, raw in enumerate(frames, 1)
        for message in conversation.feed(Frame(n, n, n, prefix + raw + suffix))
    ]
    assert found[1].exchange is found[0].exchange


def test_an_id_that_is_not_utf_8_is_read_as_servers_read_it():
    """F-01: every server replaces invalid bytes with U+FFFD."""
    conversation = Conversation()
    feed = [
        *OPENS,
        Frame(1, 1, 1, b'{"id":"\xff","method":"ping"}'),
        Frame(2, 2, 2, '{"id":"\ufffd","result":{}}'.encode()),
    ]
    found = [message for record in feed for message in conversation.feed(record)]
    assert found[1].exchange is found[0].exchange


# Records other than messages.


def test_the_end_comes_out_as_it_is():
    conversation = Conversation()
    end = End(3, 5, code=0)
    assert list(conversation.feed(end)) == [end]


def test_opening_and_closing_say_nothing():
    conversation = Conversation()
    assert [event for record in [*OPENS, Close(4, 1, 5, "eof")] for event in conversation.feed(record)] == []


def test_a_frame_may_say_that_it_has_another_sender_than_its_channel():
    conversation = Conversation()
    list(conversation.feed(OPENS[1]))
    (message,) = conversation.feed(Frame(1, 2, 0, b'{"id":1,"method":"x"}', sender="mcpspy"))
    assert message.sender == "mcpspy"


def test_pending_lists_the_exchanges_that_are_open():
    conversation = Conversation()
    text = """
        > {"id":1,"method":"a"}
        < {"id":1,"method":"b"}
        > {"id":2,"method":"c"}
        < {"id":1,"result":{}}
    """
    for record in records(text):
        list(conversation.feed(record))
    assert sorted(exchange.method for exchange in conversation.pending()) == ["b", "c"]


@pytest.mark.parametrize("depth", [100, 980, 1000, 1020, 100_000])
def test_deep_nesting_anywhere_in_a_message_never_raises(depth):
    """F-10."""
    deep = "[" * depth + "]" * depth
    text = f"""
        > {{"id":1,"method":"tools/call","params":{{"name":{deep}}}}}
        > {{"method":"notifications/cancelled","params":{{"requestId":{deep}}}}}
        < {{"method":"n","params":{{"_meta":{{"{SUBSCRIPTION_ID}":{deep}}}}}}}
        < {{"id":{deep},"result":{{}}}}
        > {{"id":2,"method":"initialize","params":{{"protocolVersion":{deep}}}}}
    """
    assert len(told(text)) == 5


# Properties that hold for any messages in any order of recording.

IDS = st.sampled_from(["1", "1.0", '"1"', "null", BIG, "true", "[]"])
SAID = st.builds(
    "{} {}".format,
    st.sampled_from("<>"),
    st.one_of(
        IDS.map('{{"id":{},"method":"m"}}'.format),
        IDS.map('{{"id":{},"result":{{}}}}'.format),
        IDS.map('{{"id":{},"error":{{}}}}'.format),
        IDS.map('{{"method":"notifications/cancelled","params":{{"requestId":{}}}}}'.format),
        st.lists(IDS.map('{{"id":{},"method":"m"}}'.format), max_size=3).map(lambda parts: f"[{','.join(parts)}]"),
        st.sampled_from(["", "{", "| 5", '{"error":{}}']),
    ),
)
SPOKEN = st.lists(st.tuples(st.integers(0, 2500), SAID | st.just("~ 1") | st.just("! x")), max_size=25).map(
    lambda lines: "\n".join(f"@{t / 1000} {line}" for t, line in lines)
)


@given(SPOKEN)
def test_every_message_comes_out_once_and_each_request_before_its_answer(text):
    """F-06, whatever the order of recording."""
    found = events(text)
    expected = [(record.n, part) for record in records(text)[3:] for part in range(_parts(record))]
    assert [(event.n, getattr(event, "part", 0)) for event in found] == expected
    seen = set()
    for event in found:
        if not isinstance(event, Message) or event.exchange is None:
            continue
        if event is event.exchange.request:
            seen.add(event.exchange.ordinal)
            continue
        exchange = event.exchange
        assert exchange.ordinal in seen
        assert exchange.response is event
        assert exchange.request.t <= event.t
        assert exchange.request.sender != event.sender
        assert exchange.request.body.id == (event.body.id or Id("null", "null"))


@given(SPOKEN)
def test_what_is_pending_is_what_was_not_answered(text):
    conversation = Conversation()
    requests = [
        event.exchange
        for record in records(text)
        for event in conversation.feed(record)
        if isinstance(event, Message) and event.exchange and event is event.exchange.request
    ]
    pending = {exchange.ordinal for exchange in conversation.pending()}
    assert pending == {exchange.ordinal for exchange in requests if exchange.response is None}


def _parts(record):
    if isinstance(record, Gap) or record.ch == 3:
        return 1
    try:
        value = json.loads(record.raw)
    except ValueError:
        return 1
    return len(value) if isinstance(value, list) and value else 1


def test_a_request_recorded_before_the_answer_to_initialize_gets_its_revision_all_the_same():
    """Both pumps record after they forward, so a later message may be recorded before the answer."""
    found = events("""
        @0.000 > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        @0.020 > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        @0.010 < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18"}}
    """)
    assert [message.revision.value for message in found] == ["2025-06-18"] * 3


def test_a_notification_recorded_before_the_answer_to_initialize_waits_for_its_revision():
    found = events("""
        @0.000 > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        @0.020 > {"jsonrpc":"2.0","method":"notifications/initialized"}
        @0.010 < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05"}}
    """)
    assert [(message.n, message.revision.value) for message in found] == [
        (1, "2025-06-18"),
        (3, "2024-11-05"),
        (2, "2024-11-05"),
    ]


def test_a_refused_probe_does_not_lend_its_revision_to_an_early_notification():
    found = revisions("""
        @0.000 > {"jsonrpc":"2.0","id":1,"method":"server/discover",\
"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}
        @0.010 < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}
        @0.020 > {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        @0.040 > {"jsonrpc":"2.0","method":"notifications/initialized"}
        @0.030 < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25"}}
    """)
    assert found[-2:] == ["#5 2025-11-25", "#4 2025-11-25"]
