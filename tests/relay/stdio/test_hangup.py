"""A client that reads nothing more: the server sees what it would see without us (V-01)."""

import contextlib
import itertools
import os
import select
import signal
import socket
import sys
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, Frame
from mcpspy.process.pipes import waiting
from mcpspy.relay.stdio.ending import watch
from mcpspy.relay.stdio.pump import CHUNK, interrupt
from tests import limits
from tests.relay.harness import end_group, python, running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report that a reader has left")

SERVER = """
import errno, os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
signal.alarm(600)  # if the tests were killed
orders, results = os.open(sys.argv[1], os.O_RDWR), os.open(sys.argv[2], os.O_RDWR)
os.write(os.open(sys.argv[3], os.O_RDWR), b"%d\\n" % os.getpid())
os.write(1, b"out\\n")
os.write(2, b"err\\n")
while True:
    fd, size = map(int, os.read(orders, 16).split())
    try:
        told = str(os.write(fd, b"x" * (size - 1) + b"\\n"))
    except OSError as error:
        told = errno.errorcode[error.errno]
    os.write(results, told.encode())
"""
"""It ignores the end of its stdin, and writes when it is told to."""
CLIENT = """
import os, subprocess, sys
subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE).stdout.readline()
os.write(1, b"ready\\n")
os.read(0, 1)
"""
GATE = '[[gate]]\nname = "late"\nwhen = "method:ping"\nhold = "60s"\n'


class Orders:
    """The two pipes to the server behind `argv`: an order is a descriptor and a number of bytes to write."""

    def __init__(self, folder):
        self._paths = [folder / "orders", folder / "results", folder / "pid"]
        for path in self._paths:
            os.mkfifo(path)
        self._orders, self._results, self._pid = (os.open(path, os.O_RDWR) for path in self._paths)

    @property
    def argv(self):
        return [*python(SERVER), *map(str, self._paths)]

    def await_hangup(self, fd):
        """Wait until nobody reads a pipe of the server; the witness of `wrap` closes its copy a moment later."""
        pid = limits.read(self._pid, 1000).split()[-1].decode()

        def unread():
            with open(f"/proc/{pid}/fd/{fd}", "wb") as pipe:
                poll = select.poll()
                poll.register(pipe, 0)
                return poll.poll(0)

        until(unread, "the end of the server's pipe")

    def write(self, fd, size=2):
        """Let the server write, and return what it saw: the number of written bytes, or an error."""
        self.begin(fd, size)
        return self.result()

    def begin(self, fd, size):
        os.write(self._orders, f"{fd} {size}".encode())

    def result(self):
        return limits.read(self._results, 16).decode()

    def close(self):
        for fd in (self._orders, self._results, self._pid):
            os.close(fd)


@pytest.fixture
def orders(tmp_path):
    orders = Orders(tmp_path)
    yield orders
    orders.close()


@pytest.fixture
def start(tmp_path):
    """Start processes, and end them with their groups after the test."""
    started = []

    def start(argv, **options):
        started.append(limits.Popen(argv, start_new_session=True, bufsize=0, **options))
        return started[-1]

    yield start
    for process in started:
        end_group(process)


def wrapping(path, *options):
    return [sys.executable, "-m", "mcpspy", "wrap", "-o", str(path), *options, "--"]


def records(path, kind, ch):
    """Return the records of a channel so far."""
    started = path.exists() and path.stat().st_size
    found = Capture(str(path)).records(1 << 62) if started else ()
    return [it for it in found if isinstance(it, kind) and it.ch == ch]


def closed(path, ch):
    """Wait until a channel has ended, and return how."""
    return until(lambda: records(path, Close, ch), f"the end of channel {ch}")[0].how


def pipe():
    ours, its = os.pipe()
    return its, lambda: os.close(ours), lambda size: limits.read(ours, size)


def unix():
    ours, its = socket.socketpair()
    return its.detach(), ours.close, ours.recv


def tcp():
    """Return a connection; the peer's kernel answers a write after the close with a reset."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        its = socket.create_connection(listening.getsockname())
        ours, _ = listening.accept()
    return its.detach(), ours.close, ours.recv


BLOCKED = python(
    "import os, signal, sys; signal.pthread_sigmask(0, [signal.SIGURG]); os.execv(sys.argv[1], sys.argv[1:])"
)
"""SIGURG interrupts the read, and a client may have blocked it."""
WRAPS = [*itertools.product((pipe, unix), (1, 2), ("plain", "gated")), (pipe, 1, "reload"), (pipe, 1, "blocked")]


@pytest.mark.parametrize(("kind", "fd", "how"), WRAPS)
def test_the_first_write_after_the_client_closed_its_end_fails_as_without_us(start, orders, tmp_path, kind, fd, how):
    """V-01: a client that lives on and closes only one of its ends."""
    path, file = tmp_path / "capture.jsonl", tmp_path / "file"
    file.write_text(GATE)
    options = {"gated": ["--gate", str(file)], "reload": ["--reload", str(file)]}.get(how, [])
    for ours in ([], [*(BLOCKED if how == "blocked" else []), *wrapping(path, *options)]):
        its, close, read = kind()
        name, other = ("stdout", "stderr") if fd == 1 else ("stderr", "stdout")
        process = start([*ours, *orders.argv], **{name: its, other: -3, "stdin": -1})
        os.close(its)
        assert read(4) in (b"out\n", b"err\n")
        close()
        if ours:
            assert how == "reload" or closed(path, fd + 1) == "abort"
            orders.await_hangup(fd)
        assert orders.write(fd) == "EPIPE"
        assert orders.write(3 - fd) == "2", "the other stream still has its reader"
        assert process.poll() is None
        end_group(process)


def test_a_server_that_ignores_the_end_of_stdin_does_not_outlive_a_killed_client(start, orders, tmp_path):
    """V-01, S-07: a client that dies by SIGKILL."""
    path = tmp_path / "capture.jsonl"
    for ours in ([], wrapping(path)):
        client = start([*python(CLIENT), *ours, *orders.argv], stdin=-1, stdout=-1, stderr=-3)
        assert client.stdout.readline() == b"ready\n"
        os.kill(client.pid, signal.SIGKILL)
        client.wait(limits.LIMIT)
        if ours:
            assert closed(path, 2) == "abort"
            orders.await_hangup(1)
        assert orders.write(1) == "EPIPE"
        end_group(client)


def child(pid):
    """Return the first child of a process: the server of `wrap`."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def test_over_tcp_the_server_notices_at_its_second_write_as_without_us(start, orders, tmp_path):
    """V-01: no system reports before a write that a TCP peer reads nothing more."""
    path = tmp_path / "capture.jsonl"
    for ours in ([], wrapping(path)):
        its, close, read = tcp()
        process = start([*ours, *orders.argv], stdin=-1, stdout=its, stderr=-3)
        os.close(its)
        assert read(4) == b"out\n"
        close()
        assert orders.write(1) == "2"
        if ours:
            assert closed(path, 2) == "abort"
            orders.await_hangup(1)
        assert orders.write(1) in ("EPIPE", "ECONNRESET")
        end_group(process)


@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
def test_what_the_server_wrote_before_is_recorded_whole(start, orders, tmp_path, gated):
    """V-01: the client reads nothing and leaves; the pipes are full of lines, and one write waits for room."""
    path, gate = tmp_path / "capture.jsonl", tmp_path / "gate.toml"
    gate.write_text(GATE)
    its, close, read = pipe()
    ours = wrapping(path, *(["--gate", str(gate)] if gated else []))
    process = start([*ours, *orders.argv], stdin=-1, stdout=its, stderr=-3)
    os.close(its)
    assert read(4) == b"out\n"
    assert [orders.write(1, 60_000) for _ in range(2)] == ["60000", "60000"]  # the client's pipe has room for one
    orders.begin(1, 500_000)
    until(lambda: in_pipe(process.pid) == CHUNK, "a full pipe")
    close()
    last = int(orders.result())
    assert orders.write(1) == "EPIPE"
    assert closed(path, 2) == "abort"
    recorded = sum(len(it.raw) + (not it.cut) for it in records(path, Frame, 2))
    assert 4 + 120_000 + CHUNK <= recorded <= 4 + 120_000 + last < 500_000


def in_pipe(pid):
    """Return the bytes that wait in the pipe from the server of `wrap`."""
    fd = os.open(f"/proc/{child(pid)}/fd/1", os.O_RDONLY | os.O_NONBLOCK)
    try:
        return waiting(fd)
    finally:
        os.close(fd)


def test_a_server_that_has_closed_its_stderr_sees_the_end_of_stdout(start, tmp_path):
    """V-01: one stream that is over does not keep the other from being watched."""
    path, report = tmp_path / "capture.jsonl", tmp_path / "report"
    report.touch()
    source = f"""
import errno, os, select, signal
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
os.close(2)
os.write(1, b"out\\n")
poll = select.poll()
poll.register(1, 0)
poll.poll()
try:
    os.write(1, b"more\\n")
except OSError as error:
    open({str(report)!r}, "w").write(errno.errorcode[error.errno])
"""
    process = start([*wrapping(path), *python(source)], stdin=-1, stdout=-1, stderr=-3)
    assert process.stdout.readline() == b"out\n"
    assert closed(path, 3) == "eof"
    process.stdout.close()
    assert process.wait(limits.LIMIT) == 0
    assert report.read_text() == "EPIPE"


def test_a_server_that_writes_without_end_ends_with_its_client(start, tmp_path):
    """V-01: `yes | head -1`, with us between them."""
    path = tmp_path / "capture.jsonl"
    process = start([*wrapping(path), "yes"], stdin=-3, stdout=-1, stderr=-3)
    assert process.stdout.read(2) == b"y\n"
    process.stdout.close()
    assert process.wait(limits.LIMIT) == -signal.SIGPIPE


def test_a_named_pipe_may_get_another_reader(start, orders, tmp_path):
    """V-01: without us the server notices nothing if it does not write meanwhile."""
    fifo = tmp_path / "out"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    its = os.open(fifo, os.O_WRONLY)
    start([*wrapping(tmp_path / "capture.jsonl"), *orders.argv], stdin=-1, stdout=its, stderr=-3)
    os.close(its)
    until(lambda: _read(reader) == b"out\n", "the first line")
    os.close(reader)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    assert orders.write(1) == "2"
    until(lambda: _read(reader) == b"x\n", "the second line")
    os.close(reader)


def _read(fd):
    with contextlib.suppress(BlockingIOError):
        return limits.read(fd, 10)


def test_a_file_and_the_null_device_have_no_reader(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr("mcpspy.relay.stdio.ending.start_new_thread", lambda run, _: started.append(run))
    closed = os.dup(0)
    os.close(closed)
    with (tmp_path / "file").open("w") as file, open(os.devnull, "w") as null:
        for fd in (file.fileno(), null.fileno(), closed):
            watch({fd: pytest.fail})
        assert not started
        source, sink = os.pipe()
        watch({closed: pytest.fail, sink: source.bit_length})  # what cannot be watched does not keep the other from it
        os.close(source)
        os.close(sink)
    assert len(started) == 1


def test_an_interrupted_read_returns_what_is_there_first():
    source, sink = os.pipe()
    os.write(sink, b"rest")
    interrupt(source, lambda: 0)
    assert limits.read(source, 10) == b"rest"
    with pytest.raises(BlockingIOError):
        limits.read(source, 10)
    os.close(source)
    os.close(sink)


def test_the_client_sees_the_end_of_a_stream_while_the_process_lives(start, tmp_path):
    """The watch must not hold the sink open: a server closes its stdout and lives on."""
    path = tmp_path / "capture.jsonl"
    source = "import os, signal; os.write(1, b'last'); os.close(1); signal.pause()"
    process = start([*wrapping(path), *python(source)], stdin=-1, stdout=-1, stderr=-3)
    assert limits.within(process.stdout.read) == b"last"
    assert running(process.pid)
