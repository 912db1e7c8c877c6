"""The timeline shows the result of the fold, however the file grows; before the fold, what each frame alone tells."""

import json
import os
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.check.sessions import write
from mcpspy.browse import timeline
from mcpspy.browse.timeline import OpenCapture, TimelineRow
from mcpspy.capture.reader import Capture
from mcpspy.conversation import model
from mcpspy.conversation.counts import count
from mcpspy.conversation.preview import preview_of_large
from mcpspy.errors import CaptureError
from mcpspy.timeline import final_rows
from tests.capture.test_index import BIG, write_in_pieces
from tests.capture.test_reader import END, FRAME, GAP, OPEN, SIGNAL, file
from tests.each import each
from tests.rules.gate_sessions import TRANSPORTS, save
from tests.rules.test_gate_effects import SCENES
from tests.test_timeline import EVERY_OUTCOME
from tests.timelines import GOLDEN
from tests.transcript import CHANNELS, abandon, begin, capture, descriptor, finish, lines, record

EACH = pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
CHANNELS_OPEN = [
    OPEN,
    {"kind": "open", "ch": 2, "t": 0, "from": "server", "role": "stdout", "framing": "lines"},
    {"kind": "open", "ch": 3, "t": 0, "from": "server", "role": "stderr", "framing": "lines"},
]
OWN = ("invalid", "stderr", "http", "event", "end-of-stream", "gap", "signal", "gates", "end")
"""Kinds of rows that have a text but no method."""


@pytest.fixture
def session():
    """Open sessions, and close them at the end."""
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(closing(OpenCapture(str(path))))


@pytest.fixture
def folded(session):
    """Open a session and read all of it."""
    return lambda path: grow(session(path))


def said(folder, text):
    """Write a capture of a transcript, which may have gaps, and return its path. The first line is record #5."""
    records = [
        {"kind": "gap", "t": t, "lost": int(rest), "why": "no space left on device"}
        if mark == "~"
        else FRAME | {"ch": CHANNELS[mark], "t": t, "raw": rest}
        for mark, t, rest in lines(text)
    ]
    path = folder / "a.jsonl"
    path.write_bytes(file(*CHANNELS_OPEN, *records, END | {"t": 10**10}))
    return str(path)


def grow(found, seconds=1.0):
    """Index and fold the whole file. Some reads without new records release those that wait for their order."""
    for _ in range(7):
        while found.grow(seconds):
            pass
    return found


def indexed(found, monkeypatch):
    """Index the whole file, and fold nothing yet."""
    with monkeypatch.context() as context:
        context.setattr(timeline, "SLICE", 0)
        while found.grow(1.0):
            pass
    return found


def expected(path, *, live=False):
    """Return the final row of each line that has one, by line number, and the numbers of lines with several rows."""
    found = list(final_rows(Capture(str(path)).records, live=live))
    several = Counter(row.n for row in found)
    return {row.n: row for row in found if several[row.n] == 1}, {n for n in several if several[n] > 1}


def agree(found, path, *, live=False):
    """Compare every row with `final_rows`, as a line and as a message. Of a batch, only the kind is compared."""
    single, batches = expected(path, live=live)
    assert sorted(found.index.rows) == sorted(single.keys() | batches)
    for place, n in enumerate(found.index.rows):
        line, messages = found.line(place), found.messages(place)
        if n in batches:
            assert line.kind == "batch"
            assert len(messages) > 1
            continue
        (message,), row = messages, single[n]
        keys = (
            "n kind sender id part method name revision status outcome expected request response latency size raw value"
        )
        for key in keys.split():
            assert getattr(message, key) == getattr(row, key), (n, key)
        assert (message.refused, message.channel, message.t) == (row.refused, row.channel, row.t)
        assert str(row.act) == str(message.act) == str(line.act)
        assert (line.n, line.t, line.kind, line.sender, line.size) == (n, row.t, row.kind, row.sender, row.size)
        for key in ("method", "name", "status", "outcome", "expected", "id", "latency"):
            assert getattr(line, key) == getattr(row, key), (n, key)
        assert line.text.startswith(row.text or "")
        told = row.preview if row.size <= 1 << 16 else preview_of_large(row.raw)
        assert row.kind in OWN or line.text == told
        other = row.response if row.kind == "request" else row.request
        assert found.partner(place) == (None if other is None else found.index.row_of(other))


@EACH
def test_each_row_of_a_golden_capture_is_what_the_fold_says(folded, path):
    found = folded(path)
    assert found.complete
    assert found.progress == 1
    assert found.counts == count(Capture(str(path)).records())
    agree(found, path)
    in_order = [row.n for row in final_rows(Capture(str(path)).records, live=False)]
    assert list(found.index.rows) == list(dict.fromkeys(in_order)), "ends of streams are inserted at their places"


@EACH
def test_before_the_fold_each_row_is_what_its_frame_says(session, path, monkeypatch):
    found = indexed(session(path), monkeypatch)
    single, _ = expected(path)
    for place, n in enumerate(found.index.rows):
        line, messages = found.line(place), found.messages(place)
        row = single[n]
        if found.index.in_pieces(n):
            assert line == TimelineRow(n, 0, "frame", "mcpspy", text="a large one, not read yet")
            continue
        answers = row.kind in ("result", "error")
        assert (line.kind, line.sender, line.size, line.t) == (row.kind, row.sender, row.size, row.t)
        assert line.method == ("…" if answers else row.method)
        assert line.name == (None if answers else row.name)
        assert (line.id, line.status, line.latency, found.partner(place)) == (row.id, None, None, None)
        assert (messages[0].raw, messages[0].value, messages[0].status) == (row.raw, row.value, None)


# The content of rows.

KINDS_OF_IDS = [
    "1",
    "0",
    "-1",
    "1.0",
    '"1"',
    "null",
    "true",
    "12345678901234567890123",
    "9" * 18,
    "9" * 19,
    '"a"',
    "[1]",
]


@pytest.mark.parametrize(
    "text",
    [
        EVERY_OUTCOME,
        """
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        @2 > {"id":2,"method":"ping"}
        @1 < {"id":1,"result":{"protocolVersion":"2025-03-26"}}
        < {"id":2,"result":{}}
        """,
        """
        @1.25 < {"id":1,"result":{}}
        @1.00 > {"id":1,"method":"ping"}
        """,
        """
        < {"id":1,"result":{}}
        < {"id":7,"error":{"code":1,"message":""}}
        @9 > {"method":"notifications/initialized"}
        """,
        """
        > {"id":1,"method":"ping"}
        > {"method":"notifications/cancelled","params":{"requestId":1}}
        < {"id":1,"result":{}}
        """,
        """
        > {"id":1,"method":"ping"}
        ~ 2
        > {"id":2,"method":"ping"}
        """,
        """
        > [{"id":1,"method":"a"},{"id":2,"method":"b"},{"method":"c"}]
        < [{"id":1,"result":{}},{"id":2,"error":{}}]
        > {"id":3,"method":"ping"}
        < {"id":3,"result":{}}
        """,
        """
        < {"id":1,"method":"roots/list"}
        > {"id":1,"method":"ping"}
        > {"id":1,"result":{}}
        < {"id":1,"result":{}}
        """,
        "\n".join(f'> {{"id":{id_},"method":"ping"}}\n< {{"id":{id_},"result":{{}}}}' for id_ in KINDS_OF_IDS),
        '! caf\u00e9\n< | not JSON\n< {}\n< []\n> | 5\n< | \ufeff{"id":1,"method":"x"}\n! ',
    ],
    ids=[
        "every outcome", "a revision that comes late", "a response that was recorded first", "orphans", "cancelled",
        "a gap", "batches", "both sides count", "ids", "no messages",
    ],
)  # fmt: skip
def test_each_row_is_what_the_fold_says(folded, tmp_path, text):
    path = said(tmp_path, text)
    found = folded(path)
    assert found.counts == count(Capture(path).records())
    agree(found, path)


def test_an_id_is_shown_as_it_was_written(folded, tmp_path):
    path = capture(tmp_path / "a.jsonl", "\n".join(f'> {{"id":{id_},"method":"ping"}}' for id_ in KINDS_OF_IDS))
    found = folded(path)
    assert [str(found.line(place).id) for place in range(len(found) - 1)] == KINDS_OF_IDS


def test_a_late_answer_to_initialize_gives_earlier_requests_their_revision(folded, tmp_path):
    """The two pumps may record in either order."""
    found = folded(
        capture(
            tmp_path / "a.jsonl",
            """
            @1 > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
            @3 > {"id":2,"method":"ping"}
            @2 < {"id":1,"result":{"protocolVersion":"2025-03-26"}}
            """,
        )
    )
    assert [found.messages(place)[0].revision for place in range(3)] == ["2025-06-18", "2025-03-26", "2025-03-26"]


def test_request_and_response_lead_to_each_other(folded, tmp_path):
    found = folded(
        capture(
            tmp_path / "a.jsonl",
            """
            > {"id":1,"method":"a"}
            > {"id":2,"method":"b"}
            < {"id":2,"result":{}}
            < {"id":1,"result":{}}
            < {"id":9,"result":{}}
            """,
        )
    )
    assert [found.partner(place) for place in range(len(found))] == [3, 2, 1, 0, None, None]


def test_a_batch_has_all_its_messages_and_what_answers_it_leads_to_it(folded, tmp_path):
    path = capture(
        tmp_path / "a.jsonl",
        """
        > [{"id":1,"method":"a"},{"id":2,"method":"b"}]
        < {"id":1,"result":{}}
        < {"id":2,"result":{}}
        > {"id":3,"method":"c"}
        > {"id":4,"method":"d"}
        < [{"id":3,"result":{}},{"id":4,"error":{}}]
        """,
    )
    found = folded(path)
    agree(found, path)
    assert [row.method for row in found.messages(0)] == ["a", "b"]
    for place, expected in ((0, "2 messages: a, b"), (5, "2 messages: result, error")):
        line = found.line(place)
        assert (line.kind, line.method, line.text, line.severity) == ("batch", None, expected, "error")
    assert [found.partner(place) for place in range(6)] == [None, 0, 0, 5, 5, None]
    assert [found.line(place).status for place in range(6)] == [None, "ok", "ok", "ok", "error", None]
    assert [found.line(place).method for place in range(6)] == [None, "a", "b", "c", "d", None]


@pytest.mark.parametrize(
    "said",
    [
        '> [{"id":1,"method":"a"},{"id":2,"method":"b"}]',
        "! a warning",
        "< | not JSON",
        "< {}",
    ],
)
def test_a_row_without_a_method_says_the_same_before_the_fold_and_after_it(session, tmp_path, monkeypatch, said):
    found = indexed(session(capture(tmp_path / "a.jsonl", said)), monkeypatch)
    before = found.line(0)
    assert before.text
    grow(found)
    assert found.complete
    assert replace(found.line(0), findings=()) == before


# Findings of the rules.


def test_a_row_has_the_worst_of_its_findings_and_late_ones_too(folded, tmp_path):
    said = """
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < | debug
        > {"jsonrpc":"2.0","id":2,"method":"nope","extra":1}
        < {"jsonrpc":"2.0","id":2,"result":{}}
    """
    found = folded(capture(tmp_path / "a.jsonl", said))
    assert [found.line(place).severity for place in range(1, 4)] == ["error", "warning", None]
    (row,) = found.messages(0)
    assert "pairing/unanswered" in {finding.rule for finding in row.findings}
    assert {finding.rule for finding in found.messages(2)[0].findings} == {
        "jsonrpc/extra-member",
        "schema/unknown-method",
    }
    assert (found.found["error"], found.found["info"]) == (1, 2)


# Big frames.


def test_of_a_frame_over_a_megabyte_the_beginning_is_shown(session, tmp_path, monkeypatch):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "")
    big = b'{"id":1,"method":"tools/call","params":{"name":"x","arguments":"%s"}}' % (b"y" * (3 << 20))
    write_in_pieces(writer, 5, big)
    finish(writer)
    found = indexed(session(tmp_path / "a.jsonl"), monkeypatch)
    assert found.line(0).kind == "frame"
    grow(found)
    line, (message,) = found.line(0), found.messages(0)
    assert (line.kind, line.method, line.name, str(line.id), line.size) == ("request", "tools/call", "x", "1", len(big))
    assert (message.kind, message.value, message.size, message.status) == ("request", None, len(big), "unanswered")
    assert big.startswith(message.raw)
    assert (1 << 20) <= len(message.raw) <= (1 << 20) + 65536


@pytest.mark.parametrize(
    ("frame", "kind", "text"),
    [
        (b'[{"id":1,"method":"a"},{"method":"%s"}]', "batch", "a large one"),
        (b'{"%s":1}', "invalid", "neither method nor result nor error: "),
    ],
)
def test_a_frame_over_a_megabyte_that_has_no_method_says_what_it_is(folded, tmp_path, frame, kind, text):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "")
    write_in_pieces(writer, 5, frame % (b"y" * (3 << 20)))
    finish(writer)
    found = folded(tmp_path / "a.jsonl")
    line, (message,) = found.line(0), found.messages(0)
    assert (line.kind, message.kind) == (kind, kind)
    assert line.text.startswith(text)
    assert len(line.text) < 5000


def test_a_frame_in_a_few_pieces_is_shown_whole(folded, tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "")
    write_in_pieces(writer, 5, BIG)
    finish(writer)
    path = tmp_path / "a.jsonl"
    found = folded(path)
    agree(found, path)
    assert found.messages(0)[0].raw == BIG


# Growing.

SESSION = """
    > {"id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
    < {"id":0,"result":{"protocolVersion":"2025-11-25"}}
    > {"id":1,"method":"tools/call","params":{"name":"slow"}}
    ! warming up
    @0.5 < {"id":2,"result":{}}
    @0.4 > {"id":2,"method":"tools/call","params":{"name":"fast"}}
    < | nonsense
    > {"method":"notifications/cancelled","params":{"requestId":1}}
"""


def test_a_session_that_is_written_grows_row_by_row(session, tmp_path, monkeypatch):
    monkeypatch.setattr(timeline, "SLICE", 50)
    path = tmp_path / "a.jsonl"
    writer = begin(path)
    record(writer, "")
    found = session(path)
    for number, (mark, t, rest) in enumerate(lines(SESSION), 1):
        writer.frame(CHANNELS[mark], t, rest.encode(), more=False, cut=False)
        while found.grow(0):  # in the smallest steps
            pass
        assert len(found) == number
        assert not found.complete
    for _ in range(5):  # reads without new records: the session stops waiting for earlier ones
        found.grow(0)
    while found.grow(0):
        pass
    agree(found, path, live=True)
    finish(writer, 10**9)
    while found.grow(0):
        pass
    assert found.complete
    assert not found.grow(1)
    agree(found, path)
    assert found.counts == count(Capture(str(path)).records())


def test_a_request_is_pending_while_its_server_lives_and_unanswered_when_it_was_killed(session, tmp_path):
    path = tmp_path / "a.jsonl"
    writer = begin(path)
    record(writer, '> {"id":1,"method":"a"}\n> {"id":2,"method":"subscriptions/listen"}')
    found = grow(session(path))
    assert [found.line(place).status for place in range(2)] == ["pending", "pending"]
    abandon(writer)
    grow(found)
    assert [found.line(place).status for place in range(2)] == ["unanswered", "pending"]
    assert found.complete
    agree(found, path)


def test_a_session_that_ended_is_not_called_killed_for_an_answer_that_had_no_request(session, tmp_path):
    found = grow(session(capture(tmp_path / "a", '> {"id":1,"method":"a"}\n< {"id":7,"result":{}}')))
    assert found.complete
    assert found.state == "ended"


def test_across_a_line_that_was_torn_by_a_kill_nothing_is_called_unanswered(session, tmp_path):
    """R-01: a request before a gap is never called unanswered."""
    path = tmp_path / "a.jsonl"
    writer = begin(path)
    record(writer, '> {"id":1,"method":"a"}')
    found = grow(session(path))
    os.write(descriptor(writer), b'{"kind":"frame","ch":2,"t":1')
    grow(found)
    assert len(found) == 1
    abandon(writer)
    grow(found)
    assert found.complete
    assert found.line(0).status == "pending"
    assert (found.line(1).kind, found.line(1).text) == ("gap", "1 lost: a damaged line")
    agree(found, path)


def test_a_session_that_is_deleted_keeps_its_rows(session, tmp_path):
    path = capture(tmp_path / "a.jsonl", EVERY_OUTCOME)
    found = session(path)
    os.unlink(path)
    grow(found)
    assert found.index.state == "deleted"
    assert [found.line(place).n for place in range(len(found))] == list(range(5, 16))
    assert found.line(1).status == "ok"


@pytest.mark.parametrize("size", [0, 300])
def test_a_session_that_is_cut_short_keeps_its_rows_without_an_exception(folded, tmp_path, size):
    path = capture(tmp_path / "a.jsonl", EVERY_OUTCOME)
    found = folded(path)
    os.truncate(path, size)
    found.complete = False
    grow(found)
    assert found.index.state == "cut short"
    assert [found.line(place).status for place in range(2)] == ["ok", "ok"]
    for place in range(len(found)):
        found.messages(place)


def test_a_session_that_is_cut_short_before_the_fold_keeps_what_it_has(session, tmp_path):
    path = capture(tmp_path / "a.jsonl", EVERY_OUTCOME)
    found = session(path)
    found.index.grow()
    os.truncate(path, 300)
    assert not found.grow(1)
    for place in range(len(found)):
        assert found.line(place).n
        found.messages(place)


def test_a_session_that_is_overwritten_raises_nothing(folded, tmp_path):
    path = capture(tmp_path / "a.jsonl", EVERY_OUTCOME)
    found = folded(path)
    with open(path, "r+b") as content:
        content.write(file(*[OPEN, FRAME] * 40))
    for place in range(len(found)):
        found.line(place)
        found.messages(place)


def test_what_is_no_capture_is_refused(tmp_path):
    with pytest.raises(CaptureError):
        OpenCapture(str(tmp_path / "none.jsonl"))


# Properties.

ID = st.sampled_from([1, 2, "1", 1.0, None])
MESSAGE = st.one_of(
    st.builds(
        lambda id_, method: {"id": id_, "method": method}, ID, st.sampled_from(["a", "initialize", "tools/call"])
    ),
    st.builds(lambda id_: {"id": id_, "result": {"protocolVersion": "2025-06-18"}}, ID),
    st.builds(lambda id_: {"id": id_, "error": {}}, ID),
    st.builds(lambda id_: {"method": "notifications/cancelled", "params": {"requestId": id_}}, ID),
    st.just({}),
)
RECORD = st.builds(
    lambda ch, t, message: {"kind": "frame", "ch": ch, "t": t, "raw": json.dumps(message)},
    st.integers(1, 3),
    st.integers(0, 3 * 10**9),
    MESSAGE | st.lists(MESSAGE, max_size=3),
) | st.sampled_from([GAP, b"damage\n", FRAME | {"more": True}, FRAME | {"ch": 2}])


@given(st.lists(RECORD, max_size=12))
def test_whatever_is_said_each_row_is_what_the_fold_says(tmp_path_factory, records):
    path = str(tmp_path_factory.mktemp("said") / "a.jsonl")
    with open(path, "wb") as content:
        content.write(file(*CHANNELS_OPEN, *records))
    with closing(OpenCapture(path)) as found:
        grow(found)
        assert found.complete
        assert found.counts == count(Capture(path).records())
        agree(found, path)


def test_a_signal_is_a_row_with_its_text(tmp_path, folded):
    """C-02."""
    path = tmp_path / "a.jsonl"
    path.write_bytes(file(*CHANNELS_OPEN, SIGNAL))
    session = folded(path)
    (line,) = (session.line(place) for place in range(len(session.index.rows)))
    assert (line.kind, line.text, line.sender, line.t) == ("signal", "SIGTERM to the process group", "mcpspy", 9)


def test_many_http_sessions_are_folded_without_a_visit_of_each_other(tmp_path, monkeypatch):
    """A-02: the number of visits to a session's pending exchanges does not depend on how many sessions there are."""
    looks = Counter()
    looked = model.Session.exchanges
    monkeypatch.setattr(model.Session, "exchanges", lambda session: looks.update([number]) or looked(session))
    for number in (20, 80):
        path = str(tmp_path / f"{number}.jsonl")
        write(path, number)
        session = OpenCapture(path)
        while session.grow(1):
            pass
        assert session.complete
        session.close()
    assert looks[80] <= 4 * looks[20] + 20


@pytest.mark.parametrize("transport", TRANSPORTS)
@each("scene", SCENES, ids=lambda scene: scene.__name__)
def test_rows_of_a_session_with_a_gate_are_those_of_show(tmp_path, folded, transport, scene):
    wire = TRANSPORTS[transport]("edit")
    scene(wire)
    path = save(wire, tmp_path / f"{scene.__name__}.jsonl")
    agree(folded(path), path)


def test_a_held_row_is_shown_anew_when_it_is_released(tmp_path, session):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "")
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}'
    writer.frame(1, 10**9, call, False, False, {"by": "gate g", "held": 1})
    found = grow(session(tmp_path / "a.jsonl"))
    (line,) = (found.line(place) for place in range(len(found)))
    assert (line.status, str(line.act), found.act(0).waits) == ("held", "held by gate g", True)
    writer.release(3 * 10**9, 1, "continued")
    before = len(found.revised)
    grow(found)
    assert line.n in found.revised[before:]
    assert (found.line(0).status, str(found.line(0).act)) == ("pending", "held 2.00 s by gate g")
    writer.frame(2, 3 * 10**9 + 5_000_000, b'{"jsonrpc":"2.0","id":1,"result":{}}', False, False)
    finish(writer, 4 * 10**9)
    grow(found)
    assert (found.line(1).latency, found.line(1).status) == (5_000_000, "ok")
    agree(found, tmp_path / "a.jsonl")
