"""The kind, status and exchange of each line, computed once and stored in columns of a few bytes."""

from itertools import chain
from operator import attrgetter

import pytest

from mcpspy.browse.columns import Columns
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End, Frame, Gap, Gates, Signal
from mcpspy.conversation import bounds
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import kind_of, sender_of
from mcpspy.timeline import Row, final_rows
from tests.conversation.http import Exchange, request
from tests.timelines import CAPTURES
from tests.transcript import records

OUTCOMES = """
    > {"id":1,"method":"tools/call","params":{"name":"a"}}
    > {"id":"x","method":"ping"}
    > {"id":3,"method":"resources/read","params":{"uri":"u"}}
    > {"method":"notifications/cancelled","params":{"requestId":3}}
    < {"id":1,"result":{"isError":true}}
    < {"id":9,"result":{}}
    < | not JSON
    ! ready
"""


GATHERED = ("kind", "sender", "revision", "method", "name", "session", "size", "t", "status", "latency")


def folded(all_records, *, live=False):
    """Return the columns of some records, and the lines that were reported as changed."""
    columns, conversation, changed = Columns(), Conversation(), []
    columns.extend(max((record.n for record in all_records), default=0))
    for record in all_records:
        for event in chain(conversation.feed(record), conversation.decided):
            changed += columns.add(event)
    for outcome in [] if live else conversation.end():
        changed += columns.add(outcome)
    return columns, changed + columns.end(conversation.pending(), live=live)


def test_a_line_tells_what_it_is_and_how_its_exchange_went():
    columns, changed = folded(records(OUTCOMES))
    known = [columns.at(n, Row) for n in range(1, 9)]
    assert [
        (it.kind, it.sender, it.method or "", it.name or "", str(it.id or ""), it.status or "") for it in known
    ] == [
        ("request", "client", "tools/call", "a", "1", "tool-error"),
        ("request", "client", "ping", "", '"x"', "unanswered"),
        ("request", "client", "resources/read", "u", "3", "cancelled"),
        ("notification", "client", "notifications/cancelled", "", "", ""),
        ("result", "server", "tools/call", "a", "1", "tool-error"),
        ("result", "server", "", "", "9", ""),
        ("invalid", "server", "", "", "", ""),
        ("stderr", "server", "", "", "", ""),
    ]
    assert known[6].text.startswith("not JSON")
    assert (known[0].request, known[0].response, known[0].latency) == (1, 5, 4_000_000)
    assert (known[4].request, known[4].response, known[4].latency) == (1, 5, 4_000_000)
    assert (columns.partner(1), columns.partner(5), columns.partner(2), columns.partner(6)) == (5, 1, 0, 0)
    assert changed == [3, 3, 1, 2, 2, 3], "status and outcome: a cancellation, a response, and at the end what has none"


def test_while_a_capture_grows_a_request_is_pending():
    columns, _ = folded(records(OUTCOMES), live=True)
    assert columns.at(2, Row).status == "pending"


def test_a_line_that_nothing_came_of_is_empty():
    columns, _ = folded([])
    columns.extend(3)
    assert (columns.kind(3), columns.time(3), columns.partner(3)) == ("", None, 0)


def test_a_batch_is_one_line_and_its_requests_have_their_statuses():
    columns, _ = folded(
        records("""
            > [{"id":1,"method":"a"},{"id":2,"method":"b"}]
            < {"id":2,"result":{}}
        """)
    )
    assert (columns.kind(1), columns.partner(2)) == ("batch", 1)
    assert [columns.exchanges.status(ordinal) for ordinal in (0, 1)] == ["unanswered", "ok"]


def test_what_a_forgotten_session_has_asked_is_unanswered_at_the_end(monkeypatch):
    """A-02: the rows of `show` and those of the TUI agree."""
    monkeypatch.setattr(bounds, "SESSIONS", 1)
    monkeypatch.setattr(bounds, "RESTING", 2)
    http = Exchange()
    for number in range(5):
        http.ask(request(number, "tools/list"), mcp_session_id=f"s{number}")
    columns, _ = folded(http.records)
    rows = [row for row in final_rows(lambda: http.records, live=False) if row.kind == "request"]
    assert {columns.at(row.n, Row).status for row in rows} == {row.status for row in rows} == {"unanswered"}


@pytest.mark.parametrize(
    ("event", "kind", "sender"),
    [
        (Frame(1, 3, 0, b"x"), "stderr", "server"),
        (Gap(1, 0, 1, "full"), "gap", "mcpspy"),
        (Signal(1, 0, 15, "self", forwarded=True), "signal", "mcpspy"),
        (Gates(1, 0, (), "file"), "gates", "mcpspy"),
        (End(1, 0, 0), "end", "mcpspy"),
    ],
)
def test_what_is_no_message_has_a_kind_and_a_sender(event, kind, sender):
    assert (kind_of(event), sender_of(event)) == (kind, sender)


@pytest.mark.parametrize("capture", sorted(CAPTURES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_columns_tell_the_same_as_the_final_rows(capture):
    """For every golden capture."""
    source = Capture(str(capture))
    columns, _ = folded(list(source.records()))
    for row in final_rows(source.records, live=False):
        known = columns.at(row.n, Row)
        if known.kind == "batch":
            continue
        assert (known.t, known.kind, known.sender, known.size) == (row.t, row.kind, row.sender, row.size)
        assert (known.id, known.revision, known.session) == (row.id, row.revision, row.session)
        assert (known.status, known.latency) == (row.status, row.latency)
        if row.kind != "invalid":
            assert (known.method, known.name) == (row.method, row.name)


def test_a_retry_names_the_answer_that_it_goes_on_from():
    asks = '{"resultType":"input_required","requestState":"s","inputRequests":{"a":{"method":"roots/list"}}}'
    stated = '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    columns, _ = folded(
        records(f"""
        > {{"id":1,"method":"tools/call","params":{{"name":"a",{stated}}}}}
        < {{"id":1,"result":{asks}}}
        > {{"id":2,"method":"tools/call","params":{{"name":"a","requestState":"s",{stated}}}}}
        < {{"id":2,"result":{{"resultType":"input_required"}}}}
    """)
    )
    assert [columns.continues(n) for n in range(1, 5)] == [0, 0, 2, 0]
    assert [columns.inputs(n) for n in range(1, 5)] == [None, {"roots/list"}, None, set()]


def test_a_row_takes_few_bytes():
    """39 bytes for a line, 14 for a request."""
    columns, _ = folded(records(OUTCOMES))
    columns.extend(10_000)
    arrays = [value for value in vars(columns).values() if isinstance(value, bytearray) or hasattr(value, "itemsize")]
    assert sum(len(value) * getattr(value, "itemsize", 1) for value in arrays) <= 40 * 10_001


def test_progress_is_kept_until_the_response():
    text = """
    > {"id":1,"method":"a","params":{"_meta":{"progressToken":"t"}}}
    > {"id":2,"method":"a","params":{"_meta":{"progressToken":"u"}}}
    < {"method":"notifications/progress","params":{"progressToken":"t","progress":1,"total":4}}
    < {"method":"notifications/progress","params":{"progressToken":"u","progress":true}}
    < {"method":"notifications/progress","params":{"progressToken":"u","progress":2,"total":null}}
    """
    assert folded(records(text))[0].exchanges.progress == {0: (1.0, 4.0), 1: (2.0, None)}
    text += '< {"id":1,"result":{}}\n< {"method":"notifications/progress","params":{"progressToken":"t","progress":4}}'
    assert folded(records(text))[0].exchanges.progress == {1: (2.0, None)}


def test_several_lines_tell_at_once_what_each_tells():
    columns, _ = folded(records(OUTCOMES))
    lines = [8, 1, 2, 3, 5, 4, 6]
    for name in GATHERED:
        codes, value = columns.gather(name, lines)
        get = attrgetter(*((name, "outcome", "expected") if name == "status" else (name,)))
        assert [value(code) for code in codes] == [get(columns.at(n, Row)) for n in lines], name
    assert columns.gather("method", [7, 1, 0])[0] == [None, codes_of(columns, 1), None], "no message, and not known yet"
    assert columns.gather("id", lines) is None
    assert columns.gather("method", [1]) is None


def codes_of(columns, n):
    return columns.gather("method", [n, n])[0][0]


def test_a_batch_and_what_a_gate_did_something_to_have_to_be_asked_themselves():
    batch = '> [{"id":1,"method":"a"},{"id":2,"method":"b"}]\n> {"id":3,"method":"a"}'
    assert folded(records(batch))[0].gather("method", [1, 2])[0][0] is None
    found = records('> {"id":1,"method":"a"}\n< {"id":1,"result":{}}')
    frame = next(it for it in found if isinstance(it, Frame))
    frame.by, frame.sent = "gate slow", b'{"id":1,"method":"b"}'
    columns, _ = folded(found)
    assert columns.exchanges.acts
    assert columns.gather("status", [1, 2])[0] == [None, None]
    assert None not in columns.gather("method", [1, 2])[0]
