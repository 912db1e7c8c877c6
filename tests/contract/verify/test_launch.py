"""Processes are started, exchange lines, and are ended together with all their child processes."""

import os
import queue
import signal
import sys
import time

import pytest

from mcpspy.contract.verify import launch
from mcpspy.contract.verify.launch import Launched, end_text, orphans_adopted, past
from mcpspy.errors import SpawnError
from mcpspy.process.child import environment
from mcpspy.transport.link import Ended
from tests.contract.verify import PYTHON
from tests.contract.verify.conftest import alive


def program(text):
    return Launched([*PYTHON, "-c", text], environment())


def test_lines_come_whole_and_the_end_is_told():
    with program("import sys; print('one\\ntwo', end=''); print('aside', file=sys.stderr); sys.exit(3)") as process:
        assert [process.heard.get(timeout=20) for _ in range(3)] == [b"one", b"two", Ended("ended")]
        assert process.ended(20) == 3
    assert (bytes(process.read), bytes(process.logged)) == (b"one\ntwo", b"aside\n")


def test_what_is_sent_arrives_before_the_end_of_stdin():
    with program("import sys; print(len(sys.stdin.read()))") as process:
        process.send(b"x" * 300_000)
        process.close()
        assert process.heard.get(timeout=20) == b"300001"
    assert len(process.sent) == 300_001


def test_a_signal_is_sent_after_what_is_still_to_be_sent():
    """A client finishes its last message before it interrupts a server."""
    with program("import sys; print(flush=True); sys.stdin.buffer.read(300_001); sys.stdin.read()") as process:
        assert process.heard.get(timeout=20) == b""
        process.send(b"x" * 300_000)
        process.signal(signal.SIGTERM)
        assert process.ended(20) == -signal.SIGTERM
    assert len(process.sent) == 300_001


def test_a_server_that_does_not_read_can_be_sent_a_signal():
    with program("import os, time; os.close(0); print(flush=True); time.sleep(60)") as process:
        assert process.heard.get(timeout=20) == b""
        process.send(b"x" * 300_000)
        process.signal(signal.SIGTERM)
        assert process.ended(20) == -signal.SIGTERM


def test_nothing_is_waited_for_without_end():
    with program("import time; time.sleep(60)") as process:
        with pytest.raises(queue.Empty):
            process.heard.get(timeout=0.01)
        assert process.ended(0.01) is None


def test_a_process_that_writes_without_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(launch, "ROOM", 100_000)
    with program("while True: print('x' * 1000)") as process:
        while process.heard.get(timeout=20) != Ended("ended"):
            pass
        assert process.flooded


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives us orphans")
def test_what_left_the_group_is_ended_too(tmp_path):
    note = tmp_path / "pid"
    text = f"""if True:
        import subprocess, sys
        process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
        open({str(note)!r}, "w").write(str(process.pid))
    """
    with orphans_adopted(), program(text) as process:
        assert process.ended(20) == 0
        pid = int(note.read_text())
        assert alive(pid)
    assert not alive(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives us orphans")
def test_children_of_somebody_else_are_let_alone():
    other = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        with orphans_adopted(), program("pass"):
            pass
        assert alive(other)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)


def test_a_command_that_is_not_there():
    with pytest.raises(SpawnError, match="cannot start 'no-such-command': not found on PATH"):
        Launched(["no-such-command"], environment())


@pytest.mark.parametrize(
    ("code", "text", "sentence"),
    [
        (0, "exited with status 0", "exited with status 0"),
        (-15, "killed by SIGTERM", "was killed by SIGTERM"),
        (-63, "killed by signal 63", "was killed by signal 63"),
        (None, "still running after 5 s", "was still running after 5 s"),
    ],
)
def test_an_end_in_words(code, text, sentence):
    assert end_text(code, 5) == text
    assert past(text) == sentence


def test_killing_takes_no_time():
    begun = time.monotonic()
    with program("import time; time.sleep(60)"):
        pass
    assert time.monotonic() - begun < 20
