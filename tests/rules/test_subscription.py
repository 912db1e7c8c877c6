"""Subscriptions: cases that the rule examples do not cover."""

import pytest

from tests.rules.examples import findings, told


def test_a_subscription_is_told_of_by_the_exact_id():
    text = """
        > 1 subscriptions/listen {META "notifications":{}}
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}
    """
    assert told(text, "subscription/") == ["#2 subscription/unknown-id"]


def listen(n, wanted):
    return f"""
        > {n} subscriptions/listen {{META "notifications":{{{wanted}}}}}
        < notifications/subscriptions/acknowledged {{"_meta":{{"io.modelcontextprotocol/subscriptionId":{n}}},\
"notifications":{{{wanted}}}}}
    """


def change(n, what, rest=""):
    return f'< notifications/{what} {{{rest}"_meta":{{"io.modelcontextprotocol/subscriptionId":{n}}}}}\n'


@pytest.mark.parametrize(
    ("wanted", "told_of", "found"),
    [
        ('"toolsListChanged":true', change(1, "tools/list_changed"), 0),
        ('"toolsListChanged":false', change(1, "tools/list_changed"), 1),
        ('"toolsListChanged":true', change(1, "resources/list_changed"), 1),
        ('"resourceSubscriptions":["a:b"]', change(1, "resources/updated", '"uri":"a:b/c",'), 0),
        ('"resourceSubscriptions":[]', change(1, "resources/updated", '"uri":"a:b",'), 1),
        ('"toolsListChanged":true', change(1, "message", '"level":"info","data":1,'), 1),
        ('"toolsListChanged":true', change(1, "extension/changed"), 0),
        ('"toolsListChanged":true', change(2, "resources/list_changed"), 0),
    ],
)
def test_a_subscription_is_told_what_it_asks_for(wanted, told_of, found):
    assert told(listen(1, wanted) + told_of, "subscription/unreq") == ["#3 subscription/unrequested"] * found


def test_each_of_several_subscriptions_has_a_filter_of_its_own():
    text = listen(1, '"toolsListChanged":true') + listen(2, '"promptsListChanged":true')
    changes = change(2, "prompts/list_changed") + change(1, "tools/list_changed")
    assert told(text + changes, "subscription/") == []
    assert told(text + change(1, "prompts/list_changed"), "subscription/") == ["#5 subscription/unrequested"]


def test_of_two_subscriptions_with_one_id_nothing_is_said_but_that():
    """The only finding is that the id is in flight; a notification could belong to either subscription."""
    first, second = '"toolsListChanged":true', '"promptsListChanged":true'
    changes = change(1, "tools/list_changed") + change(1, "prompts/list_changed")
    (asked, acknowledged) = listen(1, second).strip().split("\n")[0], listen(1, second)
    for text in (listen(1, first) + asked + "\n" + changes, listen(1, first) + acknowledged + changes):
        above = [it for it in findings(text) if it.severity != "info"]
        assert [(it.frame, it.rule) for it in above] == [(3, "pairing/id-in-flight")]


def test_what_was_on_its_way_when_a_subscription_was_cancelled_is_no_finding():
    text = listen(1, '"toolsListChanged":true') + '> notifications/cancelled {"requestId":1}\n'
    assert told(text + change(1, "tools/list_changed"), "subscription/") == []
    again = listen(1, '"promptsListChanged":true').strip().split("\n")[0]
    assert told(f"{text}{again}\n{change(1, 'tools/list_changed')}", "subscription/") == []


def test_a_change_without_a_subscription_is_one_of_the_session_in_the_handshake_era():
    assert told("= 2025-11-25\n< notifications/tools/list_changed", "subscription/") == []
    assert told("< notifications/tools/list_changed", "subscription/") == []  # the revision is unknown


def test_over_http_a_subscription_is_told_by_its_stream():
    text = """
        >> 1 subscriptions/listen {META "notifications":{"toolsListChanged":true}}
        << 200 events
        <- notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1},\
"notifications":{}}
        <- notifications/prompts/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}
        <- notifications/tools/list_changed
    """
    assert [rule.partition(" ")[2] for rule in told(text, "subscription/")] == [
        "subscription/unrequested",
        "subscription/missing-id",
    ]
    unacknowledged = [line for line in text.split("\n") if "acknowledged" not in line and line[:14] != '"notifications']
    assert "subscription/unacknowledged" in " ".join(told("\n".join(unacknowledged), "subscription/"))


def test_two_clients_on_http_with_one_id_are_told_apart_by_their_streams():
    ask = '>> 1 subscriptions/listen {META "notifications":{"%s":true}}\n'
    ack = '<- notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":1}}\n'
    one = ask % "toolsListChanged" + "<< 200 events\n" + ack
    two = ask % "promptsListChanged" + "<< 200 events\n" + ack
    assert told(one + two + change(1, "prompts/list_changed").replace("< ", "<- "), "subscription/") == []
