"""What is remembered of a session: bounded, and by what was announced last."""

from collections import deque

from mcpspy.protocol.conversation import Conversation
from mcpspy.protocol.rules.state import REMEMBERED, State, becomes_round, keep, learn, mark, missing_meta, round_key
from mcpspy.protocol.session import Message
from tests.protocol.rules.examples import records


def messages(text):
    conversation = Conversation()
    return [event for record in records(text) for event in conversation.feed(record) if isinstance(event, Message)]


def state_after(text):
    state = State()
    for message in messages(text):
        learn(message, state)
    return state


def test_a_table_forgets_its_oldest():
    table = {}
    for n in range(2 * REMEMBERED):
        keep(table, n, n)
        assert len(table) <= REMEMBERED
    assert list(table) == list(range(2 * REMEMBERED - len(table), 2 * REMEMBERED))
    assert len(table) > REMEMBERED * 0.9
    first = next(iter(table))
    keep(table, first, "again")
    assert list(table)[-1] == first


def test_what_is_said_once_is_bounded():
    state = State()
    assert sum(state.once(str(n)) for n in range(REMEMBERED + 10)) == REMEMBERED


def test_capabilities_are_those_of_the_handshake():
    state = state_after("= 2025-06-18")
    assert state.client == {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
    assert "tools" in state.server
    assert (state.initialized, state.agreed is not None) == (True, True)


def test_a_listing_is_complete_with_its_last_page_and_no_longer_after_a_change():
    first = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"2"}
    """
    second = """
        > 3 tools/list {"cursor":"2"}
        < 3 = {"tools":[{"name":"b","inputSchema":{}}]}
    """
    assert not state_after(first).listing.complete
    whole = state_after(first + second).listing
    assert (whole.complete, list(whole.tools)) == (True, ["a", "b"])
    changed = state_after(first + second + "< notifications/tools/list_changed").listing
    assert (changed.complete, changed.changed) == (False, 8)


def test_progress_ends_with_the_answer_to_its_request():
    text = """
        > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
        < notifications/progress {"progressToken":"t","progress":5}
    """
    (known,) = state_after(text).progress.values()
    assert (known.last, known.ended) == (5, None)
    (known,) = state_after(f'{text}< 2 = {{"content":[]}}').progress.values()
    assert known.ended is not None


def test_a_token_that_is_used_again_keeps_the_request_before_for_its_answer():
    text = """
        > 2 tools/call {"name":"a","_meta":{"progressToken":"t"}}
        > 3 tools/call {"name":"b","_meta":{"progressToken":"t"}}
        > 4 tools/call {"name":"c","_meta":{"progressToken":"t"}}
        < 3 = {"content":[]}
    """
    (known,) = state_after(text).progress.values()
    assert (known.request, known.before.request) == (3, 2)
    assert known.before.ended is not None
    assert known.before.before is None  # or a client that never gets an answer would make a chain


def test_an_acknowledgement_that_is_recorded_early_counts():
    text = """
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}
        > 1 subscriptions/listen {META "notifications":{}}
    """
    (listen,) = state_after(text).listens.values()
    assert listen.acknowledged


def test_a_retry_has_the_key_of_its_request():
    first, again, other = messages("""
        > 1 tools/call {META "name":"book"}
        > 2 tools/call {META "name":"book","inputResponses":{"a":{}},"requestState":"s"}
        > 3 tools/call {META "name":"look"}
    """)
    assert round_key(first) == round_key(again) != round_key(other)


def test_only_so_many_answers_to_the_same_request_are_remembered():
    ask = '> {n} tools/call {{META "name":"book"}}\n< {n} = {{"resultType":"input_required","requestState":"{n}"}}\n'
    (rounds,) = state_after("".join(ask.format(n=n) for n in range(1, 40))).rounds.values()
    assert isinstance(rounds, deque)
    assert len(rounds) == 16
    assert rounds[-1].state == mark("39")


def test_the_mark_of_a_state_tells_it_from_others_and_from_none():
    assert mark(None) is None
    assert len({mark("a"), mark("b"), mark({"a": 1}), mark({"a": "1"}), mark(None)}) == 5


def test_a_request_of_2026_07_28_lacks_what_its_meta_has_not():
    version, both, bare = messages("""
        > 1 tools/list {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}
        > 2 tools/list {META}
        > 3 tools/list
    """)
    assert missing_meta(version) == ["io.modelcontextprotocol/clientCapabilities"]
    assert missing_meta(both) == []
    assert missing_meta(bare) == []  # nobody knows that it is one
    bare.revision = both.revision
    assert len(missing_meta(bare)) == 2


def test_what_a_server_asks_becomes_a_round_in_2026_07_28_alone():
    *_, asked, other = messages("= 2025-06-18\n< 1 sampling/createMessage {}\n< 2 ping")
    (modern,) = messages("> 1 tools/list {META}")
    assert not becomes_round(asked)
    asked.revision = other.revision = modern.revision
    assert becomes_round(asked)
    assert not becomes_round(other)
