"""The text report."""

import pytest

from mcpspy.capture.records import Frame, Open
from mcpspy.report.checked import ReportOptions, check
from mcpspy.report.findings import FORMATS
from tests.conversation.http import Exchange
from tests.findings import CAPTURES
from tests.report.captures import faulty, hostile
from tests.report.findings import told as report
from tests.transcript import begin, capture, finish


def told(*paths, colour=False):
    return report("text", *paths, colour=colour).splitlines()


def test_nothing_that_a_peer_says_reaches_the_terminal_as_it_is(tmp_path):
    """F-08."""
    lines = told(hostile(tmp_path / "a"))
    assert len(lines) > 20
    assert all(text.replace("\ufffe", "").isprintable() for text in lines)
    assert max(map(len, lines)) < 700


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
