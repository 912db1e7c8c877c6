"""What a client asks, and what it makes of answers that are late, refused, wrong, or do not come."""

import json
import queue
import threading
import time

import pytest

from mcpspy.transport import client as clients
from mcpspy.transport.client import (
    AskingClient,
    ErrorAnswer,
    Gone,
    Late,
    NoAnswer,
    SentMessage,
    listings,
    request_line,
    self_introduction,
)
from mcpspy.transport.link import Ended, Failed, run_session
from mcpspy.wire.jsonrpc import Id
from tests.limits import LIMIT

NEWEST = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
OLDER = {"protocolVersion": "2025-11-25", "capabilities": {"prompts": {}}}


class Answering:
    """A transport to a server that is a function: it returns what comes after a message."""

    def __init__(self, answer):
        self.heard = queue.SimpleQueue()
        self.sent = []
        self._answer = answer

    def send(self, line):
        message = json.loads(line)
        self.sent.append(message)
        for it in self._answer(message) or ():
            self.heard.put(json.dumps(it).encode() if isinstance(it, dict) else it)

    @property
    def methods(self):
        return [it.get("method") for it in self.sent]


def result(message, value):
    return {"jsonrpc": "2.0", "id": message["id"], "result": value}


def error(message, text):
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": text}}


def knowing(**results):
    """Return a server that has these results by method, with _ for /, and refuses the rest."""

    def answer(message):
        if "id" not in message or "method" not in message:
            return []
        known = results.get(message["method"].replace("/", "_"))
        return [error(message, "no such method") if known is None else result(message, known)]

    return answer


def greeted(answer, start=LIMIT, probe=LIMIT, **options):
    transport = Answering(answer)
    client = AskingClient(transport, "me")
    return client.greet(start, probe, **options), client, transport


def test_a_server_without_a_handshake_is_asked_with_what_each_request_has():
    (method, told), client, transport = greeted(knowing(server_discover=NEWEST, tools_list={"tools": []}))
    assert (method, told, client.meta) == ("server/discover", NEWEST, self_introduction("me"))
    assert client.ask("tools/list", {"a": 1}, LIMIT) == {"tools": []}
    assert transport.sent[-1]["params"] == {**self_introduction("me"), "a": 1}
    assert transport.methods == ["server/discover", "tools/list"]


@pytest.mark.parametrize(
    "discovered", [None, {}, {"supportedVersions": ["2030-01-01"], "capabilities": {}}, {"supportedVersions": 5}]
)
def test_another_server_gets_the_handshake(discovered):
    (method, told), client, transport = greeted(knowing(server_discover=discovered, initialize=OLDER))
    assert (method, told, client.meta) == ("initialize", OLDER, {})
    assert transport.methods == ["server/discover", "initialize", "notifications/initialized"]
    assert transport.sent[1]["params"]["clientInfo"]["name"] == "me"


def test_the_handshake_alone_is_possible():
    _, _, transport = greeted(knowing(initialize=OLDER), discover=False)
    assert transport.methods == ["initialize", "notifications/initialized"]


def test_a_late_answer_to_discover_counts():
    first = []

    def answer(message):
        if message["method"] == "server/discover":
            first.append(message)
            return []
        return [result(first[0], NEWEST), error(message, "no handshake")]

    (method, _), client, transport = greeted(answer, probe=0)
    assert (method, client.meta) == ("server/discover", self_introduction("me"))
    assert transport.methods == ["server/discover", "initialize"]


def test_a_late_refusal_of_discover_does_not():
    first = []

    def answer(message):
        if message["method"] == "server/discover":
            first.append(message)
            return []
        return [error(first[0], "what?"), result(message, OLDER)] if "id" in message else []

    assert greeted(answer, probe=0)[0] == ("initialize", OLDER)


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (lambda _: [], Late, "did not answer initialize within 0 s"),
        (lambda _: [Ended("exited with code 3")], Gone, "exited with code 3 before it answered server/discover"),
        (knowing(), ErrorAnswer, "answered initialize with an error: no such method"),
        (knowing(initialize=5), ErrorAnswer, "answered initialize with an error: its result is 5, not an object"),
        (
            lambda it: [{"jsonrpc": "2.0", "id": it["id"], "error": "no"}],
            ErrorAnswer,
            'answered initialize with an error: its error is "no"',
        ),
        (
            lambda it: [Failed(Id.of(it["id"]), "HTTP 401 Unauthorized")],
            NoAnswer,
            "did not answer initialize: HTTP 401 Unauthorized",
        ),
    ],
)  # fmt: skip
def test_a_server_that_is_not_introduced_is_told_with_the_reason(answer, kind, text):
    start = 0.01 if kind is Late else LIMIT
    with pytest.raises(kind) as raised:
        greeted(answer, start, start)
    assert str(raised.value) == text


def test_a_server_that_has_ended_is_asked_no_more():
    transport = Answering(lambda _: [Ended("exited")])
    client = AskingClient(transport, "me")
    for _ in range(2):
        with pytest.raises(Gone, match="exited before it answered ping"):
            client.ask("ping", {}, LIMIT)
    assert transport.methods == ["ping"]
    assert client.ended == Ended("exited")


def test_pages_are_requested_until_the_last(monkeypatch):
    pages = {None: {"tools": [1], "nextCursor": "\ud800"}, "\ud800": {"tools": [2], "nextCursor": 0}, 0: {"tools": [3]}}

    def answer(message):
        return [result(message, pages[message.get("params", {}).get("cursor")])]

    assert [it["tools"] for it in AskingClient(Answering(answer), "me").pages("tools/list", LIMIT)] == [[1], [2], [3]]
    monkeypatch.setattr(clients, "LISTING", -1.0)
    with pytest.raises(NoAnswer, match="did not send all pages of tools/list within"):
        [*AskingClient(Answering(answer), "me").pages("tools/list", LIMIT)]


@pytest.mark.parametrize(
    ("cursor", "text"),
    [
        (lambda _: "again", "repeats a cursor in its pages of tools/list"),
        (str, "has more than 1,000 pages of tools/list"),
    ],
)
def test_a_listing_without_an_end_is_an_error(cursor, text):
    transport = Answering(lambda message: [result(message, {"nextCursor": cursor(message["id"])})])
    with pytest.raises(NoAnswer, match=text):
        [*AskingClient(transport, "me").pages("tools/list", LIMIT)]


def test_what_the_server_asks_is_answered_and_the_rest_is_passed_on():
    asks = [b'{"jsonrpc":"2.0","id":1E2,"method":"ping"}', b'{"jsonrpc":"2.0","id":"\xc3\xa9","method":"x"}', b"noise"]
    sent, aside = [], []

    class Asking(Answering):
        def send(self, line):
            sent.append(line)
            super().send(line)

    transport = Asking(lambda it: [*asks, result(it, {"a": 1})] if it.get("method") == "tools/call" else [])
    client = AskingClient(transport, "me", aside=aside.append)
    assert client.ask("tools/call", {"name": "é"}, LIMIT) == {"a": 1}
    assert sent[0] == '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é"}}'.encode()
    assert sent[1] == b'{"jsonrpc":"2.0","id":1E2,"result":{}}'
    assert json.loads(sent[2])["id"] == "é"
    assert json.loads(sent[2])["error"]["code"] == -32601
    assert aside == asks


def test_a_message_is_said_as_it_is_and_its_answer_heard_with_its_line():
    line = b'{"jsonrpc": "2.0", "id": "a", "method": "x"}'
    transport = Answering(lambda it: [result(it, {})])
    client = AskingClient(transport, "me")
    message = SentMessage(line, "x", {}, Id.of("a"))
    client.say(message)
    heard = client.hear([message], time.monotonic() + LIMIT)
    assert heard == (message, b'{"jsonrpc": "2.0", "id": "a", "result": {}}')
    assert client.sent == [message]
    assert client.hear([message], 0) is None


def test_a_request_without_params_has_none():
    assert request_line(7, "ping", {}) == b'{"jsonrpc":"2.0","id":7,"method":"ping"}'


def test_the_listings_that_a_server_declares():
    assert [*listings({"capabilities": {"resources": None, "prompts": {}}})] == [
        "resources/list", "resources/templates/list", "prompts/list",
    ]  # fmt: skip
    for wrong in (None, [], {"capabilities": ["tools"]}):
        assert [*listings(wrong)] == []


class Recorded:
    """A recorded transport whose server ends when it is closed."""

    interrupted = False

    def __init__(self):
        self._end = threading.Event()

    def wait(self):
        assert self._end.wait(LIMIT)

    def close(self):
        self._end.set()


def test_a_session_ends_with_its_client_whatever_comes_of_it():
    assert run_session(Recorded, type) is Recorded
    with pytest.raises(ZeroDivisionError):
        run_session(Recorded, lambda _: 1 / 0)


def test_a_session_that_a_signal_interrupts_is_told():
    def interrupt(link):
        link.interrupted = True

    with pytest.raises(KeyboardInterrupt):
        run_session(Recorded, interrupt)
