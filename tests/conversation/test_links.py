"""The request that a notification refers to; `test_pairing.py` tests tasks."""

import pytest

from mcpspy.conversation import bounds
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


def test_tokens_and_subscriptions_are_forgotten_when_there_are_too_many(monkeypatch):
    """A-02."""
    monkeypatch.setattr(bounds, "EXCHANGES", 4)
    monkeypatch.setattr(bounds, "FORGOTTEN", 0)
    many = "\n".join(f'> {asks(n, n)}\n> {{"id":"{n}","method":"subscriptions/listen"}}' for n in range(5))
    monkeypatch.setattr(bounds, "forget", lambda table: [table.pop(key) for key in list(table)[:2]])
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
