"""The state of a session that the rules use, after some messages."""

from mcpspy.conversation.learning import learn
from mcpspy.conversation.model import Session
from mcpspy.wire.jsonrpc import Id
from tests.rules.examples import messages


def state_after(text):
    state = Session()
    for message in messages(text):
        learn(message, state)
    return state


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
    assert known.before.before is None  # else unanswered requests would form a long chain


def test_an_acknowledgement_that_is_recorded_early_counts():
    text = """
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}
        > 1 subscriptions/listen {META "notifications":{}}
    """
    (listen,) = state_after(text).listens.values()
    assert listen.acknowledged


LISTEN = """
    > {n} subscriptions/listen {{META "notifications":{{"{wanted}":true,"promptsListChanged":false}}}}
    < notifications/subscriptions/acknowledged {{"_meta":{{"io.modelcontextprotocol/subscriptionId":{n}}}}}
"""


def test_a_subscription_is_known_by_what_it_asks_for_until_it_is_answered():
    text = LISTEN.format(n=1, wanted="toolsListChanged")
    (listen,) = state_after(text).listens.values()
    assert (listen.asked, listen.acknowledged, listen.ended) == ({"toolsListChanged"}, True, False)
    (listen,) = state_after(text + '< 1 = {"resultType":"complete"}').listens.values()
    assert listen.ended


def test_a_subscription_with_the_id_of_one_that_goes_on_stands_for_both():
    first, again = LISTEN.format(n=1, wanted="toolsListChanged"), LISTEN.format(n=1, wanted="resourcesListChanged")
    asks = again.strip().split("\n")[0]
    (listen,) = state_after(first + asks).listens.values()
    assert (listen.request, listen.acknowledged) == (3, True)
    assert listen.asked == {"toolsListChanged", "resourcesListChanged"}
    ended = state_after(f'{first}< 1 = {{"resultType":"complete"}}\n{asks}').listens[Id.of(1)]
    assert (ended.acknowledged, ended.asked) == (False, {"resourcesListChanged"})
