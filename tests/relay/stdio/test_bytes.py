"""All bytes are forwarded unchanged, whatever they are: S-01, S-03, S-08 to S-11, S-14, F-01 to F-04."""

import contextlib
import fcntl
import hashlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import tty

import pytest

from mcpspy.capture.records import Close, End
from mcpspy.process.pipes import waiting
from tests import limits
from tests.optional import open_terminal
from tests.relay.harness import LIMIT, end_group, python, running, status, until

BLOCK_USR1 = "import os, signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])\n"
WRITER = """
import os, signal
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
os.read(0, 1)
try:
    while True: os.write(1, b"x" * 1000)
except BrokenPipeError:
    os._exit(5)
"""
NASTY = {
    "invalid UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}\n',
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":2,"method":"ping"}\n',
    "a lone surrogate": b'{"jsonrpc":"2.0","id":3,"method":"a\\ud800b"}\n',
    "U+2028": '{"jsonrpc":"2.0","id":4,"method":"\u2028\u0085"}\n'.encode(),
    "CRLF": b'{"jsonrpc":"2.0","id":5,"method":"ping"}\r\n',
    "NUL": b"\x00{}\n",
    "blank lines": b"\n\n \n",
    "an unterminated tail": b'{"jsonrpc":"2.0","id":6,"meth',
}


def test_every_nasty_line_passes_and_is_recorded_as_it_came(wrap):
    """Case 5; F-01, F-02, S-14; F-04: some are longer than 64 KiB, the limit of asyncio."""
    wrapped = wrap("cat")
    assert wrapped.ask(b"x") == b"x"
    sent = b"".join(b"x" * size + b"\n" for size in (65535, 65536, 65537, 131_072)) + b"".join(NASTY.values())
    assert wrapped.finish(sent) == (sent, b"", 0)
    assert wrapped.stream(1) == wrapped.stream(2) == b"x\n" + sent
    assert wrapped.frames(1) == wrapped.frames(2) == [b"x", *sent.split(b"\n")]


def test_random_bytes_pass_in_both_directions(wrap):
    """S-01, F-02."""
    sent = random.Random(1).randbytes(3_000_000)  # noqa: S311 (the same bytes each time)
    wrapped = wrap("cat")
    out, err, code = wrapped.finish(sent)
    assert hashlib.sha256(out).digest() == hashlib.sha256(sent).digest()
    assert (err, code) == (b"", 0)
    assert wrapped.stream(1) == wrapped.stream(2) == sent


def test_what_was_sent_before_eof_is_answered_after_it_and_stderr_passes(wrap):
    """S-02, S-03: the end of stdin closes only stdin."""
    wrapped = wrap("sh", "-c", "x=$(cat); echo seen $x; printf 'one\\ntwo' >&2; exec 2>&-; echo later")
    assert wrapped.finish(b"words") == (b"seen words\nlater\n", b"one\ntwo", 0)
    assert wrapped.stream(3) == b"one\ntwo"


def test_a_server_that_closes_stdout_and_lives_is_half_closed_for_the_client(wrap):
    """S-08: the other direction stays open."""
    wrapped = wrap("sh", "-c", "exec 1>&-; read line; echo got $line >&2; read line; exit 3")
    assert wrapped.stdout.read(1) == b""
    wrapped.stdin.write(b"hello\n")
    assert wrapped.stderr.read(10) == b"got hello\n"
    assert wrapped.poll() is None
    assert wrapped.finish()[2] == 3


@pytest.mark.parametrize("lives", [True, False])
def test_a_server_that_closes_stdin_or_ends_is_half_closed_for_the_client(wrap, lives):
    """S-08, S-09: writing fails for the client, as without `wrap`, and the server's output is still forwarded."""
    waits = "os.close(0)\nos.write(1, b'closed')\nsignal.sigwait([10])\n" if lives else "os.write(1, b'closed')\n"
    wrapped = wrap(*python(BLOCK_USR1 + waits + "os.write(1, b'on')\nos._exit(5)"))
    assert wrapped.stdout.read(6) == b"closed"
    with pytest.raises(BrokenPipeError):
        until(lambda: wrapped.stdin.write(b"x\n") is None)
    if lives:
        wrapped.send_signal(signal.SIGUSR1)
    assert wrapped.stdout.read(2) == b"on"
    assert wrapped.wait(LIMIT) == 5
    assert wrapped.stderr.read() == b""


def test_a_client_that_closes_its_end_is_felt_by_the_server(wrap):
    """S-09: the server's write fails, as without `wrap`."""
    wrapped = wrap(*python(WRITER))
    wrapped.stdout.close()
    wrapped.stdin.write(b"g")
    assert wrapped.wait(LIMIT) == 5
    closes = {record.ch: record.how for record in wrapped.capture.records() if isinstance(record, Close)}
    assert closes[2] == "abort"


@pytest.mark.parametrize("kind", ["sockets", "files", "terminal", "null"])
def test_the_standard_streams_may_be_anything(wrap, tmp_path, kind):
    """S-10."""
    if kind == "sockets":
        ours, theirs = socket.socketpair()
        wrapped = wrap("cat", stdin=theirs, stdout=theirs)
        theirs.close()
        ours.sendall(b"over a socket\n")
        ours.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: ours.recv(100), b""))
        ours.close()
    elif kind == "files":
        (tmp_path / "in").write_bytes(b"over a file\n")
        with (tmp_path / "in").open("rb") as source, (tmp_path / "out").open("wb") as sink:
            wrap("cat", stdin=source, stdout=sink).wait(LIMIT)
        received = (tmp_path / "out").read_bytes()
    elif kind == "terminal":
        ours, theirs = open_terminal()
        tty.setraw(theirs)
        wrapped = wrap("head", "-c", "16", stdin=theirs, stdout=theirs)
        os.write(ours, b"over a terminal\n")
        received = b""
        while len(received) < 16:
            received += limits.read(ours, 100)
        assert wrapped.wait(LIMIT) == 0
        os.close(ours)
        os.close(theirs)
    else:
        wrapped = wrap("sh", "-c", "cat; echo over null", stdin=subprocess.DEVNULL)
        received = wrapped.finish(None)[0]
    assert received.startswith(b"over a") or received == b"over null\n"


def test_a_descriptor_that_others_made_non_blocking_works_and_stays_so(wrap):
    """S-10: with back-pressure, so that both reads and writes get EAGAIN."""
    reader, writer = os.pipe()
    for fd in (reader, writer):
        os.set_blocking(fd, False)
    source, sink = os.pipe()
    os.set_blocking(source, False)
    wrapped = wrap("cat", stdin=source, stdout=writer)
    os.close(writer)
    os.set_blocking(reader, True)
    sent = os.urandom(400_000)
    feeder = threading.Thread(target=lambda: (os.write(sink, sent), os.close(sink)), daemon=True)
    feeder.start()
    received = b"".join(iter(lambda: limits.read(reader, 70_000), b""))
    feeder.join(LIMIT)
    assert received == sent
    assert fcntl.fcntl(source, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(source)
    os.close(reader)
    assert wrapped.wait(LIMIT) == 0


def test_stderr_into_stdout_under_back_pressure_loses_nothing(wrap):
    """Case 3; S-10, S-11: `2>&1` over AF_UNIX sockets, 4 MB of stderr while nobody reads."""
    source = """
import os, threading
def flood(fd, byte):
    for _ in range(64): os.write(fd, byte * 65535 + b"\\n")
threads = [threading.Thread(target=flood, args=args) for args in ((1, b"o"), (2, b"e"))]
[t.start() for t in threads]; [t.join() for t in threads]
"""
    ours, theirs = socket.socketpair()
    flags = fcntl.fcntl(theirs, fcntl.F_GETFL)
    wrapped = wrap(*python(source), stdin=theirs, stdout=theirs, stderr=theirs)
    until(lambda: waiting(ours.fileno()) > 100_000, "back-pressure")
    assert fcntl.fcntl(theirs, fcntl.F_GETFL) == flags
    theirs.close()
    received = b"".join(iter(lambda: ours.recv(1 << 16), b""))
    ours.close()
    assert wrapped.wait(LIMIT) == 0
    counts = {byte: received.count(byte) for byte in (b"o", b"e", b"\n")}
    assert counts == {b"o": 64 * 65535, b"e": 64 * 65535, b"\n": 128}
    assert len(wrapped.frames(2)) == len(wrapped.frames(3)) == 64


def test_both_sides_may_write_without_reading(wrap):
    """S-11: one loop of blocking writes would deadlock, but two threads do not."""
    source = """
import os, sys
for _ in range(100): os.write(1, b"s" * 65535 + b"\\n")
while chunk := os.read(0, 65536): sys.stdout.buffer.write(chunk)
"""
    wrapped = wrap(*python(source))
    sent = (b"c" * 65535 + b"\n") * 100
    out, err, code = wrapped.finish(sent)
    assert (out, err, code) == ((b"s" * 65535 + b"\n") * 100 + sent, b"", 0)


def test_a_line_each_way_that_is_longer_than_the_memory_of_the_relay_passes_at_once(wrap):
    """Case 4; F-04: the relay takes at most 25 MB; the capture has both lines completely, and the frames after them.

    `benchmarks.relay` has 100 MB.
    """
    size = 30_000_000
    source = f"""
import os, threading
def flood():
    rest = {size}
    while rest: rest -= os.write(1, b"s" * min(rest, 65536))
    os.write(1, b"\\n")
def swallow():
    seen = 0
    while not (chunk := os.read(0, 65536)).endswith(b"\\n"): seen += len(chunk)
    os.write(2, b"%d" % (seen + len(chunk) - 1))
threads = [threading.Thread(target=f) for f in (flood, swallow)]
[t.start() for t in threads]; [t.join() for t in threads]
os.write(1, b"1\\n"); os.read(0, 1)
"""
    wrapped = wrap(*python(source))

    def feed():
        rest = size
        while rest:
            rest -= wrapped.stdin.write(b"c" * min(rest, 65536))
        wrapped.stdin.write(b"\n")

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    received = 0
    while not (chunk := wrapped.stdout.read(65536)).endswith(b"\n1\n"):
        if chunk.endswith(b"\n"):
            received += len(chunk) - 1
            assert wrapped.stdout.read(2) == b"1\n"
            break
        received += len(chunk)
    else:
        received += len(chunk) - 3
    feeder.join(LIMIT)
    assert received == size
    assert int(wrapped.stderr.read(9)) == size
    peak = int(status(wrapped.pid, "VmHWM").split()[0]) * 1024
    wrapped.finish()
    assert peak <= 25_000_000, f"{peak / 1e6:.1f} MB"
    assert [(len(raw), set(raw)) for raw in wrapped.frames(1)] == [(size, {ord("c")})]
    assert [(len(raw), set(raw)) for raw in wrapped.frames(2)] == [(size, {ord("s")}), (1, {ord("1")})]


BUG = """
from mcpspy.wire.lines import Lines
feeds = []
def feed(self, chunk):
    feeds.append(1)
    if len(feeds) > 1: raise RuntimeError("planted")
    return [(chunk, False, False)]
Lines.feed = feed
from mcpspy.cli import main
main()
"""


def test_a_bug_in_recording_leaves_the_traffic_alone_and_is_said_once(wrap):
    """S-01: after a crash in recording, the relay goes on without it."""
    sent = os.urandom(200_000)
    out, err, code = wrap("cat", program=("-c", BUG)).finish(sent)
    assert (out, code, err.count(b"\n")) == (sent, 0, 1)
    assert b"planted" in err
    assert b"traffic goes on" in err


def test_a_viewer_that_is_stopped_holds_nothing_up(wrap):
    """Case 15; S-01: the relay never waits for a reader of the capture."""
    wrapped = wrap("cat")
    assert wrapped.ask(b"first") == b"first"
    viewer = limits.Popen(
        [sys.executable, "-m", "mcpspy", "show", "--follow", str(wrapped.path)], stdout=subprocess.PIPE
    )
    try:
        viewer.stdout.read(1)
        viewer.send_signal(signal.SIGSTOP)
        line = b"y" * 60_000
        for _ in range(100):
            assert wrapped.ask(line) == line
    finally:
        end_group(viewer)
    assert wrapped.finish()[2] == 0
    assert any(isinstance(record, End) for record in wrapped.capture.records())


def test_a_server_that_outlives_its_stdin_is_left_alone(wrap):
    """S-03: `wrap` has no kill timer."""
    source = BLOCK_USR1 + "while os.read(0, 1): pass\nos.write(1, b'eof')\nsignal.sigwait([10])\nos._exit(8)"
    wrapped = wrap(*python(source))
    wrapped.stdin.close()
    assert wrapped.stdout.read(3) == b"eof"
    assert running(wrapped.child())
    wrapped.send_signal(signal.SIGUSR1)
    assert wrapped.wait(LIMIT) == 8


def test_a_client_that_leaves_a_full_non_blocking_pipe_is_felt_by_the_server(wrap):
    """S-09, S-10: the pump first gets EAGAIN, and then a broken pipe."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"f" * 4096)
    wrapped = wrap(*python(WRITER), stdout=writer)
    os.close(writer)
    wrapped.stdin.write(b"g")
    child = wrapped.child()
    until(lambda: status(child, "State")[0] == "S" and wrapped.path.exists())
    os.close(reader)
    assert wrapped.wait(LIMIT) == 5
    assert wrapped.stderr.read() == b""


def test_a_stderr_that_takes_no_bytes_does_not_end_the_server(wrap):
    """S-01: a log on a full disk loses its lines, as without `wrap`, and the server keeps running."""
    with open("/dev/full", "wb") as full:
        wrapped = wrap("sh", "-c", "echo one >&2; echo two >&2; cat", stderr=full)
        out, _, code = wrapped.finish(b"served")
    assert (out, code) == (b"served", 0)
    assert wrapped.frames(3) == [b"one", b"two"]
