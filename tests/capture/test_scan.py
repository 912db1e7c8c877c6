"""The rules for lines, joined frames and damage that the reader and the index share (A-03: in bounded memory)."""

import tracemalloc

import pytest

from mcpspy.capture import scan as module
from mcpspy.capture.records import Close, Frame, Gap, Omitted
from mcpspy.capture.scan import DAMAGED, KEPT, FileLines, Scan, is_damage, parse_line
from tests.capture.test_reader import CLOSE, FRAME, GAP, line, piece


@pytest.fixture
def short(monkeypatch):
    """Limit lines to 10 bytes."""
    monkeypatch.setattr(module, "LONGEST", 10)


def cut(content, size):
    """Feed `size` bytes at a time; return the lines with the number of bytes dropped of each, and the `FileLines`."""
    lines, found = FileLines(), []
    for at in range(0, len(content), size):
        complete = lines.feed(content[at : at + size])
        found += [(it, 0 if n else lines.dropped) for n, it in enumerate(complete)]
    return found, lines


@pytest.mark.parametrize("size", [1, 3, 9])
def test_lines_end_at_a_line_feed_and_nowhere_else(short, size):
    found, lines = cut("a\r\n\n\u2028b\n".encode() + b"cd", size)
    assert [it for it, _ in found] == [b"a\r", b"", "\u2028b".encode()]
    assert (lines.pending, lines.unfinished) == (b"cd", True)


@pytest.mark.parametrize("size", [1, 3, 9])
@pytest.mark.parametrize("length", [10, 11, 25])
def test_a_line_that_is_too_long_comes_out_empty_and_its_length_is_known(short, size, length):
    """A-03."""
    found, lines = cut(b"ab\n" + b"x" * length + b"\ncd\n", size)
    assert [len(it) + dropped for it, dropped in found] == [2, length, 2]
    assert [it for it, _ in found] == [b"ab", b"x" * length if length <= 10 else b"", b"cd"]
    assert not lines.unfinished
    _, lines = cut(b"x" * length, size)
    assert len(lines.pending) + lines.dropped == length
    assert lines.unfinished


def test_a_line_of_80_mb_is_read_in_flat_memory():
    """A-03."""
    lines, chunk = FileLines(), b"x" * (1 << 20)
    tracemalloc.start()
    for _ in range(80):
        assert lines.feed(chunk) == []
    assert lines.feed(b"\nab\n") == [b"", b"ab"]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lines.dropped == 80 << 20
    assert peak < 20 << 20


def scanned(*records, largest=8 << 20):
    """Return the records of these lines, including those at the end, and the joined frames."""
    found, joined = [], {}
    scan = Scan(largest, joined)
    for n, record in enumerate(records, 2):
        content = record if isinstance(record, bytes) else line(record)
        parsed, more = parse_line(n, content)
        found += scan.take(parsed, more=more)
    return found + list(scan.end()), joined


@pytest.mark.parametrize("largest", [100_000, 199_999])
def test_a_frame_over_the_bound_keeps_its_ends(largest):
    """A-03."""
    parts = [bytes([65 + n]) * 40_000 for n in range(5)]
    records = [piece(n, part.decode(), more=n < 4) for n, part in enumerate(parts)]
    (frame,), joined = scanned(*records, largest=largest)
    whole = b"".join(parts)
    assert frame.raw == whole[:KEPT]
    assert frame.omitted == Omitted(200_000, whole[-KEPT:])
    assert frame.size == joined[6].size == 200_000
    (frame,), _ = scanned(*records, largest=200_000)
    assert (frame.raw, frame.omitted) == (whole, None)


def test_a_frame_of_20_mb_in_pieces_is_read_in_flat_memory():
    """A-03."""
    scan = Scan(1 << 20)
    raw = "x" * 65536
    tracemalloc.start()
    for n in range(320):
        record, more = parse_line(n, line(piece(n, raw)))
        assert list(scan.take(record, more=more)) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    (frame,) = scan.end()
    assert (frame.size, frame.cut) == (20 << 20, True)
    assert peak < 4 << 20


def test_damage_waits_for_the_gap_that_counts_it():
    found, _ = scanned(FRAME, b"torn", GAP, b"torn", CLOSE)
    assert [type(it) for it in found] == [Frame, Gap, Gap, Close]
    assert [is_damage(it) for it in found] == [False, False, True, False]
    assert found[2].t == GAP["t"]
    assert not is_damage(Gap(2, 0, 1, "a damaged " + "line"[:4])), "as a writer may have called its own"


def test_a_scan_is_between_where_a_whole_frame_needs_no_look():
    scan = Scan()
    assert scan.between
    for record, between in ((piece(1, "a"), False), (piece(2, "b", more=False), True), ({"kind": "new"}, True)):
        parsed, more = parse_line(2, line(record))
        list(scan.take(parsed, more=more))
        assert scan.between == between
    list(scan.take(parse_line(3, b"x")[0], more=False))
    assert not scan.between
    assert [it.why for it in scan.end()] == [DAMAGED]
    assert scan.between
