"""Which `input_required` answer a request continues (H-13)."""

from mcpspy.conversation import bounds
from mcpspy.conversation.pairing import mark, round_key
from tests.rules.examples import messages

ASKS = '{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}},"requestState":"STATE"}'


def asks(state):
    """Return a result with an input request for roots."""
    return ASKS.replace("STATE", state)


def continued(text):
    """Return for each request the position among the messages of the answer that it continues, counted from 1."""
    found = messages(text)
    places = {it.n: place for place, it in enumerate(found, 1)}
    requests = [it.exchange for it in found if it.exchange and it.exchange.request is it]
    return [places.get(exchange.continues) for exchange in requests]


def test_a_result_tells_what_it_asks_for():
    (*_, result) = messages(f'> 1 tools/call {{META "name":"book"}}\n< 1 = {asks("one")}')
    assert result.exchange.inputs == {"roots/list"}
    (*_, result) = messages('> 1 tools/call {META "name":"book"}\n< 1 = {"resultType":"complete","content":[]}')
    assert result.exchange.inputs is None


def test_a_retry_has_the_key_of_its_request():
    first, again, other = messages("""
        > 1 tools/call {META "name":"book"}
        > 2 tools/call {META "name":"book","inputResponses":{"a":{}},"requestState":"s"}
        > 3 tools/call {META "name":"look"}
    """)
    assert round_key(first) == round_key(again) != round_key(other)


def test_the_mark_of_a_state_tells_it_from_others_and_from_none():
    assert mark(None) is None
    assert len({mark("a"), mark("b"), mark({"a": 1}), mark({"a": "1"}), mark(None)}) == 5


def test_only_so_many_answers_are_remembered(monkeypatch):
    """A-02."""
    ask = '> {n} tools/call {{META "name":"{name}"}}\n< {n} = {{"resultType":"input_required","requestState":"{n}"}}\n'
    session = messages("".join(ask.format(n=n, name="book") for n in range(1, 40)))[-1].session
    (rounds,) = session.rounds.values()
    assert len(rounds) == 32
    assert rounds[-1].state == mark("39")
    monkeypatch.setattr(bounds, "ROUNDS", 4)
    monkeypatch.setattr(bounds, "FORGOTTEN", 0)
    monkeypatch.setattr(bounds, "forget", lambda table: [table.pop(key) for key in list(table)[:2]])
    session = messages("".join(ask.format(n=n, name=n) for n in range(1, 6)))[-1].session
    assert len(session.rounds) == 3
