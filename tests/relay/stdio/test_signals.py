"""Signals to `wrap` reach the server once and in order, are recorded, and end everything: S-06, C-01, C-02, A-05.

The server logs what it receives, in order. Every signal is handled before the server sees the end of stdin
(C-01), so a log that ends with EOF is complete.
"""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Signal
from tests import limits
from tests.optional import fork_terminal
from tests.relay.harness import LIMIT, python, running, until

ALL = ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT"]
ENDING = ALL[:4]

# Logs each signal and the end of stdin; a test can define `at(name)`, which runs after each signal.
SERVER = """
import os, signal, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def write(word):
    os.write(log, word.encode() + b"\\n")
def at(name): pass
def count(number, frame):
    name = signal.Signals(number).name
    write(name)
    at(name)
%s
for name in sys.argv[2].split(): signal.signal(getattr(signal, name), count)
os.write(1, b"ready\\n")
while os.read(0, 1): pass
write("EOF")
"""
ECHO = "def at(name): os.write(1, name.encode() + b'\\n')"
PAUSE = """
read = os.read
def until_a_signal(fd, count):
    got = read(fd, count)
    if not got:
        write("EOF")
        signal.pause()
    return got
"""


@pytest.fixture
def serve(wrap, tmp_path):
    """Start a server that logs, with extra lines of source; wait until signals to the group can be detected."""

    def start(extra=""):
        wrapped = wrap(*python(SERVER % extra), str(tmp_path / "log"), " ".join(ALL))
        assert wrapped.readline() == b"ready"
        wrapped.witness()
        wrapped.log = lambda: (tmp_path / "log").read_text().split()
        return wrapped

    return start


def signals(wrapped) -> list[tuple[str, str, bool]]:
    """Return the signals in the capture."""
    found = [record for record in wrapped.capture.records() if isinstance(record, Signal)]
    return [(signal.Signals(record.signal).name, record.to, record.forwarded) for record in found]


def handled(path: Path, count: int) -> None:
    """Wait until `wrap` has handled `count` signals; a server in the group may receive them earlier."""
    until(lambda: path.read_bytes().count(b'"kind":"signal"') >= count, f"the record of signal {count}")


def test_a_server_that_left_our_group_is_forwarded_what_the_group_gets(serve):
    """C-01: `timeout` creates a new group unless it already leads one, as without `wrap`."""
    wrapped = serve(extra="os.setpgid(0, 0)")
    os.killpg(wrapped.pid, signal.SIGTERM)
    wrapped.send_signal(signal.SIGINT)
    assert wrapped.finish() == (b"", b"", 0)
    assert sorted(wrapped.log()) == ["EOF", "SIGINT", "SIGTERM"]
    assert sorted(signals(wrapped)) == [("SIGINT", "process", True), ("SIGTERM", "group", True)]


def test_each_signal_to_us_or_to_the_group_reaches_the_server_once(serve):
    """S-06, C-01, C-02: the server has already received those to the group; an extra one would be read as the next."""
    wrapped = serve(extra=ECHO)
    sent = [(name, to) for name in ALL for to in ("process", "group")] * 12
    random.Random(16).shuffle(sent)  # noqa: S311 (the same in each run)
    for count, (name, to) in enumerate(sent):
        (os.kill if to == "process" else os.killpg)(wrapped.pid, getattr(signal, name))
        assert wrapped.readline() == name.encode()
        handled(wrapped.path, count + 1)
    assert wrapped.finish() == (b"", b"", 0)
    assert wrapped.log() == [*(name for name, _ in sent), "EOF"]
    assert signals(wrapped) == [(name, to, to == "process") for name, to in sent]


def test_signals_in_quick_succession_are_each_seen_once(serve):
    """C-01: the second signal arrives before `wrap` knows the target of the first."""
    wrapped = serve(extra=ECHO)
    chance = random.Random(16)  # noqa: S311 (the same in each run)
    for turn in range(60):
        pair = [getattr(signal, name) for name in chance.sample(ENDING, 2)]
        for number in pair:
            chance.choice((os.kill, os.killpg))(wrapped.pid, number)
        assert {wrapped.readline(), wrapped.readline()} == {number.name.encode() for number in pair}
        handled(wrapped.path, 2 * turn + 2)
    assert wrapped.finish() == (b"", b"", 0)
    assert len(wrapped.log()) == 121


@pytest.mark.parametrize(("send", "most"), [(os.kill, 2), (os.killpg, 3)])
def test_the_same_signal_twice_at_once_is_neither_lost_nor_multiplied(serve, send, most):
    """C-01: the kernel merges equal pending signals.

    If the group gets the same signal again before the witness has answered, the second is forwarded too
    (`process.witness`).
    """
    wrapped = serve(extra=ECHO)
    for _ in range(60):
        for _ in range(2):
            send(wrapped.pid, signal.SIGTERM)
        wrapped.send_signal(signal.SIGWINCH)
        while wrapped.readline() != b"SIGWINCH":
            pass
    assert wrapped.finish(None)[1:] == (b"", 0)
    assert wrapped.log().count("SIGWINCH") == 60
    assert 60 <= wrapped.log().count("SIGTERM") <= most * 60


def test_ctrl_c_in_a_terminal_reaches_the_server_once(tmp_path):
    """S-06, C-01: the terminal signals the group itself."""
    path, log = tmp_path / "c", tmp_path / "log"
    pid, terminal = fork_terminal()
    if pid == 0:
        command = [*python(SERVER % ECHO), str(log), "SIGINT"]
        os.execv(sys.executable, [sys.executable, "-m", "mcpspy", "wrap", "-o", str(path), "--", *command])
    children = f"/proc/{pid}/task/{pid}/children"
    seen = b""
    while b"ready" not in seen:
        seen += limits.read(terminal, 100)
    until(lambda: len(Path(children).read_text().split()) == 2)
    for count in (1, 2, 3):
        os.write(terminal, b"\x03")
        while seen.count(b"SIGINT") < count:
            seen += limits.read(terminal, 100)
        handled(path, count)
    os.write(terminal, b"\x04")
    try:
        while chunk := limits.read(terminal, 100):
            seen += chunk
    except OSError:  # a terminal ends with this error
        pass
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0
    assert log.read_text().split() == ["SIGINT"] * 3 + ["EOF"]
    found = [record for record in Capture(str(path)).records() if isinstance(record, Signal)]
    assert [(record.to, record.forwarded) for record in found] == [("group", False)] * 3


def test_claude_code_interrupts_terminates_and_kills(serve):
    """C-01: INT, 0.1 s later TERM, 0.4 s later KILL: a server that needs 0.3 s after INT can finish."""
    wrapped = serve(extra="def at(name):\n  if name == 'SIGINT': time.sleep(0.3); write('clean'); os._exit(0)")
    wrapped.send_signal(signal.SIGINT)
    time.sleep(0.1)  # the delays of the client, here and below
    wrapped.send_signal(signal.SIGTERM)
    try:
        wrapped.wait(0.4)
    except subprocess.TimeoutExpired:
        wrapped.kill()
    assert wrapped.log() == ["SIGINT", "SIGTERM", "clean"]
    assert wrapped.finish()[2] == 0
    assert signals(wrapped) == [("SIGINT", "process", True), ("SIGTERM", "process", True)]


@pytest.mark.parametrize(("send", "to"), [(os.kill, "process"), (os.killpg, "group")], ids=["gemini", "codex"])
@pytest.mark.parametrize("turn", range(5))
def test_a_client_terminates_us_or_the_group_and_closes_stdin(serve, turn, send, to):
    """C-01: the end of stdin does not overtake the signal, at the server or in the capture."""
    wrapped = serve()
    send(wrapped.pid, signal.SIGTERM)
    wrapped.stdin.close()
    assert wrapped.wait(LIMIT) == 0
    assert wrapped.log() == ["SIGTERM", "EOF"]
    assert signals(wrapped) == [("SIGTERM", to, to == "process")]
    records = list(wrapped.capture.records())
    (term,) = (record for record in records if isinstance(record, Signal))
    (eof,) = (record for record in records if isinstance(record, Close) and record.ch == 1)
    assert (term.n, eof.how) < (eof.n, "exit")
    assert term.t <= eof.t


def test_the_python_sdk_closes_stdin_and_then_terminates_the_group(serve):
    """C-01: a server that ignores the end of stdin then receives TERM once."""
    wrapped = serve(extra=f"def at(name): os._exit(0)\n{PAUSE}os.read = until_a_signal")
    wrapped.stdin.close()
    until(lambda: wrapped.log() == ["EOF"])
    os.killpg(wrapped.pid, signal.SIGTERM)
    assert wrapped.wait(LIMIT) == 0
    assert wrapped.log() == ["EOF", "SIGTERM"]
    assert signals(wrapped) == [("SIGTERM", "group", False)]


def test_a_server_that_ends_at_a_signal_to_the_group_is_not_signalled_again(wrap):
    """S-06: many servers treat a second signal as a hard exit."""
    source = """
import os, signal
def stop(n, f):
    signal.signal(signal.SIGTERM, lambda n, f: os._exit(99))
    os.write(1, b"stopping\\n"); os.read(0, 1); os._exit(0)
signal.signal(signal.SIGTERM, stop)
os.write(1, b"ready\\n"); signal.pause()
"""
    wrapped = wrap(*python(source))
    assert wrapped.readline() == b"ready"
    wrapped.witness()
    os.killpg(wrapped.pid, signal.SIGTERM)
    assert wrapped.finish() == (b"stopping\n", b"", 0)


FULL = "import os, signal, sys\nfor _ in range(3): os.write(1, b'x' * 60_000)\n"  # the last stays in the server's pipe


@pytest.mark.parametrize("name", ENDING)
def test_a_signal_ends_us_while_we_drain_towards_a_client_that_reads_nothing(wrap, name):
    """A-05: `wrap` exits with the server's status; C-02: the signal is recorded as not forwarded."""
    wrapped = wrap(*python(FULL + "os._exit(3)"))
    child = wrapped.child()
    until(lambda: not Path(f"/proc/{child}").exists(), "the end of the server")
    wrapped.send_signal(getattr(signal, name))
    assert wrapped.wait(LIMIT) == 3
    assert signals(wrapped) == [(name, "process", False)]
    assert isinstance(list(wrapped.capture.records())[-1], End)


def test_a_client_that_waits_for_our_end_without_reading_is_not_kept_waiting(wrap):
    """A-05: `terminate` and `wait` work as without `wrap`, and return the signal that ended the server."""
    wrapped = wrap(*python(FULL + "os.write(2, b'!')\nsignal.pause()"))
    assert wrapped.stderr.read(1) == b"!"
    wrapped.witness()
    wrapped.terminate()
    assert wrapped.wait(LIMIT) == -signal.SIGTERM
    assert signals(wrapped) == [("SIGTERM", "process", True)]


def test_our_end_leaves_no_witness(serve):
    """S-07: the witness exits before `wrap` does."""
    wrapped = serve()
    witness = wrapped.witness()
    assert wrapped.finish() == (b"", b"", 0)
    assert not running(witness)


WITHOUT_WITNESS = """
from mcpspy.process import child
def refuse(): raise BlockingIOError(11, "Resource temporarily unavailable")
child.Witness = refuse
from mcpspy.cli import main
main()
"""


def test_without_a_witness_every_signal_is_forwarded(wrap, tmp_path):
    """C-01: no process could be created for it; S-06: the server receives at most one extra signal."""
    log = tmp_path / "log"
    wrapped = wrap(*python(SERVER % ""), str(log), " ".join(ALL), program=("-c", WITHOUT_WITNESS))
    assert wrapped.readline() == b"ready"
    wrapped.send_signal(signal.SIGTERM)
    until(lambda: log.read_text().split() == ["SIGTERM"])
    os.killpg(wrapped.pid, signal.SIGINT)
    assert wrapped.finish()[2] == 0
    assert log.read_text().split() in (["SIGTERM", "SIGINT", "EOF"], ["SIGTERM", "SIGINT", "SIGINT", "EOF"])
