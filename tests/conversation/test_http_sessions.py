"""MCP over HTTP: which bytes are messages, who sends them, and which response belongs to which request.

`cases/http.txt` has what a transcript can show.
"""

import re
from collections import Counter

import pytest

from mcpspy.capture.records import Gap, Open
from mcpspy.conversation import bounds
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.http_sessions import HttpSessions
from mcpspy.conversation.model import HttpChannel, HttpUnit, Message, Session, StreamEnd
from tests.conversation.http import SSE, Exchange, request, result
from tests.memory import objects_in

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def told(http):
    """Return each event as text: a message by method, id and status of its exchange, others by their own text."""
    return [_told(event) for event in http.events()]


def _told(event):
    if isinstance(event, HttpUnit):
        return f"{event.kind} {event.text}"
    if event.exchange:
        kind = type(event.body).__name__.lower()
        return f"{kind} {event.exchange.method} {event.exchange.request.body.id} {event.exchange.status}"
    return f"{type(event.body).__name__.lower()} {getattr(event.body, 'method', '')}".strip()


def initialize(http, name, number=0, **headers):
    asked = http.ask(request(number, "initialize", protocolVersion="2025-06-18"), **headers)
    given = {"mcp_session_id": name} if name else {}
    http.answer(asked, result(number, protocolVersion="2025-06-18"), **given)


def messages(http):
    return [event for event in http.events() if isinstance(event, Message)]


@pytest.mark.parametrize(("info", "clients"), [({"name": "c", "version": "1"}, 1), (None, 2)])
def test_a_client_that_says_its_name_is_one_whatever_its_http_library(info, clients):
    """The conformance suite uses fetch for listings and http.request for calls."""
    http = Exchange()
    meta = {**META, "io.modelcontextprotocol/clientInfo": info}
    for number, agent in enumerate(("node", "")):
        asked = http.ask(request(number, "tools/list", _meta=meta), user_agent=agent)
        http.answer(asked, result(number, tools=[]))
    assert len({message.session for message in messages(http)}) == clients


def test_where_a_server_gives_no_ids_the_sessions_of_equal_clients_are_in_doubt_from_the_second_on():
    """2025-11-25: from then on, messages of the first client cannot be told from those of the second."""
    http = Exchange()
    initialize(http, None)
    http.ask(request(1, "tools/list"))
    initialize(http, None, peer="127.0.0.1:5001")
    http.ask(request(1, "tools/list"), peer="127.0.0.1:5001")
    initialize(http, "named", peer="127.0.0.1:5002")
    assert [message.session.partial for message in messages(http)] == [False] * 3 + [True] * 3 + [False] * 2


def test_two_clients_that_begin_at_once_are_in_no_doubt_when_they_have_their_ids():
    http = Exchange()
    asked = [http.ask(request(0, "initialize"), peer=f"127.0.0.1:{port}") for port in (5001, 5002)]
    http.answer(asked[0], result(0), mcp_session_id="one")
    http.answer(asked[1], result(0), mcp_session_id="two")
    sessions = {message.session for message in messages(http)}
    assert {(session.name, session.partial) for session in sessions} == {("one", False), ("two", False)}


def test_a_client_that_initializes_again_because_it_was_refused_is_in_no_doubt():
    http = Exchange()
    http.answer(http.ask(request(0, "initialize", protocolVersion="2025-06-18")), status=401, kind=None)
    initialize(http, None)
    assert not any(message.session.partial for message in messages(http))


def test_messages_come_as_events_and_other_events_are_units_of_http():
    """H-12: priming events, comments, retry."""
    http = Exchange()
    initialize(http, "one")
    stream = http.answer(http.ask(request(1, "tools/call"), mcp_session_id="one"), kind=SSE, end=False)
    http.event(stream, raw=b"id: 1\ndata: \n")
    http.event(stream, {"jsonrpc": "2.0", "method": "notifications/progress"})
    http.event(stream, request(7, "elicitation/create"))
    http.answer(http.ask(result(7, action="accept"), mcp_session_id="one"), status=202, kind=None)
    http.event(stream, raw=b": ping\n")
    http.event(stream, raw=b"data: {not json}\n")
    http.event(stream, result(1, content=[]))
    assert told(http)[2:] == [
        "request tools/call 1 ok",
        "event an event without data",
        "notification notifications/progress",
        "request elicitation/create 7 ok",
        "result elicitation/create 7 ok",
        "http 202",
        "event : ping",
        "invalid",
        "result tools/call 1 ok",
    ]


def test_a_request_that_a_status_refuses_waits_for_no_answer_and_may_be_asked_again():
    """A client that must log in sends the same request again, with a token."""
    http = Exchange()
    initialize(http, "one")
    for _ in range(2):
        refused = http.ask(request(1, "tools/list"), mcp_session_id="one")
        http.answer(refused, b'{"error":"invalid_token"}', status=401)
    http.answer(http.ask(request(1, "tools/list"), mcp_session_id="one"), result(1, tools=[]))
    assert [text for text in told(http)[2:] if text.startswith("re")] == [
        "request tools/list 1 error",
        "request tools/list 1 error",
        "request tools/list 1 ok",
        "result tools/list 1 ok",
    ]
    conversation = Conversation()
    for record in http.records:
        list(conversation.feed(record))
    assert [exchange.refused for exchange in conversation.pending()] == [True, True]


def test_an_endpoint_without_a_session_id_is_known_by_its_path():
    http = Exchange()
    streams = []
    for number in (1, 2):
        streams.append(http.answer(http.ask(method="GET", target="/sse"), kind=SSE, end=False))
        http.event(streams[-1], raw=b"event: endpoint\ndata: /messages/%d\n" % number)
    for number in (1, 2):
        posted = http.ask(request(0, "initialize"), target=f"/api/messages/{number}", accept="*/*")
        http.answer(posted, b"Accepted", status=202, kind="text/plain")
    for stream in streams:
        http.event(stream, result(0, protocolVersion="2024-11-05"))
    assert [message.session.name for message in messages(http)] == [
        "/messages/1", "/messages/2", "/messages/1", "/messages/2",
    ]  # fmt: skip
    assert [message.exchange.status for message in messages(http)] == ["ok"] * 4


def test_a_body_that_could_not_be_decoded_says_so_at_its_end():
    """H-11."""
    http = Exchange()
    initialize(http, "one")
    answer = http.answer(http.ask(request(1, "tools/list"), mcp_session_id="one"), b"\x1f\x8b", end=False)
    http.close(answer, reason="the compressed body ends too early")
    unit = [event for event in http.events() if isinstance(event, HttpUnit)][-1]
    assert (unit.n, unit.text) == (http.records[-1].n, "not decoded: the compressed body ends too early")
    assert unit.damage == "the compressed body ends too early"


@pytest.mark.parametrize(
    ("first", "how", "text"),
    [
        (0, "eof", "the client closed the WebSocket"),
        (1, "eof", "the server closed the WebSocket"),
        (1, "reset", "the server reset the WebSocket"),
        (1, "abort", "the client left the WebSocket"),
        (0, "shutdown", "mcpspy closed the WebSocket"),
    ],
)
def test_the_direction_of_a_websocket_that_ends_first_shows_who_ended_it(first, how, text):
    http = Exchange()
    both = http.websocket()
    http.wait(2_000_000_000)
    http.say(both[1 - first], request(1, "ping"))
    http.wait(5_000_000_000)
    http.close(both[first], how)
    http.close(both[1 - first], "abort")
    ended = [event for event in http.events() if isinstance(event, StreamEnd)]
    assert [(event.n, event.text) for event in ended] == [(9, f"{text} after 5.00 s, idle for 3.00 s")]


def test_a_websocket_is_a_session_in_both_directions():
    http = Exchange()
    first, second = http.websocket(), http.websocket("127.0.0.1:6001")
    http.say(first[0], request(1, "ping"))
    http.say(second[0], request(1, "tools/list"))
    http.say(second[1], b"", op="ping")
    http.say(second[1], result(1, tools=[]))
    http.say(first[1], result(1))
    assert [text for text in told(http) if not text.startswith("http")] == [
        "request ping 1 ok",
        "request tools/list 1 ok",
        "event ping",
        "result tools/list 1 ok",
        "result ping 1 ok",
    ]


def test_sessions_are_forgotten_when_there_are_too_many(monkeypatch):
    """A-02."""
    monkeypatch.setattr(bounds, "SESSIONS", 2)
    monkeypatch.setattr(bounds, "RESTING", 3)
    http = Exchange()
    for number in range(10):
        http.answer(http.ask(request(number, "tools/list"), mcp_session_id=f"s{number}"), result(number, tools=[]))
    conversation = Conversation()
    assert len([event for record in http.records for event in conversation.feed(record)]) == 20
    assert {session.name for session in objects_in(conversation, Session)} - {None} == {"s7", "s8", "s9"}
    assert {name for name in objects_in(conversation, str) if re.fullmatch(r"s\d", name)} == {"s7", "s8", "s9"}


def test_a_session_that_is_used_is_not_forgotten_for_its_age(monkeypatch):
    """A-02: the requests of the oldest session are still paired, although many newer sessions began."""
    monkeypatch.setattr(bounds, "SESSIONS", 4)
    monkeypatch.setattr(bounds, "RESTING", 5)
    http = Exchange()
    initialize(http, "old")
    for number in range(1, 10):
        asked = http.ask(request(number, "tools/list"), mcp_session_id="old")
        initialize(http, f"s{number}")
        http.answer(asked, result(number, tools=[]))
    assert not any(message.session.partial for message in messages(http) if message.session.name == "old")
    assert told(http).count("request tools/list 9 ok") == 1
    assert not [line for line in told(http) if line.endswith("pending")]


def test_the_stream_of_a_session_that_was_forgotten_goes_on(monkeypatch):
    """A-02."""
    monkeypatch.setattr(bounds, "SESSIONS", 1)
    monkeypatch.setattr(bounds, "RESTING", 2)
    http = Exchange()
    initialize(http, "old")
    asked = http.ask(request(1, "tools/call"), mcp_session_id="old")
    stream = http.answer(asked, kind=SSE, end=False)
    for number in range(5):
        initialize(http, f"s{number}")
    http.event(stream, result(1, content=[]))
    assert told(http)[-1] == "result tools/call 1 ok"


def test_no_record_visits_the_sessions_before_it(monkeypatch):
    """A-02: in a capture of 300 sessions, each session is visited only for its own records."""
    visits = Counter()
    monkeypatch.setattr(Session, "exchanges", counted(Session.exchanges, visits))
    http = Exchange()
    for number in range(300):
        name, peer = f"s{number}", f"127.0.{number}.1:5000"
        initialize(http, name)
        http.answer(http.ask(request(1, "tools/list"), mcp_session_id=name, peer=peer), result(1, tools=[]))
        http.ask(result(77), mcp_session_id=name)
        lost = http.answer(http.ask(request(2, "tools/list"), mcp_session_id=name), kind=None, end=False)
        http.close(lost, "abort")
        http.answer(http.ask(method="DELETE", mcp_session_id=name), kind=None)
        http.records.append(Gap(len(http.records) + 2, http.records[-1].t, 1, "no space left on device"))
    http.events()
    assert max(visits.values()) <= 8


def counted(method, visits):
    def visit(session, *args):
        visits[session] += 1
        return method(session, *args)

    return visit


def test_a_server_that_gives_a_new_id_each_time_names_a_session_only_so_often():
    """A-02."""
    http = Exchange()
    conversation = Conversation()
    for number in range(200):
        asked = http.ask(request(number, "tools/list"))
        http.answer(asked, result(number, tools=[]), mcp_session_id=f"s{number}")
    for record in http.records:
        list(conversation.feed(record))
    assert 0 < len([name for name in objects_in(conversation, str) if re.fullmatch(r"s\d+", name)]) <= 20


def test_requests_that_nobody_answers_are_remembered_only_so_long(monkeypatch):
    """A-02."""
    monkeypatch.setattr(bounds, "UNANSWERED", 10)
    http = Exchange()
    for number in range(50):
        http.ask(request(number, "ping"), mcp_session_id="one")
    conversation = Conversation()
    for record in http.records:
        list(conversation.feed(record))
    (sessions,) = objects_in(conversation, HttpSessions)
    channels = [record.ch for record in http.records if isinstance(record, Open)]
    assert [ch for ch in channels if sessions.channel(ch)] == channels[-10:]


def test_nothing_is_kept_of_channels_that_were_answered():
    http = Exchange()
    for number in range(50):
        http.answer(http.ask(request(number, "ping"), mcp_session_id="one"), result(number))
    conversation = Conversation()
    for record in http.records:
        list(conversation.feed(record))
    assert not objects_in(conversation, HttpChannel)
