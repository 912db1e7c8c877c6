"""The text report."""

import pytest

from mcpspy.capture.records import Frame, Open
from mcpspy.report.checked import ReportOptions, check
from mcpspy.report.findings import FORMATS
from tests.conversation.http import Exchange
from tests.findings import CAPTURES
from tests.report.captures import faulty, fine, hostile
from tests.report.findings import told as report
from tests.transcript import begin, capture, finish


def told(*paths, colour=False):
    return report("text", *paths, colour=colour).splitlines()


def test_the_frames_in_which_something_was_found_are_told_in_their_order(tmp_path):
    lines = told(faulty(tmp_path / "a"), fine(tmp_path / "b"))
    assert [" ".join(text.split()) for text in lines if text] == [
        f"{tmp_path}/a · 2025-06-18 · 9 frames",
        '#10 0.006 → tools/call echo words="hello" id 2 2025-06-18',
        "✗ error tools/arguments by the client, see #9",
        'arguments of echo violate its inputSchema: "text" is a required property',
        '/params/arguments: {"words":"hello"}',
        "https://modelcontextprotocol.io/specification/2025-06-18/server/tools#tool",
        "#11 0.007 ← tools/call echo hello id 2 ok 1.0 ms 53 B",
        "✗ error schema/invalid by the server, see #10",
        'CallToolResult: expected an array, got "hello"',
        '/result/content: "hello"',
        "https://modelcontextprotocol.io/specification/2025-06-18/schema",
        "#12 0.008 → tools/find id 3 2025-06-18",
        "! warning schema/unknown-method by the client",
        'no revision has the method "tools/find"; the nearest: tools/list, tools/call',
        '/method: "tools/find"',
        "https://modelcontextprotocol.io/specification/2025-06-18/schema",
        "#13 0.009 ← tools/find -32601 Method not found id 3 error 1.0 ms 89 B",
        "· info jsonrpc/extra-member by the server, see #12",
        '"trace" is not a member of a JSON-RPC message',
        '/trace: "x"',
        "https://www.jsonrpc.org/specification#request_object",
        "2 errors, 1 warning, 1 info in 11 frames of 2 captures",
    ]


def test_where_nothing_is_found_one_line_says_so(tmp_path):
    assert told(fine(tmp_path / "a")) == ["0 errors, 0 warnings, 0 info in 2 frames of 1 capture"]


def test_nothing_that_a_peer_says_reaches_the_terminal_as_it_is(tmp_path):
    """F-08."""
    lines = told(hostile(tmp_path / "a"))
    assert len(lines) > 20
    assert all(text.replace("\ufffe", "").isprintable() for text in lines)
    assert max(map(len, lines)) < 700


def test_colours_are_those_of_the_severities(tmp_path):
    lines = told(faulty(tmp_path / "a"), colour=True)
    marked = [text[:5] for text in lines if "\x1b" in text and "http" not in text]
    assert marked == ["\x1b[31m", "\x1b[31m", "\x1b[33m", "\x1b[90m"]


def test_a_frame_in_pieces_is_fetched_whole(tmp_path):
    writer = begin(tmp_path / "a")
    writer.open(1, 0, "client", "stdin", "lines")
    raw = b'{"jsonrpc":"2.0","id":1,"method":"ping","extra":"' + b"x" * 100_000 + b'"}'
    writer.frame(1, 1, raw[:65536], more=True, cut=False)
    writer.frame(1, 2, raw[65536:], more=False, cut=False)
    finish(writer)
    lines = told(str(tmp_path / "a"))
    assert any("→ ping" in text for text in lines)
    assert max(map(len, lines)) < 300


@pytest.mark.parametrize("depth", [300, 900])
def test_a_value_of_any_depth_is_shown(tmp_path, depth):
    writer = begin(tmp_path / "a")
    writer.open(1, 0, "client", "stdin", "lines")
    nested = b"[" * depth + b"]" * depth
    writer.frame(1, 1, b'{"jsonrpc":"2.0","id":1,"method":"ping","x":' + nested + b"}", more=False, cut=False)
    finish(writer)
    assert any("jsonrpc/extra-member" in text for text in told(str(tmp_path / "a")))


def test_the_report_does_not_open_the_capture_again(tmp_path):
    path = faulty(tmp_path / "a")
    checked = check(path, show=True)
    expected = told(path)
    (tmp_path / "a").unlink()
    assert "".join(FORMATS["text"].write([checked], ReportOptions())).splitlines() == expected


def test_a_finding_over_http_is_told_with_the_request_that_it_answers(tmp_path):
    exchange = Exchange()
    for n in range(1, 4):
        asked = exchange.ask({"jsonrpc": "2.0", "id": n, "method": "tools/list"}, mcp_session_id="s")
        exchange.answer(asked, {"jsonrpc": "2.0", "id": n, "result": {"tools": []}, "extra": n})
    path = tmp_path / "a"
    writer = begin(path, transport="http")
    for record in exchange.records:
        if isinstance(record, Open):
            fields = {"head": record.head, "peer": record.peer, "answers": record.answers}
            given = {name: value for name, value in fields.items() if value is not None}
            writer.open(record.ch, record.t, record.sender, record.role, record.framing, given)
        elif isinstance(record, Frame):
            writer.frame(record.ch, record.t, record.raw, more=False, cut=False)
        else:
            writer.close(record.ch, record.t, record.how)
    finish(writer, 10**9)
    titles = [" ".join(text.split()) for text in told(str(path)) if text.startswith("#")]
    assert len(titles) == 3
    assert all("← tools/list no tools id" in text and " ok " in text for text in titles)


def test_the_findings_of_a_frame_stand_below_it_once(tmp_path):
    batch = ",".join(['{"jsonrpc":"2.0","method":"no/such","x":1}'] * 50)
    lines = told(capture(str(tmp_path / "a"), f"< [{batch}]"))
    assert sum(text.startswith("#") for text in lines) == 50
    assert sum("schema/unknown-method" in text for text in lines) == 50
    assert sum("jsonrpc/extra-member" in text for text in lines) == 50


def test_an_answer_on_another_stream_is_shown_with_its_request():
    """Over HTTP+SSE (2024-11-05) the answer arrives on a stream that an earlier request opened."""
    lines = told(CAPTURES / "sse-python1-2024-11-05.jsonl", CAPTURES / "field-sse.jsonl")
    assert any("tools/list" in text and "← tools/list" in text for text in lines)
    assert not any("(no request seen)" in text for text in lines)


def test_the_findings_that_are_left_keep_their_frames(tmp_path):
    checked = check(faulty(tmp_path / "a"), show=True).without(["schema/invalid"])
    lines = "".join(FORMATS["text"].write([checked], ReportOptions())).splitlines()
    assert [text.split()[0] for text in lines if text.startswith("#")] == ["#10", "#12", "#13"]
    assert lines == [text for text in lines if "#11 " not in text]
