import os

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.errors import CaptureError
from mcpspy.importers import captures as recording
from mcpspy.importers.captures import Account, Captures, epoch, iso
from tests.each import each
from tests.importers.files import AT, told
from tests.transcript import descriptor

WALL = AT * 10**9
FIELDS = {"transport": "stdio", "argv": ["npx", "--token", "s3cr3t"]}


@pytest.fixture
def account():
    return Account("line")


@pytest.fixture
def captures(tmp_path, account):
    return Captures({"from": "a test"}, {"MCPSPY_CAPTURE_DIR": str(tmp_path)}, account, "file")


def test_a_server_has_one_capture_whose_lines_never_go_back_in_time(captures, account):
    for t, line in ((0, b"a"), (5_000_000, b"b"), (2_000_000, b"c")):
        captures.get("k", WALL + t, "weather", FIELDS).line("stdin", WALL + t, line)
    captures.get("k", WALL, "weather", FIELDS).gap(WALL, 2, "why")
    captures.end()
    [path] = account.paths
    assert told(Capture(path)) == ["0 client stdin a", "5 client stdin b", "5 client stdin c", "5 gap 2 why"]
    header = Capture(path).header
    assert (header.name, header.started, header.pid) == ("weather", "2026-03-17T10:00:00.000000Z", None)
    assert header.argv[2].startswith("«redacted:")
    assert not Capture(path).live


def test_a_server_that_was_finished_begins_anew(captures, account):
    captures.get("k", WALL, "weather", FIELDS)
    captures.finish("k")
    captures.finish("unknown")
    captures.get("k", WALL + 10**9, "weather", FIELDS)
    captures.end()
    assert len(account.paths) == 2


def test_a_file_of_too_many_servers_is_refused(captures, monkeypatch):
    monkeypatch.setattr(recording, "MOST", 2)
    for key in "ab":
        captures.get(key, WALL, key, FIELDS)
    with pytest.raises(CaptureError, match="more than 2 servers"):
        captures.get("c", WALL, "c", FIELDS)
    captures.end()


def test_a_place_that_cannot_be_written_is_an_error(tmp_path, account):
    (tmp_path / "file").touch()
    captures = Captures({}, {"MCPSPY_CAPTURE_DIR": str(tmp_path / "file" / "folder")}, account, "file")
    with pytest.raises(CaptureError, match=r"cannot write a capture to .*/file: [\w ]+$"):
        captures.get("k", WALL, "weather", FIELDS)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a disk that is always full")
def test_a_full_disk_is_an_error(captures):
    writer = captures.get("k", WALL, "weather", FIELDS).recording.sink
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, descriptor(writer))
    os.close(full)
    captures.get("k", WALL, "weather", FIELDS).line("stdin", WALL, b"a")
    with pytest.raises(CaptureError, match=r"cannot write the capture .*: No space left on device$"):
        captures.get("k", WALL, "weather", FIELDS)
    with pytest.raises(CaptureError):
        captures.end()


@each("text", ["2026-03-17T10:00:00Z", "2026-03-17T11:00:00.000000000+01:00", "2026-03-17T10:00:00"])
def test_times_are_read_with_their_zone(text):
    assert iso(text) == WALL


@each("bad", ["", "noon", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_time_of_other_days_is_none(bad):
    with pytest.raises(ValueError):  # noqa: PT011 (datetime raises some of them)
        iso(bad)


@each("bad", [float("nan"), float("inf"), -1.0, 0])
def test_a_number_that_is_no_time_is_refused(bad):
    with pytest.raises(ValueError, match="is not a time"):
        epoch(bad)
