"""The messages and exchanges that the fold computes; `cases/pairing.txt` has those that a transcript shows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.records import Frame, Gap
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.spec.revisions import PROTOCOL_VERSION, SUBSCRIPTION_ID
from mcpspy.wire.jsonrpc import Id
from tests.transcript import OPENS, events, records, told

BIG = "12345678901234567890123"
META = f'"_meta":{{"{PROTOCOL_VERSION}":"2026-07-28"}}'


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
