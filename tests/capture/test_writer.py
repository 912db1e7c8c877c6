"""Writing a capture: one write per record, no exceptions, and losses are recorded."""

import errno
import fcntl
import itertools
import json
import os
import sys
from contextlib import contextmanager

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcpspy.capture import writer as module
from mcpspy.capture.format import as_sent, to_json
from mcpspy.capture.reader import Capture, Records
from mcpspy.capture.records import End, Frame, Gap, Open, Release
from mcpspy.capture.writer import create
from tests import limits
from tests.transcript import WALL, abandon, descriptor, finish

HEADER = {"tool": "mcpspy 0.1.0", "transport": "stdio", "name": "weather", "argv": ["node", "weather.js"]}
SYSTEM_WRITE = os.write


class Disk:
    """A fake `os.write` of a disk that may be full: `room` is the number of bytes that fit, None is no limit."""

    def __init__(self):
        self.room = None
        self.writes = []
        self.whole = []

    def write(self, fd, line):
        self.writes.append(bytes(line))
        if self.room is not None:
            if not self.room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            line = line[: self.room]
            self.room -= len(line)
        written = SYSTEM_WRITE(fd, line)
        if written == len(self.writes[-1]):
            self.whole.append(self.writes[-1])
        return written


@contextmanager
def disk():
    """Replace the real disk by a fake one."""
    with pytest.MonkeyPatch.context() as patch:
        instead = Disk()
        patch.setattr(module.os, "write", instead.write)
        yield instead


@pytest.fixture
def full():
    with disk() as instead:
        yield instead


def make(path, **options):
    """Return a writer to `path`, and the list of its messages to the user."""
    said = []
    options = {"output": str(path), "folder": None, "environ": {}, "wall": WALL, "say": said.append} | options
    return create(dict(HEADER), **options), said


def read(path):
    return list(Capture(str(path)).records())


def raws(path):
    return [record.raw for record in read(path) if isinstance(record, Frame)]


def lines(path):
    with open(path, "rb") as file:
        return file.read().split(b"\n")


# The format.


def test_each_record_is_one_line_as_the_design_shows_it(tmp_path):
    writer, _ = make(tmp_path / "a")
    writer.open(1, 0, "client", "stdin", "lines")
    writer.frame(1, 5123456, b'{"jsonrpc":"2.0"}', more=False, cut=False)
    writer.frame(2, 5200000, b"\xff", more=False, cut=False)
    writer.frame(2, 5300000, b"tail", more=False, cut=True)
    writer.close(2, 99000000, "eof")
    writer.signal(99100000, 15, "group", forwarded=False)
    writer.gates(99100000, [{"name": "slow", "when": {}, "action": {"delay": 5}}], "file")
    writer.end(99200000, 127, "not found")
    header, *rest = lines(tmp_path / "a")
    fields = json.loads(header)
    assert list(fields)[:4] == ["mcpspy", "id", "started", "tool"]
    assert header.startswith(b'{"mcpspy":1,')
    assert fields["started"] == "2025-11-24T16:00:00.123456Z"
    assert len(fields["id"]) == 32
    assert rest == [
        b'{"kind":"open","ch":1,"t":0,"from":"client","role":"stdin","framing":"lines"}',
        rb'{"kind":"frame","ch":1,"t":5123456,"raw":"{\"jsonrpc\":\"2.0\"}"}',
        b'{"kind":"frame","ch":2,"t":5200000,"b64":"/w=="}',
        b'{"kind":"frame","ch":2,"t":5300000,"raw":"tail","cut":true}',
        b'{"kind":"close","ch":2,"t":99000000,"how":"eof"}',
        b'{"kind":"signal","t":99100000,"signal":15,"to":"group","forwarded":false}',
        b'{"kind":"gates","t":99100000,"gates":[{"name":"slow","when":{},"action":{"delay":5}}],"by":"file"}',
        b'{"kind":"end","t":99200000,"exit":{"code":127},"why":"not found"}',
        b"",
    ]


def test_records_of_http_have_what_stdio_has_not(tmp_path):
    """Keys are in the order of docs/capture-format.md; a key without a value is left out."""
    writer, _ = make(tmp_path / "a")
    head = {"status": 200, "reason": "OK", "headers": [["content-type", "text/event-stream"]]}
    writer.open(7, 1, "server", "response", "sse", {"answers": 6, "head": head, "sent": {"headers": []}, "by": "host"})
    writer.frame(7, 2, b"data: 1\n", more=False, cut=False, rest={"sent": "data: 2\n", "by": "endpoint"})
    writer.frame(7, 3, b"\xff", more=True, cut=False, rest={"op": "binary"})
    writer.frame(7, 3, b"", more=False, cut=True, rest={"op": "binary"})
    writer.close(7, 4, "eof", {"code": 1000, "reason": "bye"})
    writer.gates(4, [], "viewer")
    writer.end(5, None, None)
    assert lines(tmp_path / "a")[1:-1] == [
        to_json(
            {"kind": "open", "ch": 7, "t": 1, "from": "server", "role": "response", "framing": "sse", "answers": 6}
        )[:-1]
        + b',"head":{"status":200,"reason":"OK","headers":[["content-type","text/event-stream"]]},'
        + b'"sent":{"headers":[]},"by":"host"}',
        rb'{"kind":"frame","ch":7,"t":2,"raw":"data: 1\n","sent":"data: 2\n","by":"endpoint"}',
        b'{"kind":"frame","ch":7,"t":3,"b64":"/w==","more":true,"op":"binary"}',
        b'{"kind":"frame","ch":7,"t":3,"raw":"","cut":true,"op":"binary"}',
        b'{"kind":"close","ch":7,"t":4,"how":"eof","code":1000,"reason":"bye"}',
        b'{"kind":"gates","t":4,"gates":[],"by":"viewer"}',
        b'{"kind":"end","t":5}',
    ]
    opened, changed, joined, close, _, end = read(tmp_path / "a")
    assert (opened.answers, opened.head, opened.by) == (6, head, "host")
    assert (changed.sent, changed.by) == (b"data: 2\n", "endpoint")
    assert (joined.raw, joined.op, joined.cut) == (b"\xff", "binary", True)
    assert (close.code, close.reason, end.code, end.signal) == (1000, "bye", None, None)


def test_what_became_of_a_held_frame_is_a_record_of_its_own(tmp_path):
    writer, _ = make(tmp_path / "a")
    writer.frame(1, 2, b"{}", more=False, cut=False, rest={"by": "gate a", "held": 1})
    writer.frame(1, 2, b"\xff", more=False, cut=False, rest={"sent": as_sent(None), "by": "gate a"})
    writer.release(3, 1, "continued")
    writer.release(3, 2, "edited", {"sent": as_sent(b"a"), "by": "gate a"})
    writer.release(3, 3, "edited", {"sent": as_sent(b"\xff")})
    finish(writer, 5, code=-15)
    assert lines(tmp_path / "a")[1:-1] == [
        b'{"kind":"frame","ch":1,"t":2,"raw":"{}","by":"gate a","held":1}',
        b'{"kind":"frame","ch":1,"t":2,"b64":"/w==","sent":null,"by":"gate a"}',
        b'{"kind":"release","t":3,"held":1,"how":"continued"}',
        b'{"kind":"release","t":3,"held":2,"how":"edited","sent":"a","by":"gate a"}',
        b'{"kind":"release","t":3,"held":3,"how":"edited","sent":{"b64":"/w=="}}',
        b'{"kind":"end","t":5,"exit":{"signal":15}}',
    ]
    assert read(tmp_path / "a")[1].dropped
    assert read(tmp_path / "a")[4] == Release(6, 3, 3, "edited", b"\xff")


@pytest.mark.parametrize("length", [0, 1, 4095, 4096, 70000])
@pytest.mark.parametrize("unit", [b"a", b'"\\\x00\x1f\x7f', "é\u2028🌍".encode(), b"\xff", b"{}\r"])
def test_a_frame_of_any_length_reads_back_as_it_was(tmp_path, unit, length):
    """F-02; the way of quoting changes at 4 KiB."""
    raw = unit * (length // len(unit) + 1)
    writer, _ = make(tmp_path / "a")
    writer.frame(1, 1, raw, more=False, cut=False)
    assert raws(tmp_path / "a") == [raw]


def test_all_ways_of_quoting_read_back_alike(tmp_path):
    """The way of quoting changes after a big frame, or after many frames."""
    frames = [b'"\\\x00\x1f\x7f/' + "é\u2028🌍".encode() * length for length in (1, 100, 1, 600, 1, 100)]
    frames += [b"\xff", b"a" * 3000, *[frames[1]] * 3]
    before = {"nothing": [], "big": [b"b" * 5000], "many": [b"m" * 3000] * 400}
    written = []
    for name, first in before.items():
        writer, _ = make(tmp_path / name)
        for raw in first + frames:
            writer.frame(1, 5, raw, more=False, cut=False)
        for raw in frames:
            writer.frame(1, 5, raw, more=True, cut=False)
            writer.frame(1, 5, raw, more=False, cut=True)
        assert raws(tmp_path / name) == first + frames + [raw + raw for raw in frames]
        written.append(lines(tmp_path / name)[1 + len(first) :])
    assert written[0] == written[1] == written[2]


@given(
    st.lists(
        st.binary(max_size=300)
        | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass"))
        | st.sampled_from([b"", b"\r", b"\xef\xbb\xbf", "\u2028\u0085".encode(), b"\x00", b"x" * 5000])
    ),
    st.integers(1, 500),
)
@settings(max_examples=50)
def test_arbitrary_frames_come_back_in_any_chunks(tmp_path_factory, frames, size):
    """F-02."""
    path = tmp_path_factory.mktemp("round") / "a"
    writer, _ = make(path)
    for t, raw in enumerate(frames):
        writer.frame(1, t, raw, more=False, cut=False)
    finish(writer, len(frames))
    content = path.read_bytes()
    decoder = Records()
    found = [record for i in range(0, len(content), size) for record in decoder.feed(content[i : i + size])] + list(
        decoder.end()
    )
    assert [record.raw for record in found[:-1]] == frames
    assert found[-1] == End(len(frames) + 2, len(frames), code=0)


def test_what_is_not_utf_8_in_a_path_is_replaced():
    assert json.loads(to_json({"cwd": os.fsdecode(b"/srv/\xff")})) == {"cwd": "/srv/\ufffd"}


def test_each_record_is_one_write_on_a_descriptor_that_appends(tmp_path, full):
    writer, _ = make(tmp_path / "a")
    assert fcntl.fcntl(descriptor(writer), fcntl.F_GETFL) & os.O_APPEND
    writer.open(1, 0, "client", "stdin", "lines")
    writer.frame(1, 1, b"{}", more=False, cut=False)
    writer.frame(1, 2, b"a" * 65536, more=True, cut=False)
    writer.frame(1, 3, b"a", more=False, cut=False)
    writer.close(1, 4, "eof")
    finish(writer, 5)
    assert len(full.writes) == 7
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in full.writes)
    assert b"".join(full.writes) == (tmp_path / "a").read_bytes()


@pytest.mark.parametrize("raw", [b'{"a":"\xc3\xa9"}', b"\xff", b""])
def test_a_whole_channel_is_written_as_its_records_are(tmp_path, full, raw):
    """With one write, the lines are the same as when the records are written one by one."""
    rest = {"answers": 1, "head": {"status": 200, "reason": "OK", "headers": [("a", "b")]}}
    writer, _ = make(tmp_path / "a")
    writer.whole(2, 7, "server", "response", rest, raw)
    assert len(full.writes) == 2
    finish(writer, 8)
    writer, _ = make(tmp_path / "b")
    writer.open(2, 7, "server", "response", "body", rest)
    if raw:
        writer.frame(2, 7, raw, more=False, cut=False)
    writer.close(2, 7, "eof")
    finish(writer, 8)
    assert lines(tmp_path / "a")[1:] == lines(tmp_path / "b")[1:]


@pytest.mark.parametrize("room", range(0, 160, 3))
def test_of_a_whole_channel_what_did_not_fit_on_the_disk_is_counted(tmp_path, full, room):
    """A write may be short at any byte."""
    writer, said = make(tmp_path / "a")
    full.room = room
    writer.whole(1, 1, "client", "request", {}, b"{}")
    full.room = None
    writer.frame(9, 2, b"after", more=False, cut=False)
    finish(writer, 3)
    stood = full.writes[1].count(b"\n", 0, room)
    assert [line for line in lines(tmp_path / "a")[1:] if line][:stood] == full.writes[1].split(b"\n")[:stood]
    gaps = [
        record.lost for record in read(tmp_path / "a") if isinstance(record, Gap) and record.why != "a damaged line"
    ]
    assert gaps == [3 - stood]
    assert raws(tmp_path / "a")[-1] == b"after"
    assert b"" not in lines(tmp_path / "a")[:-1]
    assert len(said) == 1


@pytest.mark.parametrize("room", [0, 1, 2, 40])
def test_a_whole_channel_behind_a_gap_that_did_not_fit_is_counted_in_full(tmp_path, full, room):
    """A partly written gap, or a header with the open channels, does not count as a record of the channel."""
    writer, _ = make(tmp_path / "a")
    for torn in (20, room):
        full.room = torn
        writer.whole(1, 1, "client", "request", {}, b"{}")
    full.room = None
    finish(writer, 2)
    assert (
        sum(record.lost for record in read(tmp_path / "a") if isinstance(record, Gap) and "damaged" not in record.why)
        == 6
    )


def test_a_whole_channel_goes_into_one_file(tmp_path):
    """A-04, A-10: also if the capture continues in a new file at that moment."""
    writer, _ = make(tmp_path / "a.jsonl", limit=300)
    for number in range(1, 6):
        writer.whole(number, number, "client", "request", {}, b"x" * 200)
    finish(writer, 6)
    for file in tmp_path.iterdir():
        kinds = [record["kind"] for record in map(json.loads, lines(file)[1:-1])]
        assert "".join(kind[0] for kind in kinds).replace("ofc", "") in ("c", "e"), kinds


# Losses.


def test_what_could_not_be_written_is_counted_in_a_gap_as_soon_as_writing_works(tmp_path, full):
    writer, said = make(tmp_path / "a")
    writer.frame(1, 1, b"before", more=False, cut=False)
    assert raws(tmp_path / "a") == [b"before"], "at once"
    full.room = 0
    for t in range(2, 5):
        writer.frame(1, t, b"lost", more=False, cut=False)
    full.room = None
    writer.frame(1, 5, b"after", more=False, cut=False)
    assert read(tmp_path / "a") == [
        Frame(2, 1, 1, b"before"),
        Gap(3, 5, 3, "No space left on device"),
        Frame(4, 1, 5, b"after"),
    ]
    assert len(said) == 1
    assert str(tmp_path / "a") in said[0]
    assert "No space left on device" in said[0]


def test_what_the_writer_was_never_given_is_a_gap_as_well(tmp_path):
    writer, _ = make(tmp_path / "a.jsonl")
    writer.gap(5, 2, "the file does not hold them")
    writer.end(6, None, None)
    assert read(tmp_path / "a.jsonl") == [Gap(2, 5, 2, "the file does not hold them"), End(3, 6)]


def test_after_a_torn_line_the_next_record_begins_with_a_newline(tmp_path, full):
    """S-01: after a short write."""
    writer, _ = make(tmp_path / "a")
    writer.frame(1, 1, b"before", more=False, cut=False)
    full.room = 20
    writer.frame(1, 2, b"torn", more=False, cut=False)
    full.room = None
    writer.frame(1, 3, b"after", more=False, cut=False)
    assert lines(tmp_path / "a")[2] == b'{"kind":"frame","ch"'
    assert full.writes[-2].startswith(b'\n{"kind":"gap"')
    assert [type(record) for record in read(tmp_path / "a")] == [Frame, Gap, Frame]
    assert read(tmp_path / "a")[1].lost == 1


@pytest.mark.parametrize("room", range(1, 42, 5))
def test_a_line_may_be_torn_more_than_once(tmp_path, full, room):
    writer, _ = make(tmp_path / "a")
    writer.frame(1, 1, b"before", more=False, cut=False)
    for t in range(2, 5):
        full.room = room
        writer.frame(1, t, b"torn", more=False, cut=False)
    full.room = None
    writer.frame(1, 5, b"after", more=False, cut=False)
    found = read(tmp_path / "a")
    assert (found[0], found[-1].raw) == (Frame(2, 1, 1, b"before"), b"after")
    assert found[-2] == Gap(found[-2].n, 5, 3, "the disk is full or a limit of the system on file sizes is reached")


def test_a_gap_before_the_end_is_written_with_it(tmp_path, full):
    writer, _ = make(tmp_path / "a")
    full.room = 0
    writer.frame(1, 1, b"{}", more=False, cut=False)
    full.room = None
    finish(writer, 2)
    assert read(tmp_path / "a") == [Gap(2, 2, 1, "No space left on device"), End(3, 2, code=0)]


@pytest.mark.parametrize("lost", range(4))
def test_of_a_big_frame_that_lost_a_piece_the_rest_is_lost_too(tmp_path, full, lost):
    """S-01: a frame of several records is kept whole or cut, never joined across a loss."""
    writer, _ = make(tmp_path / "a")
    writer.frame(1, 0, b"before", more=False, cut=False)
    for piece in range(4):
        full.room = 0 if piece == lost else None
        writer.frame(1, piece, b"%d" % piece * 10, more=piece < 3, cut=False)
    full.room = None
    writer.frame(1, 9, b"after", more=False, cut=False)
    found = read(tmp_path / "a")
    part = b"".join(b"%d" % piece * 10 for piece in range(lost))
    assert [record.raw for record in found if isinstance(record, Frame)] == [
        b"before",
        *([part] if lost else []),
        b"after",
    ]
    assert [record.cut for record in found if isinstance(record, Frame)] == [False, *([True] if lost else []), False]
    assert [record.lost for record in found if isinstance(record, Gap)] == [4 - lost]


def test_a_loss_on_one_channel_cuts_the_big_frames_of_the_others(tmp_path, full):
    writer, _ = make(tmp_path / "a")
    writer.frame(1, 1, b"a1", more=True, cut=False)
    writer.frame(2, 2, b"b1", more=True, cut=False)
    full.room = 0
    writer.frame(3, 3, b"c", more=False, cut=False)
    full.room = None
    writer.frame(1, 4, b"a2", more=True, cut=False)
    writer.frame(2, 5, b"b2", more=False, cut=False)
    writer.frame(1, 6, b"a3", more=False, cut=False)
    writer.frame(1, 7, b"whole", more=False, cut=False)
    writer.frame(2, 8, b"more", more=True, cut=False)
    writer.frame(2, 9, b"over", more=False, cut=False)
    frames = [(record.raw, record.cut) for record in read(tmp_path / "a") if isinstance(record, Frame)]
    assert frames == [(b"a1", True), (b"b1", True), (b"whole", False), (b"moreover", False)]
    assert sum(record.lost for record in read(tmp_path / "a") if isinstance(record, Gap)) == 4


def test_a_header_that_fails_first_is_written_before_the_first_record_that_can_be(tmp_path, full):
    full.room = 0
    writer, said = make(tmp_path / "a")
    writer.open(1, 0, "client", "stdin", "lines")
    full.room = 40
    writer.frame(1, 1, b"lost", more=False, cut=False)
    full.room = None
    writer.frame(1, 2, b"kept", more=False, cut=False)
    assert read(tmp_path / "a") == [
        Gap(2, 2, 2, "the disk is full or a limit of the system on file sizes is reached"),
        Frame(3, 1, 2, b"kept"),
    ]
    assert len(said) == 1


def test_a_file_that_cannot_be_emptied_is_told_once_like_any_failure(tmp_path, monkeypatch):
    """S-01: the user gets one message. An append-only file (`chattr +a`) is such a file."""

    def refuse(*_):
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(module.os, "ftruncate", refuse)
    writer, said = make(tmp_path / "a")
    writer.frame(1, 1, b"lost", more=False, cut=False)
    writer.frame(1, 2, b"lost", more=False, cut=False)
    assert len(said) == 1


def test_a_frame_whose_first_piece_found_no_header_is_not_joined(tmp_path, monkeypatch):
    refused = [True]

    def refuse(fd, size):
        if refused:
            refused.pop()
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(fd, size)

    real = os.ftruncate
    monkeypatch.setattr(module.os, "ftruncate", refuse)
    writer, _ = make(tmp_path / "a")
    refused.append(True)
    writer.frame(1, 1, b"first ", more=True, cut=False)
    writer.frame(1, 2, b"second", more=False, cut=False)
    writer.frame(1, 3, b"whole", more=False, cut=False)
    assert raws(tmp_path / "a") == [b"whole"]


CALLS = st.lists(
    st.tuples(
        st.integers(1, 3),
        st.sampled_from([b"x", b"y" * 40, b"\xff" * 9, b""]),
        st.booleans(),
        st.none() | st.integers(0, 90),
    ),
    max_size=30,
)


# The examples: the rest of a frame is dropped after another record was written, and a gap stands between the pieces
# of another channel's frame.
@given(CALLS, st.none() | st.integers(0, 90))
@example([(1, b"x", True, 0), (2, b"x", False, None), (1, b"x", False, None)], None)
@example([(1, b"x", True, 0), (2, b"x", True, None), (1, b"x", False, None), (2, b"x", False, None)], None)
@example([(1, b"x", True, 0), (1, b"x", False, None)], 0)
def test_whatever_the_disk_does_records_are_kept_or_counted_and_frames_whole_or_cut(tmp_path_factory, calls, first):
    """S-01: any write may fail, and any may be short."""
    path = tmp_path_factory.mktemp("disk") / "a"
    spoken = {ch: [b""] for ch in (1, 2, 3)}
    with disk() as full:
        full.room = first
        writer, said = make(path)
        for t, (ch, raw, more, room) in enumerate(calls):
            full.room = room
            writer.frame(ch, t, raw, more, cut=False)
            spoken[ch][-1] += raw
            if not more:
                spoken[ch].append(b"")
        full.room = None
        finish(writer, len(calls))
    kept = [json.loads(line).get("kind") for line in full.whole]
    gaps = [record for record in read(path) if isinstance(record, Gap)]
    assert kept.count("frame") + sum(gap.lost for gap in gaps if gap.why != "a damaged line") == len(calls)
    assert len(said) == (len(full.writes) > len(full.whole))
    for ch, frames in spoken.items():
        told = [record for record in read(path) if isinstance(record, Frame) and record.ch == ch]
        left = iter(frames)
        for frame in told:
            assert any(frame.raw == whole or (frame.cut and whole.startswith(frame.raw)) for whole in left)


LIMITED = """
import os, resource, sys
sys.path.insert(0, sys.argv[2])
from mcpspy.capture.writer import create
said = []
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))
writer = create({"name": "x", "tool": "t", "transport": "stdio"}, output=sys.argv[1], folder=None, environ={},
                wall=0, say=said.append)
for t in range(40):
    if t == 30:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    writer.frame(1, t, b"%d " % t + b"x" * 100, False, False)
writer.end(40, 0, None)
print(len(said))
"""


def test_a_file_that_reaches_its_size_limit_goes_on_when_it_may(tmp_path):
    """With a real limit, not a fake: a short write, then EFBIG."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(module.__file__)))
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "a"), root]
    run = limits.run(command, capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("1\n", "")
    found = read(tmp_path / "a")
    frames = [int(record.raw.split()[0]) for record in found if isinstance(record, Frame)]
    (gap,) = [record for record in found if isinstance(record, Gap)]
    assert frames == [*range(len(frames) - 10), *range(30, 40)]
    assert gap.lost == 30 - (len(frames) - 10)
    assert found[-1] == End(found[-1].n, 40, code=0)


# Where it is written.


def test_files_are_for_the_user_alone(tmp_path):
    """Files have mode 0600, and the directories that we create have 0700."""
    writer, _ = make(tmp_path, output=None, folder=str(tmp_path / "a" / "b"))
    assert os.stat(writer.path).st_mode & 0o777 == 0o600
    assert os.stat(tmp_path / "a").st_mode & 0o777 == os.stat(tmp_path / "a" / "b").st_mode & 0o777 == 0o700
    writer, _ = make(tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o600


def test_a_capture_is_live_while_its_writer_is(tmp_path):
    writer, _ = make(tmp_path / "a")
    capture = Capture(str(tmp_path / "a"))
    assert capture.live
    finish(writer, 1)
    assert not capture.live


def test_a_finished_capture_is_replaced(tmp_path):
    first, _ = make(tmp_path / "a")
    first.frame(1, 1, b"old" * 1000, more=False, cut=False)
    finish(first, 2)
    second, said = make(tmp_path / "a")
    second.frame(1, 1, b"new", more=False, cut=False)
    assert (second.path, said) == (str(tmp_path / "a"), [])
    assert raws(tmp_path / "a") == [b"new"]


def test_a_capture_whose_relay_was_killed_is_replaced(tmp_path):
    first, _ = make(tmp_path / "a")
    abandon(first)
    second, said = make(tmp_path / "a")
    assert (second.path, said) == (str(tmp_path / "a"), [])


def test_an_empty_file_is_taken(tmp_path):
    (tmp_path / "a").touch()
    assert make(tmp_path / "a")[0].path == str(tmp_path / "a")


@pytest.mark.parametrize("content", [b"precious", b"{}\n", b'{"mcpspy"', b"\n"])
def test_a_file_of_somebody_else_is_left_alone(tmp_path, content):
    (tmp_path / "a.jsonl").write_bytes(content)
    writer, said = make(tmp_path / "a.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == content
    assert writer.path != str(tmp_path / "a.jsonl")
    assert os.path.dirname(writer.path) == str(tmp_path)
    assert writer.path.endswith(".jsonl")
    assert said == [f"{tmp_path / 'a.jsonl'} is not a capture; this capture goes to {writer.path}"]
    assert os.stat(writer.path).st_mode & 0o777 == 0o600
    assert Capture(writer.path).live


def test_a_live_capture_is_left_alone(tmp_path):
    first, _ = make(tmp_path / "a")
    first.frame(1, 1, b"mine", more=False, cut=False)
    second, said = make(tmp_path / "a")
    assert raws(tmp_path / "a") == [b"mine"]
    assert said == [f"{tmp_path / 'a'} is a live capture; this capture goes to {second.path}"]
    assert Capture(second.path).live


@pytest.mark.parametrize("where", ["a directory", "a FIFO", "a device", "below a file", "in no directory"])
def test_where_no_capture_can_be_it_is_said_once_and_nothing_hangs(tmp_path, where):
    path = tmp_path / "a"
    if where == "a directory":
        path.mkdir()
    elif where == "a FIFO":
        os.mkfifo(path)
    elif where == "a device":
        path = os.devnull
    elif where == "below a file":
        path.touch()
        path = path / "b"
    else:
        path = path / "b"
    writer, said = make(path)
    assert writer is None
    assert len(said) == 1
    assert str(path) in said[0]
    assert said[0].endswith("traffic goes on, but is not recorded")


@pytest.mark.parametrize("how", ["below a file", "read-only"])
def test_a_directory_that_cannot_be_written_is_said_once(tmp_path, monkeypatch, how):
    """S-16."""
    (tmp_path / "file").touch()

    def refuse(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    if how == "read-only":
        monkeypatch.setattr(module.os, "open", refuse)
    folder = tmp_path / "file" / "x" if how == "below a file" else tmp_path
    writer, said = make(tmp_path, output=None, folder=str(folder))
    assert writer is None
    assert len(said) == 1
    assert str(folder) in said[0]


def test_a_sibling_that_cannot_be_made_is_said_once(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"precious")
    real = os.open

    def refuse(path, flags, *mode):
        if flags & os.O_EXCL:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real(path, flags, *mode)

    monkeypatch.setattr(module.os, "open", refuse)
    writer, said = make(tmp_path / "a")
    assert writer is None
    assert len(said) == 1


def test_no_descriptor_is_left_open(tmp_path):
    (tmp_path / "a").write_bytes(b"precious")
    os.mkfifo(tmp_path / "fifo")
    before = set(os.listdir("/dev/fd"))
    finish(make(tmp_path / "new")[0], 1)
    assert make(tmp_path / "fifo")[0] is None
    assert make(tmp_path / "missing" / "a")[0] is None
    writer, _ = make(tmp_path / "a")
    finish(writer, 1)
    assert set(os.listdir("/dev/fd")) == before


def test_a_name_that_another_capture_has_by_chance_is_drawn_again(tmp_path, monkeypatch):
    drawn = iter(["taken.jsonl", "taken.jsonl", "free.jsonl"])
    monkeypatch.setattr("mcpspy.capture.writer.file_name", lambda *_: next(drawn))
    first, second = (make(None, output=None, folder=str(tmp_path), environ={}, wall=WALL) for _ in range(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["free.jsonl", "taken.jsonl"]
    for writer, said in (first, second):
        finish(writer)
        assert not said


def test_a_header_that_cannot_be_written_leaves_no_file(tmp_path):
    """A lone surrogate that encodes no byte never occurs in an argument, but files of other programs may have one."""
    for place in ({"output": None, "folder": str(tmp_path)}, {"output": str(tmp_path / "x.jsonl"), "folder": None}):
        with pytest.raises(UnicodeEncodeError):
            create(HEADER | {"argv": ["\ud800"]}, environ={}, wall=WALL, say=pytest.fail, **place)
    assert not os.listdir(tmp_path)


# A capture that continues in a new file.

SECOND = 1_000_000_000


def parts(path):
    """The files of a capture, in order."""
    return [path, *sorted(path.parent.glob(f"{path.stem}-*{path.suffix}"))]


@pytest.mark.parametrize(
    ("harm", "what"), [("truncate", "was truncated"), ("remove", "was removed"), ("replace", "was removed")]
)
def test_a_capture_that_is_harmed_while_it_is_written_goes_on_in_a_sibling(tmp_path, harm, what):
    """A-10: it was lost without a message."""
    path = tmp_path / "a.jsonl"
    writer, said = make(path)
    writer.open(1, 0, "client", "stdin", "lines")
    writer.frame(1, 1, b"before", more=False, cut=False)
    if harm == "truncate":
        os.truncate(path, 0)
    elif harm == "remove":
        path.unlink()
    else:
        (tmp_path / "other").write_text("another file")
        (tmp_path / "other").rename(path)
    writer.frame(1, 2, b"not noticed yet", more=False, cut=False)
    writer.frame(1, 2 + SECOND, b"after", more=False, cut=False)
    finish(writer)
    (sibling,) = tmp_path.glob("a-2.jsonl")
    assert said == [f"the capture {path} {what} while it was written; recording goes on in {sibling}"]
    opened, gap, frame, end = Capture(str(sibling)).records()
    assert (opened.ch, opened.role) == (1, "stdin"), "it can be read by itself"
    assert (gap.lost, gap.why) == (1, f"a.jsonl {what}")
    assert (frame.raw, frame.t) == (b"after", 2 + SECOND)
    assert isinstance(end, End)
    assert Capture(str(sibling)).header.name == "weather"
    assert harm != "replace" or path.read_text() == "another file"


def test_a_capture_that_is_whole_is_left_as_it_is(tmp_path):
    """A-10: more than a second passes between two checks of the file."""
    path = tmp_path / "a"
    writer, said = make(path)
    for second in range(5):
        writer.frame(1, second * SECOND * 2, b"{}", more=False, cut=False)
    finish(writer)
    assert (parts(path), said) == ([path], [])


def test_a_capture_without_a_place_to_go_on_is_reported_once(tmp_path):
    """A-10; S-01."""
    folder = tmp_path / "folder"
    folder.mkdir()
    writer, said = make(folder / "a")
    (folder / "a").unlink()
    folder.rmdir()
    for second in range(1, 5):
        writer.frame(1, second * SECOND * 2, b"{}", more=False, cut=False)
    finish(writer)
    (sentence,) = said
    assert "was removed while it was written, and no other file can be created" in sentence


def test_a_frame_in_pieces_is_not_joined_across_a_harmed_file(tmp_path):
    path = tmp_path / "a.jsonl"
    writer, _ = make(path)
    writer.frame(1, 1, b"a", more=True, cut=False)
    path.unlink()
    writer.frame(1, 1 + SECOND, b"b", more=True, cut=False)
    writer.frame(1, 2 + SECOND, b"c", more=False, cut=False)
    writer.frame(1, 3 + SECOND, b"whole", more=False, cut=False)
    finish(writer)
    frames = [it.raw for it in Capture(str(tmp_path / "a-2.jsonl")).records() if isinstance(it, Frame)]
    assert frames == [b"whole"]


def test_a_long_capture_goes_on_in_new_files(tmp_path):
    """A-04: `--max-capture`; nothing is lost, and no frame is divided."""
    path = tmp_path / "a.jsonl"
    writer, said = make(path, limit=1000)
    writer.open(1, 0, "client", "stdin", "lines")
    writer.open(2, 0, "server", "stdout", "lines")
    for number in range(100):
        writer.frame(1 + number % 2, number, b"%d" % number + b"x" * 30, more=False, cut=False)
    writer.close(1, 100, "eof")
    for number in range(101, 130):
        writer.frame(2, number, b"%d" % number, more=number < 120, cut=False)
    finish(writer)
    files = [path, *(tmp_path / f"a-{part}.jsonl" for part in range(2, len(list(tmp_path.iterdir())) + 1))]
    assert len(files) > 3
    assert said == []
    assert all(file.stat().st_size < 2500 for file in files)
    headers = [json.loads(lines(file)[0]) for file in files]
    for part, (before, after) in enumerate(itertools.pairwise(headers)):
        assert after["continues"]["id"] == before["id"]
        assert after["continues"]["file"] == files[part].name
        assert after["started"] == before["started"]
        last = json.loads(lines(files[part])[-2])
        assert (last["kind"], last["file"]) == ("continued", files[part + 1].name)
    raws = [it.raw for it in Capture(str(path)).records() if isinstance(it, Frame)]
    assert raws[:100] == [b"%d" % number + b"x" * 30 for number in range(100)]
    assert raws[100] == b"".join(b"%d" % number for number in range(101, 121))
    assert len(raws) == 100 + 1 + 9
    again = [it.ch for it in Capture(str(files[1])).records() if isinstance(it, Open)]
    assert again == [1, 2], "channels that are open are opened again"
    assert [it.ch for it in Capture(str(files[-1])).records() if isinstance(it, Open)] == [2]


def test_a_continuation_whose_name_is_taken_gets_another(tmp_path):
    (tmp_path / "a-2.jsonl").write_text("mine")
    writer, _ = make(tmp_path / "a.jsonl", limit=10)
    for number in range(2):
        writer.frame(1, number, b"x", more=False, cut=False)
    finish(writer)
    assert (tmp_path / "a-2.jsonl").read_text() == "mine"
    assert len(list(tmp_path.glob("a-2-*.jsonl"))) == 1
