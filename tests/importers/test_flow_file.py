"""Flow files of mitmproxy, and the typed netstrings that they consist of."""

import io
import random

import pytest

from mcpspy.importers.captures import Torn
from mcpspy.importers.flow_file import NEWEST, OLDEST, loads, spans
from tests.each import each
from tests.importers.files import AT, PING, PONG, brought, dumps, fixture, flow, imported, told

SECRET = b"made-up-credential"


def test_a_file_of_mitmdump_is_a_capture_like_a_live_one(tmp_path):
    """I-01."""
    raw = fixture("weather.mitm")
    assert SECRET in raw
    account, [capture] = brought(tmp_path, raw)
    assert (account.read, account.lost, account.fault) == (6, 0, "")
    assert (capture.header.transport, capture.header.url) == ("http", "http://127.0.0.1:18731")
    assert capture.header.started == "2026-11-21T03:49:49.999104Z"
    lines = [line.partition(" ")[2] for line in told(capture)]
    assert lines[0] == "client request: POST /mcp"
    assert lines[1].startswith('client request {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {')
    assert any(line.startswith('server response {"jsonrpc": "2.0", "id": 1, "result": {"tools"') for line in lines)
    events = [line for line in lines if line.startswith("server response event: message")]
    assert [event.count("\n") for event in events] == [2, 3], "an event stream is cut into its events"
    assert "Sunny in Zürich" in events[1]
    assert not any("/about" in line for line in lines), "what is not MCP is not recorded"
    assert lines[-2:] == ["client request: DELETE /mcp", "server response: 204"]
    with open(capture.path, "rb") as file:
        assert SECRET not in file.read()
    assert imported(capture)["approximate"] == ["times of events"]


def test_of_a_streamed_flow_the_bodies_are_said_to_be_missing(tmp_path):
    """I-01."""
    state = flow()
    state["response"]["content"] = None
    _, [capture] = brought(tmp_path, dumps(state))
    assert told(capture) == [
        "0 client request: POST /mcp",
        f"0 client request {PING.decode()}",
        "15 server response: 200",
        "20 gap 1 the file does not hold the body of the response of channel 2",
    ]


@each("version", [OLDEST, NEWEST])
def test_versions_near_the_newest_are_read(tmp_path, version):
    account, captures = brought(tmp_path, dumps(flow(version=version)))
    assert (len(captures), account.fault) == (1, "")


@each("version, name", [(11, "11"), (22, "22"), ([0, 18], "0.18")])
def test_another_version_is_named_and_loses_only_its_flows(tmp_path, version, name):
    """I-01."""
    account, captures = brought(tmp_path, dumps(flow()) + dumps(flow(version=version)))
    assert len(captures) == 1
    assert f"format version {name};" in account.fault
    assert "12 to 21 are read" in account.fault


def test_a_flow_without_an_answer_says_why(tmp_path):
    error = {"msg": "Client disconnected.", "timestamp": AT + 1.5}
    _, [capture] = brought(tmp_path, dumps(flow(response=None, error=error)))
    why = "the file does not hold an answer to the request of channel 1: Client disconnected."
    assert told(capture)[-1] == f"1500 gap 1 {why}"


def test_a_response_that_broke_off_is_cut_and_aborted_by_the_client_that_left(tmp_path):
    state = flow(error={"msg": "Client disconnected.", "timestamp": AT + 1.5})
    _, [capture] = brought(tmp_path, dumps(state))
    assert told(capture)[-2:] == [f"20 server response cut {PONG.decode()}", "20 server response abort"]


def test_a_websocket_is_two_channels_of_messages(tmp_path):
    messages = [[1, True, PING, AT + 1.0, False, False], [1, False, PONG, AT + 1.25, False, False]]
    messages += [[2, False, b"x", AT + 1.5, False, False], [1, False, b"y" * 100_000, AT + 1.5, False, False]]
    closing = {"close_code": 1001, "close_reason": "bye", "closed_by_client": True, "timestamp_end": AT + 2.0}
    state = flow(request=b"", answer=b"", websocket={"messages": messages} | closing)
    state["request"]["method"], state["response"]["status_code"] = b"GET", 101
    _, [capture] = brought(tmp_path, dumps(state))
    assert told(capture)[2:] == [
        f"1000 client ws {PING.decode()}",
        f"1250 server ws {PONG.decode()}",
        "1500 server ws binary x",
        "1500 server ws " + "y" * 100_000,
    ]
    closes = [(record.code, record.reason) for record in capture.records() if getattr(record, "code", None)]
    assert closes == [(1001, "bye")] * 2


def test_each_origin_has_a_capture_and_other_flows_none(tmp_path):
    other = flow()
    other["request"] |= {"host": "other.example", "port": 8443}
    page = flow(request=b"", answer=b"<html>")
    account, captures = brought(tmp_path, b"".join(map(dumps, [flow(), other, page, flow(type="tcp"), flow()])))
    assert [capture.header.url for capture in captures] == ["https://mcp.example.com", "https://other.example:8443"]
    assert (account.read, account.lost) == (5, 0)
    assert [len(told(capture)) for capture in captures] == [8, 4]


def test_the_server_is_called_as_the_client_calls_it(tmp_path):
    state = flow()
    state["request"]["headers"] = [[b"Host", b"[::1]:9000"]]
    state["request"] |= {"host": "10.0.0.1", "port": 9000}
    _, [capture] = brought(tmp_path, dumps(state))
    assert capture.header.url == "https://[::1]:9000"


def test_a_truncated_file_gives_all_that_stands_before(tmp_path):
    """I-01."""
    whole = dumps(flow())
    for size in (1, 5, 100, len(whole) - 1):
        account, captures = brought(tmp_path, whole + whole[:size])
        assert len(captures) == 1
        assert account.fault
    assert account.fault == "it ends inside flow 2: 1 bytes are missing"


def test_a_length_that_is_a_lie_takes_no_memory(tmp_path):
    account, captures = brought(tmp_path, dumps(flow()) + b"999999999999:4:type;")
    assert (len(captures), account.lost) == (1, 0)
    assert account.fault.startswith("it ends inside flow 2: ")


def test_a_damaged_flow_loses_itself_alone(tmp_path):
    """Random bits are flipped; the seed is fixed."""
    whole = dumps(flow())
    chance = random.Random(7)  # noqa: S311 (no secret)
    for turn in range(60):
        damaged = bytearray(whole)
        place = chance.randrange(6, len(whole) - 1)  # the outer length and type stay unchanged
        damaged[place] ^= 1 << chance.randrange(8)
        account, captures = brought(tmp_path / str(turn), whole + bytes(damaged) + whole)
        assert account.read == 3
        lines = [line for capture in captures for line in told(capture)]
        whole_ones = sum(line.endswith(f" client request {PING.decode()}") for line in lines)
        assert whole_ones >= 2, "those before and behind it are there"


VALUES = [None, True, False, 0, -17, 1.5, b"\0\xff", "Zürich", [], [1, [b"x"]], {}, {"a": {"b": [None]}}]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_each_type_is_read_back(value):
    assert loads(dumps(value)) == value


@each(
    "raw",
    [
        b"",
        b"5",
        b"5:abc,",
        b"3:abc",
        b"3:abc?",
        b"-3:abc,",
        b"3:abc,3:abc,",
        b"6:9:abc,,}",
        b"1:x#",
        b"40:" + b"1" * 40 + b"#",
        b"4:1:a,}",
        b"x" * 100,
        b"1" * 5000 + b":",
    ],
)
def test_what_is_none_is_refused(raw):
    with pytest.raises(ValueError):  # noqa: PT011 (the reader only counts such errors)
        loads(raw)


def test_nesting_is_bounded():
    raw = b""
    for _ in range(5000):
        raw = b"%d:%s]" % (len(raw), raw)
    with pytest.raises(ValueError, match="no element"):
        loads(raw)


def test_names_in_bytes_are_names_as_well():
    assert loads(b"8:1:a,1:b;}") == {"a": "b"}


def test_elements_are_found_where_they_lie_and_a_broken_one_is_told():
    file = io.BytesIO(b"1:a,0:~junk")
    found = spans(file)
    assert [next(found), next(found)] == [(0, 4), (4, 3)]
    with pytest.raises(Torn, match="behind flow 2, at byte 7, no flow begins"):
        next(found)
