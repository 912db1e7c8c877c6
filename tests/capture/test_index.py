"""The index finds the same rows as the reader, whatever the file contains and in whatever steps it grows."""

import fcntl
import json
import os
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpspy.capture.index import Index
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Gap, Open, Signal
from mcpspy.capture.scan import DAMAGED
from mcpspy.capture.writer import Writer
from mcpspy.errors import CaptureError, NewerFormat
from tests.capture.test_reader import CLOSE, END, FRAME, GAP, GATES, OPEN, SIGNAL, decode, file, line, piece
from tests.each import each
from tests.timelines import GOLDEN
from tests.transcript import abandon, begin, capture, finish, record, rows

RELEASE = {"kind": "release", "t": 9, "held": 3, "how": "edited", "sent": "x"}
BIG = b'{"method":"x","params":"%s"}' % (b"12345678" * 32768)  # 256 KiB: five pieces


@pytest.fixture
def opened():
    """Open indexes, and close them after the test."""
    with ExitStack() as stack:
        yield lambda path: stack.enter_context(closing(Index(str(path))))


@pytest.fixture
def grown(opened):
    """Index a file that nobody writes to, up to its end."""
    return lambda path: grow(opened(path))


def grow(index, limit=1 << 20):
    """Index all bytes that the file has now."""
    while index.grow(limit):
        pass
    return index


def told_rows(path):
    """Return the line numbers of the rows of a file, except those that only the fold can find."""
    return {row.n for row in rows(Capture(str(path)).records()) if row.kind != "end-of-stream"}


def read(path):
    """Return the rows that the reader finds in a file; damage gets the time 0, as in the index."""
    told = told_rows(path)  # with HTTP also some heads and ends of bodies
    recorded = decode(Path(path).read_bytes())  # in the order of the file
    found = [it for it in recorded if isinstance(it, Frame | Gap | Signal | End) or it.n in told]
    return [
        replace(found, t=0) if isinstance(found, Gap) and found.why == DAMAGED and damaged(path, found.n) else found
        for found in found
    ]


def damaged(path, n):
    """Return whether line `n` is damaged, rather than a gap that a writer wrote."""
    with open(path, "rb") as lines:
        text = lines.read().split(b"\n")[n - 1]
    try:
        return json.loads(text.decode())["kind"] != "gap"  # `loads` accepts a BOM in bytes, and no reader does
    except (ValueError, TypeError, KeyError):
        return True


def agree(index, path, limit=1 << 20):
    """Index a file that nobody writes to any more, and compare the result with that of the reader."""
    expected = read(path)
    grow(index, limit)
    assert list(index.rows) == [record.n for record in expected]
    assert [index.record(n) for n in index.rows] == expected
    assert set(index.rows) == told_rows(path)
    assert [index.row_of(n) for n in index.rows] == list(range(len(expected)))
    assert index.indexed == index.size == os.path.getsize(path)
    assert not index.grow(limit)


@pytest.fixture
def kept(tmp_path):
    """Write the content of a file and return its path."""

    def keep(*records, tail=b""):
        path = tmp_path / "a.jsonl"
        path.write_bytes(file(*records, tail=tail))
        return str(path)

    return keep


# Captures of real sessions.


@pytest.mark.parametrize("limit", [777, 1 << 16])
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_golden_capture_has_the_rows_of_its_timeline_in_their_order(opened, path, limit):
    index = opened(path)
    agree(index, path, limit)
    assert index.state == "ended"
    roles = ["stdin", "stdout", "stderr"] if index.header.transport == "stdio" else ["request", "response"]
    assert [index.channel(ch).role for ch in range(1, len(roles) + 1)] == roles
    assert index.channel(9999) is None
    assert index.header == Capture(str(path)).header


# Files with any content.

TORN = b'{"kind":"frame","ch":1,"t":6,"ra\n'
CASES = {
    "nothing but a header": [],
    "frames, a gap, the end": [OPEN, FRAME, GAP, CLOSE, END],
    "bytes that are no text": [FRAME, {"kind": "frame", "ch": 2, "t": 6, "b64": "//4="}, FRAME],
    "blank lines": [b"\n", FRAME, b"\n", b"\n", FRAME, b"\n"],
    "unknown kinds": [{"kind": "mark", "t": 5}, FRAME, {"kind": "frame2"}, FRAME],
    "pieces": [piece(1, "ab"), piece(2, b"\xff"), piece(3, "cd", more=False), FRAME],
    "pieces of two channels, mixed": [
        piece(1, "a1"), piece(2, "b1", ch=2), FRAME | {"ch": 3}, piece(3, "b2", ch=2, more=False),
        piece(4, "a2", more=False),
    ],
    "more that is false": [FRAME | {"more": False}, piece(1, "a"), piece(2, "b") | {"more": 0}],
    "more inside a frame": [FRAME | {"raw": '{"more":true,"x":"\\"more\\""}'}, FRAME],
    "a last piece that is cut": [piece(1, "ab"), piece(2, "c", more=False, cut=True)],
    "pieces that say what they are": [
        piece(1, "ab", op="binary", **{"from": "mcpspy"}, sent="x", by="edit"), piece(2, "c", more=False),
    ],
    "pieces, then the end of the file": [piece(1, "ab"), piece(2, "cd")],
    "pieces, then a close": [piece(1, "ab"), piece(2, "cd"), CLOSE, FRAME],
    "pieces, then the close of another channel": [piece(1, "ab"), CLOSE | {"ch": 2}, piece(2, "cd", more=False)],
    "pieces, then an open": [piece(1, "ab"), piece(2, "cd"), OPEN, FRAME],
    "pieces, then a gap": [piece(1, "ab"), piece(2, "cd"), GAP, FRAME],
    "pieces, then the end": [piece(1, "ab"), piece(1, "b", ch=2), END],
    "pieces, then damage": [piece(1, "ab"), piece(2, "cd"), b"{torn\n", piece(3, "ef", more=False)],
    "pieces, then damage like a frame": [piece(1, "ab"), TORN, piece(3, "ef", more=False)],
    "pieces, then a release": [piece(1, "ab"), RELEASE, piece(2, "cd", more=False), FRAME],
    "a release": [FRAME | {"held": 3}, RELEASE, FRAME],
    "damage before a release and a gap": [TORN, RELEASE, GAP],
    "damage": [FRAME, TORN, FRAME],
    "damage before a gap": [FRAME, TORN, GAP, FRAME],
    "damage before an unknown kind and a gap": [FRAME, TORN, {"kind": "mark"}, GAP],
    "damage twice before a gap": [TORN, b"x\n", GAP],
    "damage before an open and a gap": [TORN, OPEN, GAP],
    "damage before the end": [FRAME, TORN, END],
    "a gap that calls itself damage, after damage": [TORN, GAP | {"why": DAMAGED}],
    "a response to itself": [
        {"kind": "open", "ch": 7, "t": 5, "from": "server", "role": "response", "framing": "body", "answers": 7,
         "head": {"status": 200, "headers": []}},
        FRAME,
    ],
    "a signal among pieces": [piece(1, "ab"), SIGNAL, piece(2, "cd", more=False), SIGNAL],
    "damage, a signal and a gap": [TORN, SIGNAL, GAP],
    "gates among pieces": [GATES, piece(1, "ab"), GATES, piece(2, "cd", more=False), GATES],
    "gaps in a row": [GAP, GAP | {"why": DAMAGED}, GAP],
    "an end without its reason after a frame": [FRAME, {"kind": "end", "t": 9}],
    "lines of another writer": [
        b' {"t":5, "ch":1, "raw":"{}", "kind":"frame"}\n',
        b'{"kind": "frame", "ch": 1, "t": 6, "raw": "ab", "more": true}\n',
        b'{"more" : true,"kind":"frame","ch":1,"t":7,"raw":"cd"}\n',
        b'{"kind":"frame","ch":1,"t":8,"raw":"ef", "more" : false}\r\n',
        b'\t{"why":"full","lost":2,"t":9,"kind":"gap"}\n',
    ],
    "not a record": [b"[]\n", b"5\n", b'{"kind":[]}\n', b"\xff\n", b'{"kind":"frame","ch":1}\n', FRAME],
}  # fmt: skip
EACH = each("name", CASES)


@pytest.mark.parametrize("limit", [1, 7, 1 << 16])
@EACH
def test_the_rows_are_those_of_the_reader(opened, kept, name, limit):
    path = kept(*CASES[name])
    agree(opened(path), path, limit)


@pytest.mark.parametrize("tail", [TORN[:-1], b"x", line(FRAME)[:-1], line(piece(9, "yz"))[:-1], line(END)[:-1]])
@EACH
def test_the_rows_are_those_of_the_reader_where_the_last_line_has_no_end(opened, kept, name, tail):
    """As after a SIGKILL in the middle of a write."""
    path = kept(*CASES[name], tail=tail)
    agree(opened(path), path)


LINE = (
    st.sampled_from([OPEN, FRAME, CLOSE, GAP, END, piece(1, "é"), piece(2, "b", more=False), piece(3, b"\xff")])
    | st.builds(lambda ch, more, cut: piece(4, "{}", ch=ch, more=more, cut=cut), *[st.integers(1, 3)] * 1,
                st.booleans(), st.booleans())
    | st.sampled_from([{"kind": "mark"}, CLOSE | {"ch": 2}, OPEN | {"ch": 3}, GAP | {"why": DAMAGED}])
    | st.sampled_from([b"\n", b"x\n", TORN, b'{"kind":"end"}\n'])
)  # fmt: skip


@given(
    st.lists(LINE, max_size=12),
    st.integers(0, 40),
    st.lists(st.integers(1, 200), max_size=30),
    st.sampled_from([1, 7, 64, 1 << 16]),
)
@example([TORN, GAP], 0, [1] * 30, 7)
def test_a_file_that_grows_while_it_is_indexed_gives_the_same_rows(tmp_path_factory, records, torn, steps, limit):
    """A live capture that is cut at any byte is still live; after its end, its rows are those of the reader."""
    path = str(tmp_path_factory.mktemp("grows") / "a.jsonl")
    content = file(*records)
    first = content.index(b"\n") + 1
    content = content[: max(len(content) - torn, first)]
    with live(path, content[:first]) as write, closing(Index(path)) as index:
        at = first
        for step in [*steps, len(content)]:
            write(content[at : at + step])
            at += step
            grow(index, limit)
            assert index.state == "live"
        write(None)
        agree(index, path, limit)
        assert index.state == "ended"


@contextmanager
def live(path, content):
    """Hold the lock of a live capture, and yield a function that writes bytes to it, or closes it when given None."""
    with open(path, "wb", buffering=0) as file:
        file.write(content)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield lambda more: file.close() if more is None else file.write(more)


@given(st.lists(st.binary(max_size=20) | st.sampled_from([line(FRAME), line(piece(1, "a")), line(GAP)]), max_size=8))
def test_bytes_of_any_kind_never_raise(tmp_path_factory, parts):
    path = tmp_path_factory.mktemp("bytes") / "a.jsonl"
    path.write_bytes(file(*parts))
    with closing(Index(str(path))) as index:
        agree(index, path)


# One record.


def test_records_are_found_in_any_order(grown, kept):
    index = grown(kept(OPEN, FRAME, GAP, END))
    assert index.record(5) == End(5, 9, code=0)
    assert index.record(3) == Frame(3, 1, 5, b"{}")
    assert index.record(2) == Open(2, 1, 0, "client", "stdin", "lines")
    assert index.lines == 5


def test_a_damaged_line_is_a_gap_of_one(grown, kept):
    assert grown(kept(FRAME, b"x\n", FRAME)).record(3) == Gap(3, 0, 1, DAMAGED)


@pytest.mark.parametrize(("limit", "size"), [(1, 65536), (65536, 65536), (65537, 131072), (1 << 20, len(BIG))])
def test_of_a_big_frame_only_the_beginning_is_read(grown, tmp_path, limit, size):
    """The index reads up to the limit, and then to the end of the current piece."""
    writer = begin(tmp_path / "a.jsonl")
    write_in_pieces(writer, 1, BIG)
    finish(writer)
    index = grown(tmp_path / "a.jsonl")
    (n,) = index.rows[:-1]
    assert index.in_pieces(n)
    assert index.record(n, limit).raw == BIG[:size]
    assert index.record(n).raw == BIG
    assert not index.record(n, limit).cut


def write_in_pieces(writer: Writer, t, raw, size=65536):
    """Write a frame as a relay does, in pieces of 64 KiB."""
    for at in range(0, len(raw), size):
        writer.frame(1, t, raw[at : at + size], more=at + size < len(raw), cut=False)


def test_the_end_of_a_body_that_could_not_be_decoded_is_a_row(opened, kept):
    head = {"status": 200, "reason": "OK", "headers": [["content-type", "application/json"]]}
    answer = {"kind": "open", "ch": 2, "t": 1, "from": "server", "role": "response", "framing": "body", "head": head}
    frame = {"kind": "frame", "ch": 2, "t": 2, "raw": "\u001f"}
    closed = {"kind": "close", "ch": 2, "t": 3, "how": "eof", "reason": "the compressed body ends too early"}
    path = kept(line(answer) + line(frame) + line(closed) + line(closed | {"ch": 9}))
    index = opened(path)
    while index.grow():
        pass
    assert list(index.rows) == [3, 4] == [row.n for row in rows(Capture(str(path)).records())]


def test_lines_that_stand_together_are_read_at_once(grown, kept):
    lines = [line(OPEN), *(line(FRAME) for _ in range(4)), line(END)]
    index = grown(kept(*lines))
    size = len(lines[1])
    assert index.block(3, 6, 2 * size + 1) == (lines[1] + lines[2], *index.block(3, 4, 1000)[1:])
    content, starts, texts = index.block(3, 7, 1 << 20)
    assert content == b"".join(lines[1:])
    assert [at - starts[0] for at in starts[:3]] == [0, size, 2 * size]
    assert len(starts) == 6
    assert len(texts) == 5
    assert index.block(3, 6, size - 1) is None


def test_of_each_line_it_is_known_where_the_whole_text_of_a_row_begins(grown, kept):
    """The bytes of other rows are in several lines, encoded, or not there."""
    near, far = (FRAME | {"ch": int("9" * digits)} for digits in (220, 221))  # their texts begin at 254 and 255
    empty, coded = FRAME | {"raw": ""}, {"kind": "frame", "ch": 1, "t": 5, "b64": "/w=="}
    written = [OPEN, FRAME, empty, coded, piece(1, "a"), FRAME | {"ch": 2}, piece(2, "b", more=False), far, GAP, near]
    lines = [json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in written]
    lines.append(b'{"kind":"frame","ch":3,"t":5,"raw":"c" , "more" : true}\n')  # a row without its other pieces
    index = grown(kept(*lines))
    assert index.block(4, 9, 1 << 20)[2][0] == 0
    content, starts, texts = index.block(2, 12, 1 << 20)
    assert 12 in index.rows
    assert content == b"".join(lines)
    found = [n for n, text in enumerate(texts, 2) if text]
    assert found == [3, 7, 11]
    for n in found:
        assert content[starts[n - 2] - starts[0] + texts[n - 2] :].startswith(b'"{}"}')


def test_of_a_file_that_is_cut_short_only_whole_lines_are_read_together(grown, kept):
    path = kept(line(OPEN), *(line(FRAME) for _ in range(4)))
    index = grown(path)
    size = len(line(FRAME))
    os.truncate(path, os.path.getsize(path) - size - 1)
    assert index.block(3, 6, 1 << 20)[0] == line(FRAME) * 2
    assert index.block(6, 6, 1 << 20) is None


def test_only_rows_have_a_place(grown, kept):
    index = grown(kept(OPEN, FRAME, piece(1, "a"), piece(2, "b", more=False), END))
    assert [index.row_of(n) for n in range(1, 9)] == [None, None, 0, None, 1, 2, None, None]
    assert [index.in_pieces(n) for n in range(1, 9)] == [False] * 4 + [True] + [False] * 3


def test_a_frame_that_became_a_row_late_is_found(grown, kept):
    index = grown(kept(piece(1, "a"), FRAME | {"ch": 2}, CLOSE, FRAME | {"ch": 2}))
    assert list(index.rows) == [3, 2, 5]
    assert [index.row_of(n) for n in (2, 3, 5)] == [1, 0, 2]


def test_a_line_longer_than_the_slice_is_indexed_whole(opened, kept):
    path = kept(FRAME, FRAME | {"raw": "x" * 300_000}, FRAME)
    index = opened(path)
    agree(index, path, 1000)
    assert len(index.record(3).raw) == 300_000


def test_a_slice_is_all_that_is_read_at_once(opened, kept):
    index = opened(kept(*[FRAME] * 100))
    assert index.grow(1000)
    assert 0 < index.indexed <= 1000
    assert 0 < len(index.rows) < 20


# Files that change.


def test_a_live_capture_grows_until_its_relay_ends(opened, tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "> {}")
    index = grow(opened(tmp_path / "a.jsonl"))
    assert (index.state, list(index.rows)) == ("live", [5])
    writer.frame(2, 5, b"{}", more=False, cut=False)
    grow(index)
    assert (index.state, list(index.rows)) == ("live", [5, 6])
    finish(writer)
    grow(index)
    assert (index.state, list(index.rows)) == ("ended", [5, 6, 7])


def test_pieces_wait_for_the_last_while_the_relay_lives(opened, tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, "> {}")
    writer.frame(1, 5, b"ab", more=True, cut=False)
    index = grow(opened(tmp_path / "a.jsonl"))
    assert list(index.rows) == [5]
    abandon(writer)
    assert index.grow()
    assert list(index.rows) == [5, 6]
    assert index.record(6) == Frame(6, 1, 5, b"ab", cut=True)
    assert not index.grow()


def test_a_capture_that_is_deleted_while_it_is_open_is_read_to_the_end(opened, tmp_path):
    path = capture(tmp_path / "a.jsonl", '> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}')
    index = opened(path)
    os.unlink(path)
    grow(index, 100)
    assert index.state == "deleted"
    assert list(index.rows) == [5, 6, 7]
    assert isinstance(index.record(7), End)


def test_a_capture_that_is_written_over_by_a_larger_one_is_another(grown, tmp_path):
    index = grown(capture(tmp_path / "a.jsonl", '> {"id":1,"method":"ping"}'))
    other = capture(tmp_path / "b.jsonl", '> {"id":1,"method":"ping"}\n' * 100)
    (tmp_path / "a.jsonl").write_bytes(Path(other).read_bytes())
    assert index.look()
    assert index.state == "cut short"


def test_a_capture_is_known_to_be_live_at_once(opened, tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    assert opened(tmp_path / "a.jsonl").state == "live"
    finish(writer)


@pytest.mark.parametrize("later", [b"", b"short", b"x" * 100_000])
def test_a_capture_that_is_cut_short_stays_so(grown, tmp_path, later):
    """Whatever is written after that belongs to another capture."""
    path = capture(tmp_path / "a.jsonl", '> {"id":1,"method":"ping"}')
    index = grown(path)
    os.truncate(path, 10)
    assert not index.grow()
    assert index.state == "cut short"
    with open(path, "ab") as content:
        content.write(later)
    assert not index.grow()
    assert index.state == "cut short"
    for n in index.rows:
        assert isinstance(index.record(n), Gap)


def test_a_capture_that_is_replaced_by_a_longer_one_raises_nothing(grown, tmp_path):
    path = capture(tmp_path / "a.jsonl", '> {"id":1,"method":"ping"}')
    index = grown(path)
    capture(tmp_path / "a.jsonl", '> {"id":1,"method":"ping"}\n' * 50, name="another-with-a-longer-name" * 10)
    grow(index)
    for n in index.rows:
        assert isinstance(index.record(n), Frame | Gap | Signal | End | Open | Close)


def test_another_file_under_the_same_name_changes_nothing(grown, tmp_path):
    path = capture(tmp_path / "a.jsonl", '> {"id":1,"method":"ping"}')
    index = grown(path)
    before = [index.record(n) for n in index.rows]
    capture(tmp_path / "b.jsonl", "")
    os.replace(tmp_path / "b.jsonl", path)
    assert not index.grow()
    assert index.state == "deleted"
    assert [index.record(n) for n in index.rows] == before


def test_a_file_that_is_no_capture_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"hello\n")
    with pytest.raises(CaptureError, match="is not a capture"):
        Index(str(tmp_path / "a"))
    (tmp_path / "a").write_bytes(b'{"mcpspy":2}\n')
    with pytest.raises(NewerFormat):
        Index(str(tmp_path / "a"))
    with pytest.raises(CaptureError, match="No such file"):
        Index(str(tmp_path / "b"))


def test_the_file_is_given_back(grown, kept):
    index = grown(kept(FRAME))
    index.close()
    with pytest.raises(ValueError, match="closed file"):
        index.record(2)
