"""Properties of exchanges and sessions; `test_pairing.py` tests how they are built."""

from tests.transcript import events

ASKED = """
    > {"id":1,"method":"ping"}
    > {"id":2,"method":"subscriptions/listen"}
    > {"id":3,"method":"tools/call"}
    > {"method":"notifications/cancelled","params":{"requestId":3}}
"""


def exchanges(text):
    """Return the exchanges of a transcript that have no response, by method."""
    return {exchange.method: exchange for exchange in events(text)[-1].session.exchanges()}


def test_a_request_is_called_unanswered_only_when_nobody_will_answer_it():
    """Not while the capture grows, not after a gap, and not a subscription, which is answered only at its end."""
    found = {method: it.final_status(live=False) for method, it in exchanges(ASKED).items()}
    assert found == {"ping": "unanswered", "subscriptions/listen": "pending", "tools/call": "cancelled"}
    assert exchanges(ASKED)["ping"].final_status(live=True) == "pending"
    lost = exchanges(ASKED.replace('    > {"id":2', '    ~ 1\n    > {"id":2'))
    assert lost["ping"].final_status(live=False) == "pending"


def test_an_exchange_is_known_by_the_sender_and_the_id_of_its_request():
    exchange = exchanges("""
        > {"id":"a","method":"ping"}
        < {"id":"a","method":"roots/list"}
    """)["roots/list"]
    assert (exchange.key[0], str(exchange.key[1])) == ("server", '"a"')
    assert exchange.request.session.with_id_of(exchange) == (exchange,)
