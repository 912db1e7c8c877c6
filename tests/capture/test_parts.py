"""A capture that continues in further files is read as one (A-04)."""

import errno
import io
import json
import os

import pytest

from mcpspy.capture import copies
from mcpspy.capture.index import Index
from mcpspy.capture.listing import captures, delete
from mcpspy.capture.parts import JoinedFiles
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End, Frame, Open
from mcpspy.capture.writer import create
from mcpspy.errors import CaptureError
from mcpspy.foreign_file import open_foreign
from tests.memory import objects_in
from tests.transcript import WALL

HEADER = {"tool": "mcpspy 0.1.0", "transport": "stdio", "name": "weather", "argv": ["node"]}
LINE = b'{"jsonrpc":"2.0","method":"notifications/n%d"}'


def begin(path, limit=2000):
    said = []
    writer = create(dict(HEADER), output=str(path), folder=None, environ={}, wall=WALL, say=said.append, limit=limit)
    writer.open(1, 0, "client", "stdin", "lines")
    writer.open(2, 0, "server", "stdout", "lines")
    return writer


def write(writer, start, stop):
    for number in range(start, stop):
        raw = LINE % number
        writer.frame(1 + number % 2, number, raw[:20], more=True, cut=False)
        writer.frame(1 + number % 2, number, raw[20:], more=False, cut=False)


def written(path, limit=2000, frames=100):
    writer = begin(path, limit)
    write(writer, 0, frames)
    writer.end(frames, 0, None)
    return path


def told(records):
    """Return records without their line numbers: lines that name the next file shift these."""
    return [(type(record), record.t, getattr(record, "raw", None), getattr(record, "ch", None)) for record in records]


def test_several_files_read_as_one_large_one(tmp_path):
    whole = written(tmp_path / "whole.jsonl", limit=None)
    several = written(tmp_path / "parts.jsonl")
    assert len(list(tmp_path.glob("parts-*.jsonl"))) > 3
    found = list(Capture(str(several)).records())
    assert told(found) == told(Capture(str(whole)).records())
    assert sum(isinstance(record, Open) for record in found) == 2, "channels that were opened again are not told twice"
    assert len({record.n for record in found}) == len(found), "each has an address of its own"
    assert isinstance(found[-1], End)


def test_the_index_finds_what_the_reader_reads(tmp_path):
    path = str(written(tmp_path / "a.jsonl"))
    index = Index(path)
    while index.grow(777):
        pass
    frames = [record for record in Capture(path).records() if isinstance(record, Frame)]
    assert [index.record(record.n) for record in frames] == frames
    assert index.state == "ended"
    index.close()


def test_a_live_capture_is_followed_from_file_to_file(tmp_path):
    path = tmp_path / "a.jsonl"
    writer = begin(path)
    numbers = iter(range(1000))

    def wait():
        number = next(numbers)
        if number < 60:
            write(writer, number, number + 1)
        elif number == 60:
            writer.end(1000, 0, None)

    found = [record.raw for record in Capture(str(path)).follow(wait) if isinstance(record, Frame)]
    assert found == [LINE % number for number in range(60)]
    assert os.path.exists(tmp_path / "a-2.jsonl")


def test_a_capture_is_live_while_its_last_file_is(tmp_path):
    path = tmp_path / "a.jsonl"
    writer = begin(path)
    write(writer, 0, 50)
    assert writer.path != str(path)
    assert Capture(str(path)).live
    writer.end(100, 0, None)
    assert not Capture(str(path)).live


def test_a_later_file_can_be_read_by_itself(tmp_path):
    written(tmp_path / "a.jsonl")
    capture = Capture(str(tmp_path / "a-2.jsonl"))
    first, second, *frames = capture.records()
    assert (first.role, second.role) == ("stdin", "stdout")
    assert capture.header.continues == Capture(str(tmp_path / "a.jsonl")).header.id
    assert frames[0].raw.startswith(b'{"jsonrpc"')


def test_a_directory_lists_it_once_and_deletes_all_of_it(tmp_path):
    written(tmp_path / "a.jsonl")
    written(tmp_path / "b.jsonl", limit=None)
    sizes = [file.stat().st_size for file in tmp_path.glob("a*.jsonl")]
    by_name = {os.path.basename(listed.capture.path): listed for listed in captures(str(tmp_path))}
    assert set(by_name) == {"a.jsonl", "b.jsonl"}
    assert by_name["a.jsonl"].size == sum(sizes)
    assert delete(by_name["a.jsonl"])
    assert [file.name for file in tmp_path.iterdir()] == ["b.jsonl"]


def test_a_file_whose_beginning_was_deleted_is_listed_by_itself(tmp_path):
    written(tmp_path / "a.jsonl", frames=30)
    (tmp_path / "a.jsonl").unlink()
    (listed,) = captures(str(tmp_path))
    assert os.path.basename(listed.capture.path) == "a-2.jsonl"


@pytest.mark.parametrize(
    "name",
    ["../a-2.jsonl", "/etc/passwd", "", ".", "..", "missing.jsonl", "a.jsonl", 5, None, ["a"], "other.jsonl", "folder"],
)
def test_a_hostile_name_of_the_next_file_leads_nowhere(tmp_path, name):
    """A file is read only if it is in the same directory and continues this capture."""
    written(tmp_path / "other.jsonl", limit=None)
    (tmp_path / "folder").mkdir()
    path = written(tmp_path / "a.jsonl", limit=None, frames=3)
    with path.open("ab") as file:
        file.write(json.dumps({"kind": "continued", "t": 5, "file": name}, separators=(",", ":")).encode() + b"\n")
    capture = Capture(str(path))
    assert len([record for record in capture.records() if isinstance(record, Frame)]) == 3
    assert capture.paths == [str(path)]


@pytest.mark.parametrize(
    "continues", [None, 5, {}, {"id": 1}, {"id": "ID"}, {"id": "ID", "lines": "x"}, {"id": "ID", "lines": 9999}]
)
def test_a_damaged_header_of_the_next_file_ends_the_capture_there(tmp_path, continues):
    path = written(tmp_path / "a.jsonl", frames=30)
    header, *rest = (tmp_path / "a-2.jsonl").read_bytes().split(b"\n")
    fields = json.loads(header)
    if isinstance(continues, dict) and continues.get("id") == "ID":
        continues["id"] = fields["continues"]["id"]
    fields["continues"] = continues
    (tmp_path / "a-2.jsonl").write_bytes(b"\n".join([json.dumps(fields).encode(), *rest]))
    assert Capture(str(path)).paths == [str(path)]
    assert list(Capture(str(path)).records())


def test_what_cannot_be_read_is_said(tmp_path):
    for name in ("missing", "."):
        with pytest.raises(CaptureError, match=r"cannot read|Is a directory"):
            JoinedFiles(str(tmp_path / name)).read(1)


def test_a_next_file_that_is_nested_deeply_ends_the_capture_there(tmp_path):
    """A-07."""
    path = written(tmp_path / "a.jsonl", frames=30)
    (tmp_path / "a-2.jsonl").write_bytes(b"[" * 100_000)
    assert Capture(str(path)).paths == [str(path)]


def test_files_that_name_each_other_are_read_once(tmp_path):
    for name, other in (("a", "b"), ("b", "a")):
        header = {"mcpspy": 1, "id": name, "started": "2026-11-20T19:15:00.123456Z", **HEADER}
        header["continues"] = {"id": other, "file": f"{other}.jsonl", "lines": 1}
        frame = {"kind": "frame", "ch": 1, "t": 1, "raw": name}
        after = {"kind": "continued", "t": 2, "file": f"{other}.jsonl"}
        lines = [json.dumps(it, separators=(",", ":")) for it in (header, frame, after)]
        (tmp_path / f"{name}.jsonl").write_text("".join(line + "\n" for line in lines))
    assert [it.raw for it in Capture(str(tmp_path / "a.jsonl")).records()] == [b"a", b"b"]
    assert captures(str(tmp_path)) == captures(str(tmp_path))


def test_a_capture_of_many_files_needs_few_descriptors(tmp_path):
    path = written(tmp_path / "a.jsonl", limit=200, frames=120)
    assert len(Capture(str(path)).paths) > 50
    with JoinedFiles(str(path)) as files:
        while files.read(100):
            assert len(objects_in(files, io.RawIOBase)) <= 3
        for place in range(0, files.size, 1000):
            files.seek(place)
            assert files.read(100)
            assert len(objects_in(files, io.RawIOBase)) <= 3
    assert len([it for it in Capture(str(path)).records() if isinstance(it, Frame)]) == 120


def test_a_next_file_that_cannot_be_read_is_an_error_and_no_end(tmp_path, monkeypatch):
    """A missing descriptor, for example, must not look like the end of the capture."""
    path = written(tmp_path / "a.jsonl", frames=30)
    real = open

    def refused(name, *mode, **options):
        if str(name).endswith("a-2.jsonl"):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        return real(name, *mode, **options)

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(CaptureError, match="Too many open files"):
        list(Capture(str(path)).records())


def test_a_capture_that_is_written_on_in_another_file_is_not_replaced(tmp_path):
    """It is live, and a live capture is never replaced."""
    path = tmp_path / "a.jsonl"
    writer = begin(path)
    write(writer, 0, 50)
    before = path.read_bytes()
    said = []
    second = create(dict(HEADER), output=str(path), folder=None, environ={}, wall=WALL, say=said.append)
    assert second.path != str(path)
    assert "is a live capture" in said[0]
    second.end(1, 0, None)
    writer.end(100, 0, None)
    assert path.read_bytes() == before


def test_what_is_repeated_in_each_file_does_not_count_for_its_size(tmp_path):
    """A-04: otherwise each record would start a new file when many channels are open."""
    writer = begin(tmp_path / "a.jsonl", limit=2000)
    for channel in range(3, 60):
        writer.open(channel, 0, "client", "stdin", "lines")
    write(writer, 0, 100)
    writer.end(100, 0, None)
    assert len(list(tmp_path.iterdir())) < 12


class FailingFile:
    """A file that cannot be read from a certain moment on."""

    failing = False

    def __init__(self, *args, **options):
        self._file = open_foreign(*args, **options)

    def __getattr__(self, name):
        return getattr(self._file, name)

    def read(self, size):
        if self.failing:
            raise OSError(errno.EIO, "Input/output error")
        return self._file.read(size)


def test_a_22_an_error_of_reading_names_the_file(tmp_path, monkeypatch):
    path = str(written(tmp_path / "a.jsonl", limit=None))
    monkeypatch.setattr(copies, "open_foreign", FailingFile)
    capture, index = Capture(path), Index(path)
    assert index.read(10, 10)
    monkeypatch.setattr(FailingFile, "failing", True)
    assert index.read(10, 10) == b""
    index.close()
    for read in (lambda: list(capture.records()), lambda: capture.paths, lambda: Capture(path)):
        with pytest.raises(CaptureError, match=f"cannot read {path}: Input/output error"):
            read()
