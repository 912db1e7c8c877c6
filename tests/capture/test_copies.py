"""Compressed captures and standard input: copied before they are read, with a limit, and gone at the end."""

import gzip
import io
import json
import os
import sys
import zlib

import pytest

from mcpspy.capture import copies
from mcpspy.capture.copies import GZIP, CopiedFile, opened, report_damage
from mcpspy.capture.format import LOST
from mcpspy.capture.index import Index
from mcpspy.capture.parts import JoinedFiles
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gap
from mcpspy.errors import CaptureError, NotACapture
from tests import limits
from tests.each import each
from tests.transcript import capture

SESSION = """
    = 2025-06-18
    > 1 tools/list
    < 1 = {"tools":[]}
"""


@pytest.fixture
def plain(tmp_path):
    return capture(tmp_path / "a.jsonl", SESSION)


def compressed(path, content, name="a.jsonl.gz"):
    """Write compressed bytes beside a capture, and return the path."""
    made = os.path.join(os.path.dirname(path), name)
    with open(made, "wb") as file:
        file.write(content)
    return made


def content(path):
    with open(path, "rb") as file:
        return file.read()


def packed(path, name="a.jsonl.gz"):
    return compressed(path, gzip.compress(content(path)), name)


class Stream:
    """A standard input with these bytes."""

    def __init__(self, raw, *, terminal=False):
        self.buffer = io.BytesIO(raw)
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@each("name", ["a.jsonl.gz", "b.jsonl", "c"])
def test_the_bytes_show_that_a_file_is_compressed_not_its_name(plain, name):
    path = packed(plain, name)
    assert content(path).startswith(GZIP)
    assert list(Capture(path).records()) == list(Capture(plain).records())
    assert (Capture(path).copied, Capture(path).live, Capture(path).paths) == (True, False, [path])
    assert Capture(path).size == os.path.getsize(plain)


def test_a_plain_file_with_the_suffix_is_read_as_it_is(plain):
    path = compressed(plain, content(plain))
    assert list(Capture(path).records()) == list(Capture(plain).records())
    assert not Capture(path).copied


def test_a_compressed_file_has_the_index_of_the_plain_one(plain):
    one, other = Index(plain), Index(packed(plain))
    while one.grow() | other.grow():
        pass
    assert (one.rows, one.lines, one.size) == (other.rows, other.lines, other.size)
    assert [one.record(n) for n in one.rows] == [other.record(n) for n in other.rows]
    assert other.state == "ended"
    one.close()
    other.close()


def test_several_members_are_one_capture(plain):
    raw = content(plain)
    path = compressed(plain, gzip.compress(raw[:100]) + gzip.compress(raw[100:]) + b"\0" * 8)
    assert list(Capture(path).records()) == list(Capture(plain).records())


def test_a_header_needs_only_the_beginning_of_a_file(plain, monkeypatch):
    raw = content(plain) + b"".join(b'{"kind":"later","x":"%032x"}\n' % hash(n) for n in range(100_000))
    path = compressed(plain, gzip.compress(raw))
    monkeypatch.setattr(copies, "LARGEST", 1 << 20)
    assert Capture(path).header == Capture(plain).header
    assert Capture(path).size == len(raw)
    with pytest.raises(CaptureError, match="holds more than"):
        list(Capture(path).records())


@each(
    "damage, why",
    [
        (lambda raw: raw[:-20], "ends too early"),
        (lambda raw: raw[:-8] + b"\1\2\3\4" + raw[-4:], "is damaged"),
        (lambda raw: raw + b"no member", "is damaged"),
    ],
)
def test_of_a_damaged_file_everything_before_the_damage_is_read(tmp_path, damage, why):
    lines = "".join(f'> {n} tools/call {{"name":"t{n * 7919 % 1000}"}}\n' for n in range(1, 400))
    path = capture(tmp_path / "a.jsonl", lines)
    whole = [record for record in Capture(path).records() if isinstance(record, Frame)]
    *found, gap = Capture(compressed(path, damage(gzip.compress(content(path))))).records()
    assert isinstance(gap, Gap)
    assert gap.why.startswith(LOST)
    assert why in gap.why
    frames = [record for record in found if isinstance(record, Frame)]
    assert frames == whole[: len(frames)]
    assert len(frames) > 300
    assert gap.t == found[-1].t


def test_damage_is_reported_once(plain):
    told = []
    report_damage(told.append)
    path = compressed(plain, gzip.compress(content(plain))[:-9])
    for _ in range(3):
        list(Capture(path).records())
    report_damage(lambda _: None)
    assert told == [f"{path}: the gzip data ends too early; everything before that is read"]


def test_an_index_ends_with_the_same_gap(plain):
    raw = zlib.compressobj(9, wbits=31)
    index = Index(compressed(plain, raw.compress(content(plain)[:-30]) + raw.flush(zlib.Z_SYNC_FLUSH)))
    while index.grow():
        pass
    last = index.record(index.rows[-1])
    assert isinstance(last, Gap)
    assert LOST in last.why
    index.close()


@each("raw", [GZIP, gzip.compress(b'{"mcpspy":1')[:-12], gzip.compress(b'{"mcpspy":1,')[:12]])
def test_damage_in_the_header_leaves_no_capture(plain, raw):
    with pytest.raises(NotACapture, match=r"a.jsonl.gz is not a capture: the gzip data .* before that"):
        Capture(compressed(plain, raw))


def test_what_is_too_large_is_one_sentence_with_the_limit(plain, monkeypatch):
    monkeypatch.setattr(copies, "LARGEST", 1_000_000)
    path = compressed(plain, gzip.compress(content(plain) + b"\0" * 5_000_000))
    for read in (lambda: list(Capture(path).records()), lambda: Index(path), lambda: Index(path)):
        with pytest.raises(CaptureError, match=r"a.jsonl.gz holds more than the 1.0 MB .* and read that file"):
            read()


def test_a_copy_leaves_room_on_the_disk(plain, monkeypatch):
    monkeypatch.setattr(copies, "SPARED", 1 << 60)
    path = compressed(plain, gzip.compress(content(plain) + b"\0" * (20 << 20)))
    with pytest.raises(CaptureError, match="is full: make room, or set TMPDIR"):
        list(Capture(path).records())


def test_a_disk_that_is_full_is_one_sentence(plain, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(CaptureError, match=r"temporary file \(No space left on device\): .* set TMPDIR"):
        Capture(packed(plain))


def test_a_directory_that_cannot_be_written_is_one_sentence(plain, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", os.path.join(os.path.dirname(plain), "none"))
    with pytest.raises(CaptureError, match=r"cannot copy .*a.jsonl.gz into a temporary file: No such file"):
        Capture(packed(plain))


def test_a_copy_is_in_no_directory(plain, tmp_path, monkeypatch):
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    with JoinedFiles(packed(plain)) as file:
        assert file.read(10) == content(plain)[:10]
        assert file.copied
        assert list(folder.iterdir()) == []


def test_a_file_that_is_replaced_is_copied_again(plain, tmp_path):
    path = packed(plain)
    before = Capture(path).header.id
    other = capture(tmp_path / "b.jsonl", SESSION)
    with open(path, "wb") as file:
        file.write(gzip.compress(content(other) + b"\n"))
    assert Capture(path).header.id == Capture(other).header.id != before


def test_more_files_than_are_kept_can_be_open(plain, tmp_path):
    paths = [packed(plain, f"{n}.gz") for n in range(20)]
    files = [JoinedFiles(path) for path in paths]
    assert {file.read(100) for file in files} == {content(plain)[:100]}
    assert {file.read(100) for file in files} == {content(plain)[100:200]}
    for file in files:
        file.close()


def test_a_copied_file_is_read_like_a_file(plain):
    file = opened(packed(plain))
    assert isinstance(file, CopiedFile)
    raw = content(plain)
    assert (file.seek(-5, os.SEEK_END), file.read(), file.read()) == (len(raw) - 5, raw[-5:], b"")
    assert (file.seek(3), file.seek(4, os.SEEK_CUR), file.read(2), file.tell()) == (3, 7, raw[7:9], 9)
    assert (file.size, file.stated_size, file.readable(), file.seekable()) == (len(raw), len(raw), True, True)
    file.close()


@each("packs", [bytes, gzip.compress])
def test_standard_input_is_read_once_to_its_end(plain, monkeypatch, packs):
    stream = Stream(packs(content(plain)))
    monkeypatch.setattr(sys, "stdin", stream)
    for _ in range(2):
        assert list(Capture("-").records()) == list(Capture(plain).records())
    assert (Capture("-").paths, Capture("-").live, Capture("-").copied) == ([], False, True)
    assert Capture("-").size == os.path.getsize(plain)


@each(
    "stream, why",
    [
        (None, "standard input is closed"),
        (Stream(b"", terminal=True), "standard input is a terminal: redirect it"),
        (Stream(b""), "standard input is empty"),
        (Stream(b"{}\n"), "standard input is not a capture"),
        (Stream(GZIP), "standard input is not a capture: the gzip data ends too early"),
    ],
)
def test_a_standard_input_without_a_capture_is_one_sentence(monkeypatch, stream, why):
    monkeypatch.setattr(sys, "stdin", stream)
    with pytest.raises(CaptureError, match=why):
        Capture("-")


def test_all_of_a_capture_can_be_copied_at_once(plain):
    done = []
    Capture(packed(plain)).copy(done.append)
    Capture(plain).copy(done.append)
    assert sum(done) == os.path.getsize(plain)


def test_other_processes_may_read_on(tmp_path):
    """Workers that are forked share the descriptors of this process."""
    paths = []
    for n in range(4):
        lines = "".join(f'> {i} tools/call {{"name":"t{i * 7919 % 9973}"}}\n' for i in range(2000))
        paths.append(packed(capture(tmp_path / f"{n}.jsonl", lines), f"{n}.jsonl.gz"))
    code = f"""
import sys
from mcpspy.capture.reader import Capture
from mcpspy.process.workers import mapped
paths = {paths!r}
[Capture(path) for path in paths]
work = lambda path, advance: sum(1 for _ in Capture(path).records())
print(mapped(work, paths, print, 2))
"""
    done = limits.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [2004] * 4
