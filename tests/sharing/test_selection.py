"""A filtered copy of a capture: lines keep their numbers, and nothing of the other lines is in the copy."""

import json

import pytest

from mcpspy.capture.reader import Capture, Records
from mcpspy.filters import parse
from mcpspy.report.problems import explain
from mcpspy.sharing.selection import LEFT_OUT, selected, shown_filter, wanted_lines
from mcpspy.timeline import final_rows
from tests.sharing.scrub.captures import call, frame, header, opened, written
from tests.timelines import CAPTURES, GOLDEN
from tests.transcript import capture

SESSION = """
    = 2025-06-18
    > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one","arguments":{"a":"apple"}}}
    > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"two","arguments":{"a":"banana"}}}
    ! cherry
    < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"banana split"}]}}
    < {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"apple pie"}]}}
    > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"three","arguments":{"a":"damson"}}}
"""

ONCE = {"schema/deprecated"}
"""Rules with one finding per session, at its first frame; in a filtered copy, the first frame may be another one."""


def cut(path, wanted):
    """Return all lines of a capture, and the lines that a filter keeps."""
    read = Capture(str(path))
    with open(path, "rb") as file:
        lines = file.readlines()
    rows = wanted_lines(read.records, parse(wanted, read.header.started), live=False)
    return lines, list(selected(lambda: iter(lines), rows))


def folded(lines):
    """Return the rows of some lines of a capture."""

    def records():
        decoder = Records()
        yield from decoder.feed(b"".join(lines))
        yield from decoder.end()

    return list(final_rows(records, live=False))


def test_a_frame_that_fits_stays_with_the_other_half_of_its_exchange_and_the_handshake(tmp_path):
    lines, left = cut(capture(tmp_path / "a.jsonl", SESSION), "name:one")
    rows = folded(left)
    assert [(row.n, row.kind) for row in rows if row.method == "tools/call"] == [(8, "request"), (12, "result")]
    assert [row.method for row in rows[:3]] == ["initialize", "initialize", "notifications/initialized"]
    assert [row.text for row in rows if row.kind == "gap"] == [f"3 lost: {LEFT_OUT}", f"1 lost: {LEFT_OUT}"]
    assert [row.revision for row in rows if row.name == "one"] == ["2025-06-18"] * 2
    assert len(left) == len(lines)
    text = b"".join(left)
    assert b"apple pie" in text
    assert not any(word in text for word in (b"banana", b"cherry", b"damson"))
    assert rows[-1].kind == "end"


def test_a_response_that_fits_brings_its_request(tmp_path):
    _, left = cut(capture(tmp_path / "a.jsonl", SESSION), '"banana split"')
    assert [row.n for row in folded(left) if row.name == "two"] == [9, 11]


def test_a_request_without_an_answer_is_not_called_unanswered_where_lines_are_left_out(tmp_path):
    path = capture(tmp_path / "a.jsonl", SESSION + "! later\n")
    assert [row.status for row in folded(cut(path, "")[1]) if row.name == "three"] == ["unanswered"]
    rows = folded(cut(path, "name:three")[1])
    assert [(row.status, row.findings) for row in rows if row.name == "three"] == [("pending", ())]


FAILURES = """
    = 2025-06-18
    > 1 tools/list
    < 1 = {"tools":[{"name":"one","inputSchema":{"type":"object","required":["city"]}}]}
    > 2 tools/call {"name":"one","arguments":{}}
    ! apart
    < 2 ! {"code":-32602,"message":"no city"}
    > 3 tools/call {"name":"one","arguments":{"city":"Oslo"}}
    > notifications/cancelled {"requestId":3,"reason":"the user stopped it"}
    < 3 ! {"code":0,"message":"stopped"}
    > 4 ping
    < 4 = {}
"""


def over_http(path):
    """Write a capture of two calls over HTTP, of which a gateway refuses the first one; return its path."""
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    html, json_type = [["content-type", "text/html"]], [["content-type", "application/json"]]
    post = {"method": "POST", "target": "/mcp", "headers": json_type}
    bad = {"status": 504, "reason": "Gateway Timeout", "headers": html}
    good = {"status": 200, "reason": "OK", "headers": json_type}
    return written(
        path,
        header(transport="http"),
        opened(1, "client", "request", "body", head=post),
        frame(1, call({}) | {"id": 1}),
        opened(2, "server", "response", "body", head=bad, answers=1),
        frame(2, "<title>Gateway</title>"),
        {"kind": "close", "ch": 2, "t": 2, "how": "eof"},
        opened(3, "client", "request", "body", head=post),
        frame(3, ping),
        opened(4, "server", "response", "body", head=good, answers=3),
        frame(4, {"jsonrpc": "2.0", "id": 2, "result": {}}),
        {"kind": "end", "t": 9},
    )


def on_stdio(path):
    """Write a capture with a call that failed and one that a person cancelled; return its path."""
    return capture(path, FAILURES)


@pytest.mark.parametrize(
    ("session", "wanted", "kept", "causes"),
    [
        (on_stdio, "id:2", b"required", ['arguments of one violate its inputSchema: "city" is a required property']),
        (on_stdio, "id:3", b"the user stopped it", []),
        (on_stdio, "id:4", b"", []),
        (
            over_http,
            "id:1",
            b"Gateway<",
            ["504 Gateway Timeout came from a web server, as an HTML page, probably not from the server itself"],
        ),
        (over_http, "id:2", b"", []),
    ],
)
def test_what_explains_a_failure_stays_with_it_and_only_with_it(tmp_path, session, wanted, kept, causes):
    _, left = cut(session(tmp_path / "a.jsonl"), wanted)
    text = b"".join(left)
    explaining = (b"required", b"the user stopped it", b"Gateway<")
    assert [it for it in explaining if it in text] == [it for it in explaining if it == kept]
    assert b"apart" not in text
    (tmp_path / "b.jsonl").write_bytes(text)
    problems = explain(str(tmp_path / "b.jsonl")).problems
    assert [problem.cause.text for problem in problems] == causes


def test_all_stays_under_a_filter_that_fits_all(tmp_path):
    lines, left = cut(capture(tmp_path / "a.jsonl", SESSION), "")
    assert left == lines


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
@pytest.mark.parametrize("wanted", ["method:tools/call", "kind:stderr or kind:http", "name:*e*", "id:1,2,3"])
def test_what_is_left_of_a_golden_capture_reads_as_it_did(path, wanted):
    """Numbers, kinds and pairs stay the same, and there are no new findings and failures."""
    lines, left = cut(path, wanted)
    assert len(left) == len(lines)
    before = {(row.n, row.part): row for row in folded(lines)}
    fits = parse(wanted, Capture(str(path)).header.started)
    after = {(row.n, row.part): row for row in folded(left) if row.kind != "gap"}
    assert {address for address, row in before.items() if fits(row)} <= set(after)
    for address, row in after.items():
        old = before[address]
        assert (row.kind, row.method, row.name, row.raw, row.request, row.response) == (
            old.kind, old.method, old.name, old.raw, old.request, old.response,
        )  # fmt: skip
        assert {finding.rule for finding in row.findings} - ONCE <= {finding.rule for finding in old.findings}
        assert row.failed <= old.failed


def piece(ch, raw, **more):
    return json.dumps({"kind": "frame", "ch": ch, "t": 1, "raw": raw, **more}, separators=(",", ":")).encode() + b"\n"


@pytest.fixture
def head(tmp_path):
    """The lines of a capture before its first frame."""
    with open(capture(tmp_path / "a.jsonl", "! x"), "rb") as file:
        return file.readlines()[:4]


def test_a_frame_in_pieces_stays_whole_and_no_gap_comes_between_them(head):
    pieces = piece(1, '{"a', more=True), piece(3, "left"), piece(1, '":"needle"}'), piece(3, "out"), piece(3, "too")
    lines = [*head, *pieces]
    left = list(selected(lambda: iter(lines), {7}))
    rows = folded(left)
    assert [row.raw for row in rows if row.kind != "gap"] == [b'{"a":"needle"}']
    assert [row.text for row in rows if row.kind == "gap"] == [f"2 lost: {LEFT_OUT}"]
    assert not any(b"left" in line and b"raw" in line for line in left[4:])
    assert list(selected(lambda: iter(lines), {6}))[4:] != lines[4:]


def test_a_held_frame_stays_with_its_release_and_one_that_is_left_out_takes_it_along(head):
    release = b'{"kind":"release","t":2,"held":%d,"how":"edited","sent":"secret %d"}\n'
    lines = [*head, piece(1, "one", held=1), piece(1, "two", held=2), release % (1, 1), release % (2, 2)]
    text = b"".join(selected(lambda: iter(lines), {5}))
    assert b"secret 1" in text
    assert b"secret 2" not in text


def test_a_damaged_line_stays_a_gap_without_its_bytes(tmp_path):
    with open(capture(tmp_path / "a.jsonl", SESSION), "rb") as file:
        lines = [*file.readlines(), b'{"kind":"frame","ch":1,"raw":"banana\n', b"\xff\n"]
    left = list(selected(lambda: iter(lines), set()))
    assert b"banana" not in b"".join(left)
    assert [row.text for row in folded(left)][-2:] == ["1 lost: a damaged line"] * 2


def test_an_http_exchange_without_a_frame_that_fits_is_left_out_with_its_heads():
    path = CAPTURES / "http-everything-2025-11-25.jsonl"
    _, left = cut(path, "name:echo")
    rows = folded(left)
    assert {row.name for row in rows if row.method == "tools/call"} == {"echo"}
    channels = {row.channel for row in rows}
    heads = [json.loads(line) for line in left if b'"head"' in line]
    assert all(
        head["ch"] in channels or head.get("answers") in channels or head["ch"] + 1 in channels for head in heads
    )
    assert len(heads) < 20


def test_a_capture_that_grows_meanwhile_is_cut_where_it_ended_first(tmp_path):
    with open(capture(tmp_path / "a.jsonl", SESSION), "rb") as file:
        lines = file.readlines()
    given = iter([lines[:9], lines])
    assert len(list(selected(lambda: iter(next(given)), {8}))) == 9


def test_what_a_filter_looks_for_is_shown_only_if_the_copy_has_it_anyway(tmp_path):
    path = capture(tmp_path / "a.jsonl", SESSION)
    for given, shown in [
        ("name:one status:ok", "name:one status:ok"),
        ("name:t*e or jane", "name:t*e or …"),
        ('"jane@corp.example" -(jane or apple) name:jane*', '… not (… or "apple") name:…'),
        ("session:s3cret,one id:1", "session:…,one id:1"),
        ("time:>1 latency:<5ms kind:error", "time:>1 latency:<5ms kind:error"),
    ]:
        assert shown_filter(parse(given, Capture(path).header.started), path) == shown
