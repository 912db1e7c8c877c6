"""Frames too large to decode (A-03): their ends are shown and used for pairing, and no side is blamed."""

import json

import pytest

from mcpspy.capture.records import Close, Frame, Omitted, Open
from mcpspy.capture.scan import LARGEST
from mcpspy.timeline import final_rows
from tests import transcript
from tests.rules.examples import judged
from tests.transcript import OPENS

PEER = '{"name":"x","version":"1"}'
AGREED = '"protocolVersion":"2025-06-18"'
CLIENT = f'"clientInfo":{PEER},"capabilities":{{}}'
INITIALIZE = (
    (1, f'{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{{AGREED},{CLIENT}}}}}'),
    (2, f'{{"jsonrpc":"2.0","id":0,"result":{{{AGREED},"capabilities":{{"tools":{{}}}},"serverInfo":{PEER}}}}}'),
    (1, '{"jsonrpc":"2.0","method":"notifications/initialized"}'),
)  # fmt: skip
CALL = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big"}}'
MIDDLE = "x" * 1000


def frame(n, ch, text, large=False):
    raw = text.encode()
    omitted = Omitted(LARGEST + 1000, raw[-300:]) if large else None
    return Frame(n, ch, n * 1_000_000, raw[:300] if large else raw, omitted=omitted)


def session(*frames):
    """Return the records of a session with a handshake; each frame is a channel, a text, and whether it is large."""
    return [*OPENS, *(frame(n, *it) for n, it in enumerate((*INITIALIZE, *frames), 1))]


def rows(records):
    return {row.n: row for row in final_rows(lambda: records, live=False)}


ANSWERS = {
    "the id first": '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}',
    "the id last": '{"result":{"content":[{"type":"text","text":"%s"}]},"jsonrpc":"2.0","id":1}',
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_whose_id_is_found_belongs_to_its_request(answer):
    records = session((1, CALL), (2, answer.replace("%s", MIDDLE), True))
    found = rows(records)
    assert [(found[n].status, found[n].request, found[n].response) for n in (4, 5)] == [("not-decoded", 4, 5)] * 2
    assert (found[5].kind, found[5].method, found[5].name, found[5].value) == ("result", "tools/call", "big", None)
    assert found[5].size == LARGEST + 1000
    assert found[5].raw.startswith(b"{")
    assert found[5].tail.endswith(b"}")
    assert judged(records) == []


def test_an_answer_whose_id_is_not_found_leaves_nothing_unanswered_or_orphaned():
    records = session((1, CALL), (2, "[%s]".replace("%s", MIDDLE), True))
    found = rows(records)
    assert (found[4].status, found[5].kind) == ("not-decoded", "undecoded")
    assert judged(records) == []


def test_a_request_is_known_by_its_ends_and_its_answer_is_no_orphan():
    """The answering side is not blamed for an unknown progress token: the token may be in the part not decoded."""
    call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big","arguments":{"a":"%s"}}}'.replace(
        "%s", MIDDLE
    )
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}'
    answer = '{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    records = session((1, call, True), (2, progress), (2, answer))
    found = rows(records)
    assert [(found[n].method, found[n].name, found[n].status) for n in (4, 6)] == [("tools/call", "big", "ok")] * 2
    assert judged(records) == []


def test_after_a_listing_that_was_not_decoded_nothing_is_called_unknown():
    listing = '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"%s"}]}}'.replace("%s", MIDDLE)
    more = '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"c"}}'
    page = '{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}'
    records = session((1, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'), (2, listing, True), (1, more), (2, page))
    assert judged(records) == []


def test_the_only_finding_is_about_the_size():
    large = frame(5, 2, ANSWERS["the id first"].replace("%s", MIDDLE), True)
    large = Frame(5, 2, large.t, large.raw, omitted=Omitted(11 << 20, large.omitted.tail))
    (finding,) = judged([*session((1, CALL)), large])
    assert finding.rule == "framing/oversize"
    assert "11,534,336 bytes" in finding.message


HEAD = {"method": "POST", "target": "/mcp", "headers": [["accept", "application/json, text/event-stream"]]}
REPLY = {"status": 200, "headers": [["content-type", "text/event-stream"]]}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
@pytest.mark.parametrize("framing", ["sse", "body", "message"])
def test_over_http_it_is_the_same(framing, answer):
    text = answer.replace("%s", MIDDLE)
    text = f"event: message\nid: 7\ndata: {text}\n" if framing == "sse" else text
    records = [
        Open(2, 1, 0, "client", "request", "body", head=HEAD),
        frame(3, 1, CALL),
        Open(4, 2, 4_000_000, "server", "response", framing, 1, head=REPLY),
        frame(5, 2, text, True),
        Close(6, 2, 6_000_000, "eof"),
    ]
    found = rows(records)
    assert [(found[n].status, found[n].request) for n in (3, 5)] == [("not-decoded", 3)] * 2
    assert not [it for it in judged(records) if it.blame == "server"]


def test_a_large_line_of_stderr_and_a_large_page_are_shown_by_their_ends():
    records = [
        *OPENS,
        frame(1, 3, "a" * 1000, True),
        Open(2, 4, 0, "client", "request", "body", head={"method": "PUT", "target": "/", "headers": []}),
        frame(3, 4, "b" * 1000, True),
    ]
    stderr, page = transcript.rows(records)
    assert (stderr.kind, page.kind) == ("stderr", "http")
    assert {(row.size, len(row.raw), len(row.tail)) for row in (stderr, page)} == {(LARGEST + 1000, 300, 300)}


def test_a_request_in_json_has_its_ends():
    from mcpspy.capture.reader import parse_header
    from mcpspy.timeline import to_json
    from tests.capture.test_reader import HEADER

    row = rows(session((1, CALL), (2, ANSWERS["the id first"].replace("%s", MIDDLE), True)))[5]
    told = json.loads(to_json(row, parse_header(json.dumps(HEADER).encode())))
    assert (told["status"], told["size"]) == ("not-decoded", LARGEST + 1000)
    assert told["text"].startswith('{"jsonrpc"')
    assert told["tail"].endswith("}}")
    assert "message" not in told
