"""A server's pipes are read to their end, and its last lines on stderr explain its end."""

import os
from types import SimpleNamespace

import pytest

from mcpspy.relay.reload import server as module
from mcpspy.relay.reload.server import ReloadableServer
from tests import limits


class Pipes:
    """A server that consists of three pipes; `stdin`, `stdout` and `stderr` are the server's ends."""

    def __init__(self):
        (self.stdin, into), (out, self.stdout), (errors, self.stderr) = os.pipe(), os.pipe(), os.pipe()
        self.child = SimpleNamespace(pid=1, stdin=into, stdout=out, stderr=errors)

    def close(self):
        for fd in (self.stdin, self.stdout, self.stderr):
            os.close(fd)


class Channel:
    def __init__(self):
        self.fed, self.cuts = b"", 0

    def feed(self, data, t):
        self.fed += data

    def cut(self, t):
        self.cuts += 1


@pytest.fixture
def errors(monkeypatch):
    """Return a list that collects the writes to our own stderr."""
    told = []
    monkeypatch.setattr(module, "write_errors", told.append)
    return told


@pytest.fixture
def read(errors):
    """Read a server that writes some texts to stderr to its end, and return it."""

    def read(*told):
        pipes = Pipes()
        server = ReloadableServer(pipes.child, 1, Channel(), Channel(), 0)
        server.begin(lambda *_: None)
        for text in told:
            os.write(pipes.stderr, text)
        pipes.close()
        server.wait_for_rest(limits.LIMIT)
        server.stdin.close()
        return server

    return read


def test_lines_and_errors_are_read_to_the_end(errors):
    pipes, channel, lines = Pipes(), Channel(), []
    server = ReloadableServer(pipes.child, 1, Channel(), channel, 0)
    server.begin(lambda _, raw, whole, t: lines.append((raw, whole)))
    os.write(pipes.stdout, b"one\ntw")
    os.write(pipes.stderr, b"warning\nerr")
    pipes.close()
    server.wait_for_rest(limits.LIMIT)
    assert lines == [(b"one", True), (b"tw", False)]
    assert b"".join(errors) == channel.fed == b"warning\nerr"
    assert channel.cuts == 1
    assert server.last_words == "warning\nerr"
    assert server.stdout.ended
    assert server.stderr.ended
    server.stdin.close()


def test_a_pipe_that_others_hold_is_given_up(errors):
    pipes = Pipes()
    server = ReloadableServer(pipes.child, 1, Channel(), Channel(), 0)
    server.begin(lambda *_: None)
    server.wait_for_rest(0.01)
    assert server.stdout.stop
    assert server.stderr.stop
    pipes.close()
    server.stdin.close()


@pytest.mark.parametrize(
    ("told", "last"),
    [
        (b"", ""),
        (b"bye\n\n", "bye"),
        (b'  File "a.py", line 1\n    x = (\n        ^\nSyntaxError: never closed\n', "SyntaxError: never closed"),
        (b"x\nSyntaxError: bad\n    at load (a:1:2)\n\nNode.js v20.20.2\n", "SyntaxError: bad"),
        (b"pkg.mod.OddException: no\nexiting\n", "pkg.mod.OddException: no"),
        (b"\xff\n", "\ufffd"),
    ],
)
def test_the_last_word_names_the_error(read, told, last):
    assert read(told).last_word == last


def test_a_long_line_without_an_end_is_not_kept_whole(read):
    assert len(read(*[b"x" * 60_000] * 4).last_words) == 500


def test_a_change_belongs_to_the_start_until_the_server_is_ready_and_used(errors):
    """A-22: times in nanoseconds; the time of a file may lag behind the clock."""
    second, lag = 1_000_000_000, 10_000_000
    pipes = Pipes()
    first, server = (ReloadableServer(pipes.child, number, Channel(), Channel(), 0) for number in (1, 2))
    assert first.is_starting(5)
    first.settle(3)
    first.settle(9)
    assert [first.is_starting(t) for t in (2, 3)] == [True, False]
    server.began = second
    assert [server.is_starting(t) for t in (0, second, 2 * second - 1, 2 * second)] == [True, True, True, False]
    server.settle(second + 2 * lag)
    assert [server.is_starting(t) for t in (second + lag - 1, second + lag)] == [True, False]
    server.began = second + 2 * lag
    assert [server.is_starting(t) for t in (second + 2 * lag - 1, second + 2 * lag)] == [True, False]
    pipes.close()
    server.stdin.close()
    for fd in (pipes.child.stdout, pipes.child.stderr):
        os.close(fd)
