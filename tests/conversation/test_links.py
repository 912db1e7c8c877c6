"""The request that a notification refers to; `test_pairing.py` tests tasks."""

import pytest

from mcpspy.conversation import links
from mcpspy.conversation.model import Message
from tests.transcript import events

SUBSCRIBED = '"_meta":{"io.modelcontextprotocol/subscriptionId"'


def linked(text):
    """Return for each notification the ordinal of the exchange that it refers to."""
    found = [event for event in events(text) if isinstance(event, Message)]
    return [it.link for it in found if type(it.body).__name__ == "Notification"]


def progress(token):
    """Return a progress notification for a token."""
    return f'{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}'


def asks(number, token):
    """Return a request with a progress token."""
    return f'{{"id":{number},"method":"tools/call","params":{{"_meta":{{"progressToken":{token}}}}}}}'


def test_progress_names_the_latest_request_of_the_other_side_with_its_token():
    assert linked(f"""
        > {asks(1, '"a"')}
        < {asks(1, '"a"')}
        < {progress('"a"')}
        > {progress('"a"')}
        > {asks(2, '"a"')}
        < {progress('"a"')}
        < {progress(1)}
    """) == [0, 1, 2, None]


def test_progress_after_the_response_names_its_request_still():
    assert linked(f"""
        > {asks(1, 5)}
        < {{"id":1,"result":{{}}}}
        < {progress(5)}
    """) == [0]


@pytest.mark.parametrize(("token", "same"), [("1", True), ('"1"', False), ("1.0", False), ("null", False)])
def test_a_token_has_a_type(token, same):
    assert linked(f"""
        > {asks(1, 1)}
        < {progress(token)}
    """) == [0 if same else None]


def test_a_notification_of_a_subscription_names_the_request_that_began_it():
    assert linked(f"""
        > {{"id":1,"method":"ping"}}
        > {{"id":"s","method":"subscriptions/listen"}}
        < {{"method":"notifications/tools/list_changed","params":{{{SUBSCRIBED}:"s"}}}}}}
        < {{"id":"s","result":{{}}}}
        < {{"method":"notifications/tools/list_changed","params":{{{SUBSCRIBED}:"s"}}}}}}
        < {{"method":"notifications/tools/list_changed","params":{{{SUBSCRIBED}:1}}}}}}
        < {{"method":"notifications/tools/list_changed"}}
    """) == [1, 1, None, None]


def test_a_cancellation_names_a_request_of_its_own_side():
    found = events("""
        > {"id":1,"method":"a"}
        < {"id":1,"method":"b"}
        < {"method":"notifications/cancelled","params":{"requestId":1}}
        > {"method":"notifications/cancelled","params":{"requestId":2}}
    """)
    assert [(it.cancels.method if it.cancels else None) for it in found[2:]] == ["b", None]


def test_tokens_and_subscriptions_are_forgotten_when_there_are_too_many(monkeypatch):
    """A-02."""
    monkeypatch.setattr(links, "REMEMBERED", 4)
    monkeypatch.setattr(links, "FORGOTTEN", 0)
    many = "\n".join(f'> {asks(n, n)}\n> {{"id":"{n}","method":"subscriptions/listen"}}' for n in range(5))
    monkeypatch.setattr(links, "forget", lambda table: [table.pop(key) for key in list(table)[:2]])
    session = events(many)[-1].session
    assert [token.token for _, token in session.tokens] == ["2", "3", "4"]
    assert [number.token for number in session.subscriptions] == ["2", "3", "4"]


@pytest.mark.parametrize("value", ["null", "[]", "{}", "true", '{"_meta":5}', '{"_meta":{"progressToken":[[]]}}'])
@pytest.mark.parametrize("method", ["progress", "cancelled", "x"])
def test_any_shape_is_taken(method, value):
    """F-10."""
    assert linked(f"""
        > {{"id":1,"method":"tools/call","params":{value}}}
        < {{"method":"notifications/{method}","params":{value}}}
    """) == [None]
