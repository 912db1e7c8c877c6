"""What the companion prints, and when; tests/relay/stdio/test_companion.py tests how `wrap` starts and ends it."""

import os
import socket
import sys

import pytest

from mcpspy.report import companion
from mcpspy.rules.judge import Judge
from tests import limits
from tests.report.captures import faulty, fine


@pytest.fixture
def stderr(monkeypatch):
    """Return a function that replaces stderr with a descriptor until the test ends."""
    kept = os.dup(2)
    yield lambda fd: os.dup2(fd, 2)
    os.dup2(kept, 2)
    os.close(kept)


def said(path, monkeypatch, stderr, tmp_path):
    with open(tmp_path / "said", "wb") as file:
        stderr(file.fileno())
        monkeypatch.setattr(companion.sys, "argv", ["-c", path, str(os.getppid())])
        monkeypatch.setattr(companion, "die_with", lambda relay: None)
        companion.main()
    return (tmp_path / "said").read_text().splitlines()


def test_errors_are_said_and_nothing_less(tmp_path, monkeypatch, stderr):
    lines = said(faulty(tmp_path / "a"), monkeypatch, stderr, tmp_path)
    assert [line.rpartition("[")[2] for line in lines] == ["tools/arguments]", "schema/invalid]"]
    assert lines[0].startswith("mcpspy: #10 client: arguments of echo violate its inputSchema")


def test_a_session_without_an_error_is_passed_over_in_silence(tmp_path, monkeypatch, stderr):
    assert said(fine(tmp_path / "a"), monkeypatch, stderr, tmp_path) == []


def test_what_nobody_has_read_is_counted_in_a_pipe(stderr):
    read, write = os.pipe()
    stderr(write)
    assert companion.unread() == 0
    os.write(2, b"x" * 5000)
    assert companion.unread() == 5000
    limits.read(read, 1000)
    assert companion.unread() == 4000
    os.close(read)
    os.close(write)


@pytest.mark.skipif(sys.platform != "linux", reason="asks as Linux does")
def test_what_nobody_has_read_is_counted_in_a_socket(stderr):
    """Node connects its child processes through sockets."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        stderr(ours.fileno())
        assert companion.unread() == 0
        os.write(2, b"x" * 5000)
        assert companion.unread() >= 5000  # the kernel also counts its own overhead
        theirs.recv(5000)
        assert companion.unread() == 0


def test_a_file_is_never_full_of_what_nobody_has_read(tmp_path, stderr):
    with open(tmp_path / "log", "wb") as file:
        stderr(file.fileno())
        os.write(2, b"x" * 5000)
        assert companion.unread() == 0


def test_a_line_waits_until_there_is_room_for_it(monkeypatch, stderr):
    read, write = os.pipe()
    stderr(write)
    os.write(2, b"x" * 5000)
    naps = []

    def nap(seconds):
        naps.append(seconds)
        if len(naps) == 3:
            limits.read(read, 5000)

    monkeypatch.setattr(companion.time, "sleep", nap)
    companion.say("mcpspy: late\n", os.getppid())
    assert len(naps) == 3
    assert limits.read(read, 100) == b"mcpspy: late\n"
    os.close(read)
    os.close(write)


def test_a_companion_whose_relay_is_gone_waits_for_nobody(monkeypatch, stderr):
    read, write = os.pipe()
    stderr(write)
    os.write(2, b"x" * 5000)

    class Ended(Exception):
        pass

    def end(status):
        raise Ended

    monkeypatch.setattr(companion.os, "_exit", end)
    with pytest.raises(Ended):
        companion.say("mcpspy: never said\n", relay=1 << 30)
    monkeypatch.setattr(companion.sys, "platform", "darwin")  # else this process would end with its parent
    with pytest.raises(Ended):
        companion.die_with(1 << 30)
    os.close(read)
    os.close(write)


def test_a_fault_of_our_own_is_one_line(tmp_path, monkeypatch, stderr):
    class Ended(Exception):
        pass

    def end(code):
        raise Ended(code)

    def break_(*_):
        raise KeyError("a\nb")

    monkeypatch.setattr(Judge, "feed", break_)
    monkeypatch.setattr(companion.os, "_exit", end)
    with pytest.raises(Ended):
        said(fine(tmp_path / "a"), monkeypatch, stderr, tmp_path)
    told = (tmp_path / "said").read_text()
    assert (told.count("\n"), "the check has ended (KeyError" in told) == (1, True)
