import json
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result
from tests.replay.webs import events, served, told
from tests.transcript import capture

NOTE = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
DONE = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
PROGRESS = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
TOKEN = '{"progressToken":1}'
SESSION = f"""
    > {INITIALIZE}
    < {INITIALIZED}
    > {DONE}
    < {NOTE}
    > {call(2, "quick")}
    < {result(2, "quick")}
    > {call(3, "slow", meta=TOKEN)}
    < {PROGRESS}
    < {result(3, "slow")}
"""
SAMPLE = '{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{}}'
GREEN = '{"jsonrpc":"2.0","id":0,"result":{"content":"green"}}'


@pytest.fixture
def mock(tmp_path):
    with served(capture(tmp_path / "c.jsonl", SESSION)) as there:
        yield there


def initialized(mock):
    """Begin a session and return its header."""
    response = mock.ask("POST", INITIALIZE)
    assert response.read().decode() == INITIALIZED
    assert response.getheader("Content-Type") == "application/json"
    response.connection.close()
    return {"Mcp-Session-Id": response.getheader("Mcp-Session-Id")}


def test_an_answer_that_comes_alone_is_a_body_and_one_that_does_not_a_stream(mock):
    session = initialized(mock)
    assert mock.post(call(7, "quick"), session) == (200, result(7, "quick"))
    status, text = mock.post(call(8, "slow", meta=TOKEN), session)
    assert status == 200
    assert [it.get("method", it.get("id")) for it in told(text)] == ["notifications/progress", 8]
    assert mock.end() == (0, "")


def test_what_follows_the_answer_goes_to_the_stream_of_the_session(tmp_path):
    text = f"> {INITIALIZE}\n< {INITIALIZED}\n> {call(2, 'touch')}\n< {result(2, 'touched')}\n< {NOTE}"
    with served(capture(tmp_path / "c.jsonl", text)) as mock:
        session = initialized(mock)
        assert mock.post(call(7, "touch"), session) == (200, result(7, "touched"))
        stream = mock.ask("GET", headers=session)
        assert events(stream, 1) == [("message", NOTE)]
        stream.connection.close()


def test_a_client_without_a_session_is_told_the_endpoint_and_hears_all_on_its_stream(mock):
    stream = mock.ask("GET", headers={"Accept": "text/event-stream"})
    ((kind, endpoint),) = events(stream, 1)
    assert kind == "endpoint"
    assert mock.post(INITIALIZE, target=endpoint) == (202, "")
    assert mock.post(call(8, "slow", meta=TOKEN), target=endpoint)[0] == 202
    assert events(stream, 3) == [("message", INITIALIZED), ("message", PROGRESS), ("message", result(8, "slow"))]
    stream.connection.close()


def test_what_belongs_to_no_request_goes_to_the_stream_of_the_session_which_has_a_mock_of_its_own(mock):
    one, other = initialized(mock), initialized(mock)
    assert one != other
    for session in (one, other):
        assert mock.post(DONE, session) == (202, "")
        stream = mock.ask("GET", headers=session)
        assert events(stream, 1) == [("message", NOTE)], "it is said once to each"
        stream.connection.close()


def test_a_stream_that_is_opened_again_has_what_the_one_before_had_not(tmp_path):
    """The client reconnects without Last-Event-ID, because the server sent no event ids."""
    roots, other = '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}', NOTE.replace("tools", "prompts")
    text = f"> {INITIALIZE}\n< {INITIALIZED}\n> {DONE}\n< {NOTE}\n> {roots}\n< {other}"
    with served(capture(tmp_path / "c.jsonl", text)) as mock:
        session = initialized(mock)
        stream = mock.ask("GET", headers=session)
        assert mock.post(DONE, session) == (202, "")
        assert events(stream, 1) == [("message", NOTE)]
        stream.connection.close()
        assert mock.post(DONE, session) == (202, ""), "by now it knows that the stream is gone"
        assert mock.post(roots, session) == (202, "")
        stream = mock.ask("GET", headers=session)
        assert events(stream, 1) == [("message", other)]
        stream.connection.close()


def test_a_session_has_one_stream_aside_the_newest(mock):
    session = initialized(mock)
    first, second = (mock.ask("GET", headers=session) for _ in range(2))
    assert first.read() == b""
    assert mock.post(DONE, session) == (202, "")
    assert events(second, 1) == [("message", NOTE)]
    for stream in (first, second):
        stream.connection.close()


def test_what_a_broken_answer_had_not_said_comes_on_the_next_stream(tmp_path):
    text = f"> {INITIALIZE}\n< {INITIALIZED}\n> {call(1, 'ask')}\n< {SAMPLE}\n> {GREEN}\n< {result(1, 'green')}"
    with served(capture(tmp_path / "c.jsonl", text)) as mock:
        session = initialized(mock)
        broken = mock.ask("POST", call(5, "ask"), session)
        assert events(broken, 1) == [("message", SAMPLE)]
        broken.connection.close()
        stream = mock.ask("GET", headers=session)
        assert mock.post(GREEN, session) == (202, "")
        assert events(stream, 1) == [("message", result(5, "green"))]
        stream.connection.close()
        assert mock.end() == (0, "")


def test_a_session_that_was_ended_is_not_there_any_more(mock):
    session = initialized(mock)
    stream = mock.ask("GET", headers=session)
    for status in (200, 404):
        ended = mock.ask("DELETE", headers=session)
        assert ended.status == status
        ended.connection.close()
    assert stream.read() == b""
    stream.connection.close()
    assert mock.post(DONE, session)[0] == 404


STATED = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":1}'


def test_two_clients_that_use_the_same_ids_at_once_are_kept_apart(tmp_path):
    slow = f"@1 > {call(1, 'slow', meta=STATED)}\n@1 < {PROGRESS}\n@1.3 < {result(1, 'slow')}"
    text = f"{slow}\n@2 > {call(2, 'a', meta=STATED)}\n@2 < {result(2, 'A')}"
    with served(capture(tmp_path / "c.jsonl", text), options=["--pace", "recorded"]) as mock:
        one = mock.ask("POST", call(7, "slow", meta=STATED))
        assert mock.post(call(7, "a", meta=STATED)) == (200, result(7, "A"))
        assert told(one.read().decode())[-1] == json.loads(result(7, "slow"))
        one.connection.close()


def test_many_calls_at_once_have_their_own_answers(mock):
    session = initialized(mock)

    def ask(number):
        text = mock.post(call(number, "slow", meta=f'{{"progressToken":{number}}}'), session)[1]
        note, answer = told(text)
        return note["params"]["progressToken"], answer["id"]

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(100))) == [(number, number) for number in range(100)]


def test_what_is_no_http_is_refused_without_a_word_on_stderr(mock):
    many = b"GET /mcp HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n"
    for raw, status in ((b"nonsense\r\n\r\n", b" 400"), (many, b" 431"), (b"\x16\x03\x01" * 10, b" 400")):
        with socket.create_connection(mock.address) as client:
            client.sendall(raw)
            assert client.recv(12)[8:] == status
    assert mock.end() == (0, "")


def test_the_server_asks_on_the_stream_of_its_cause(tmp_path):
    text = f"> {call(1, 'ask')}\n< {SAMPLE}\n> {GREEN}\n< {result(1, 'green')}"
    with served(capture(tmp_path / "c.jsonl", text)) as mock:
        stream = mock.ask("POST", call(5, "ask"))
        assert events(stream, 1) == [("message", SAMPLE)]
        assert mock.post(GREEN) == (202, "")
        assert events(stream, 1) == [("message", result(5, "green"))]
        assert stream.read() == b""
        stream.connection.close()
        assert mock.end() == (0, "")


def test_what_is_not_there_has_the_status_that_says_so(mock):
    session = {"Mcp-Session-Id": "another"}
    assert mock.post(DONE, session)[0] == 404
    for method, headers, status in (
        ("GET", session, 404),
        ("DELETE", session, 404),
        ("DELETE", initialized(mock), 200),
        ("PUT", {}, 405),
        ("GET", {"Accept": "application/json"}, 404),
        ("GET", {"MCP-Protocol-Version": "2026-07-28"}, 405),
    ):
        response = mock.ask(method, headers=headers)
        assert response.status == status
        response.connection.close()


def test_what_is_no_message_or_of_a_web_page_is_refused(mock):
    """A-06."""
    assert mock.post("nonsense") == (400, "mcpspy: this is not JSON (error at character 0)\n")
    for headers in ({"Host": "rebound.example"}, {"Origin": "http://page.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert mock.post(call(7, "quick"), headers)[0] == 403


def test_misses_of_all_clients_are_listed_at_the_end(mock):
    session = initialized(mock)
    status, text = mock.post(call(7, "other"), session)
    assert (status, '"code":-32603' in text) == (200, True)
    code, err = mock.end()
    assert (code, err.count("\n")) == (1, 1)
    assert err.startswith("mcpspy: tools/call other was not recorded; the nearest is #9")


def test_at_the_recorded_pace_lines_come_by_themselves(tmp_path):
    text = f"@1 > {call(1, 'a', meta=TOKEN)}\n@1.05 < {PROGRESS}\n@1.1 < {result(1, 'A')}"
    with served(capture(tmp_path / "c.jsonl", text), options=["--pace", "recorded"]) as mock:
        _, text = mock.post(call(1, "a", meta=TOKEN))
        assert [it.get("method", it.get("id")) for it in told(text)] == ["notifications/progress", 1]
