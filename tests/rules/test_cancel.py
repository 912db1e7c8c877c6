"""Cancellations: what the examples of the rules leave open."""

from tests.rules.examples import told


def test_a_server_may_cancel_a_subscription_of_the_clients():
    text = """
        > 1 subscriptions/listen {META "notifications":{}}
        < notifications/cancelled {"requestId":1}
    """
    assert told(text, "cancel/") == []
