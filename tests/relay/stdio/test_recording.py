"""If a capture fails, traffic goes on and the user gets one message (S-01, S-15, S-16); live captures."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, Frame, Gap, Open
from mcpspy.process.ancestry import client_command
from mcpspy.recording.recording import Channel, Clock, Recording
from mcpspy.relay.stdio.pump import Pump
from mcpspy.secrets.redactor import Shortened
from mcpspy.timeline import final_rows
from tests import limits
from tests.optional import require
from tests.relay.harness import LIMIT, end_group, python, running, until

LINES = [b"x" * 1000 + b" %d" % number for number in range(200)]


def limited(size: int, *command: str) -> tuple[str, ...]:
    """Return a shell command that limits files to `size` blocks of 512 bytes, and then executes mcpspy."""
    return ("sh", "-c", f'ulimit -f {size}; exec "$@"', "sh", *command)


def test_a_full_disk_changes_nothing_for_the_client(tmp_path):
    """Case 15; S-01: RLIMIT_FSIZE simulates the full disk."""
    path = tmp_path / "capture.jsonl"
    command = [sys.executable, "-m", "mcpspy", "wrap", "-o", str(path), "--", "cat"]
    sent = b"\n".join(LINES) + b"\n"
    done = subprocess.run(limited(100, *command), input=sent, capture_output=True, timeout=LIMIT, check=False)
    assert (done.stdout, done.returncode) == (sent, 0)
    assert done.stderr.count(b"\n") == 1
    assert done.stderr.startswith(b"mcpspy: cannot write the capture " + bytes(path))
    kept = {ch: [r.raw for r in Capture(str(path)).records() if isinstance(r, Frame) and r.ch == ch] for ch in (1, 2)}
    assert 10 < len(kept[1] + kept[2]) < len(LINES)
    assert kept[1] == LINES[: len(kept[1])]
    assert kept[2] == LINES[: len(kept[2])]


def test_the_end_of_a_stream_has_the_time_before_the_other_side_learns_of_it(tmp_path, monkeypatch):
    """R-09: if a server ends because its client has left, its end has a later time than the client's."""
    recording = Recording(print, Clock())
    recording.begin("stdio", "test", output=str(tmp_path / "capture.jsonl"), argv=["test"])
    (source, client), (server, sink) = os.pipe(), os.pipe()
    pump = Pump(source, sink, recording.clock.started)
    pump.begin(Channel(recording, 0, "client", "stdin"), None)
    learnt = []

    def closed_and_seen(fd, close=os.close):
        close(fd)
        if fd == sink:
            assert limits.read(server, 1) == b""
            learnt.append(pump.now())
            assert pump.end, "whoever sees the server end knows by now that its client has left before"

    os.close(client)
    monkeypatch.setattr("os.close", closed_and_seen)
    limits.within(pump.run)
    monkeypatch.undo()
    os.close(server)
    recording.end(pump.now())
    [closed] = [it for it in Capture(str(tmp_path / "capture.jsonl")).records() if isinstance(it, Close)]
    assert closed.t <= learnt[0]


def test_room_on_the_disk_again_means_a_gap_and_then_frames(tmp_path, wrap):
    """S-01: with a real small file system, which is filled and emptied while the server runs."""
    with small_disk(tmp_path / "disk", "size=256k") as disk:
        path = disk / "capture.jsonl"
        wrapped = wrap("cat", options=("-o", str(path)))
        assert wrapped.ask(b"before") == b"before"
        until(lambda: path.exists() and path.read_bytes().count(b"before") == 2, "the recording of what has passed")
        ballast = fill(disk)
        for line in LINES[:20]:
            assert wrapped.ask(line) == line
        ballast.unlink()
        big = b"z" * 100_000
        assert wrapped.ask(big) == big
        out, err, code = wrapped.finish()
        assert (out, code, err.count(b"\n")) == (b"", 0, 1)
        records = list(Capture(str(path)).records())
        frames = {ch: [r.raw for r in records if isinstance(r, Frame) and r.ch == ch] for ch in (1, 2)}
        lost = sum(record.lost for record in records if isinstance(record, Gap))
        for told in frames.values():
            assert (told[0], told[-1]) == (b"before", big)
        assert lost == 2 * 22 - len(frames[1] + frames[2]) > 0


@contextlib.contextmanager
def small_disk(place: Path, options: str):
    """Mount a separate file system at `place`; skip the test if that is not allowed, or has no effect."""
    require("mount")
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", place]
    done = limits.run(command, check=False, capture_output=True, text=True)
    if done.returncode or not place.is_mount():
        reason = done.stderr.partition("\n")[0]
        pytest.skip(f"cannot mount a file system here: {reason}")
    try:
        yield place
    finally:
        limits.run(["umount", "-l", place], check=True)


def fill(disk: Path) -> Path:
    """Write a file until the disk is full."""
    path = disk / "ballast"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"b" * 4096)
    return path


@pytest.mark.parametrize(
    "where", ["a missing directory", "a directory", "a file under a file", "a pipe", "a device", "a hostile name"]
)
def test_an_output_that_cannot_be_written_changes_nothing_for_the_client(wrap, tmp_path, where):
    """S-01, S-14, S-16: one line without escape sequences."""
    (tmp_path / "file").write_text("mine")
    os.mkfifo(tmp_path / "pipe")
    path = {
        "a missing directory": tmp_path / "no" / "c.jsonl",
        "a directory": tmp_path,
        "a file under a file": tmp_path / "file" / "c.jsonl",
        "a pipe": tmp_path / "pipe",
        "a device": Path("/dev/null"),
        "a hostile name": tmp_path / "no\nsuch\x1b[31m" / "x",
    }[where]
    wrapped = wrap("cat", options=("-o", str(path)))
    out, err, code = wrapped.finish(b"hello\n")
    assert (out, code, err.count(b"\n")) == (b"hello\n", 0, 1)
    name = str(path).replace("\n", "?").replace("\x1b", "?")
    assert err.startswith(f"mcpspy: cannot write a capture to {name}: ".encode())
    assert (tmp_path / "file").read_text() == "mine"


def test_a_read_only_directory_changes_nothing_for_the_client(wrap, tmp_path):
    """S-16: a read-only file system, because root may write anywhere else."""
    with small_disk(tmp_path / "disk", "ro,size=64k") as disk:
        for options in (("--capture-dir", str(disk)), ("-o", str(disk / "c.jsonl"))):
            out, err, code = wrap("cat", options=options).finish(b"hello\n")
            assert (out, code, err.count(b"\n")) == (b"hello\n", 0, 1)
            assert b"Read-only file system" in err


def test_a_live_capture_or_a_file_of_somebody_else_is_never_overwritten(wrap, tmp_path):
    """S-15: another file is written, which is reported once; a finished capture is replaced."""
    path = tmp_path / "mine.jsonl"
    first = wrap("cat", options=("-o", str(path)))
    assert first.ask(b"one") == b"one"
    until(lambda: path.exists() and b"one" in path.read_bytes(), "the capture")
    out, err, code = wrap("cat", options=("-o", str(path))).finish(b"two\n")
    assert (out, code, err.count(b"\n")) == (b"two\n", 0, 1)
    assert b"is a live capture; this capture goes to " in err
    assert first.ask(b"three") == b"three"
    first.finish()
    siblings = [other for other in tmp_path.glob("mine*.jsonl") if other != path]
    assert len(siblings) == 1
    assert _frames(siblings[0]) == [b"two"]
    assert _frames(path) == [b"one", b"three"]
    assert wrap("cat", options=("-o", str(path))).finish(b"four\n") == (b"four\n", b"", 0)
    assert _frames(path) == [b"four"]
    path.chmod(0o644)
    wrap("cat", options=("-o", str(path))).finish()
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("a diary\n")
    assert b"is not a capture; this capture goes to " in wrap("cat", options=("-o", str(path))).finish()[1]
    assert path.read_text() == "a diary\n"


def _frames(path: Path) -> list[bytes]:
    return [record.raw for record in Capture(str(path)).records() if isinstance(record, Frame) and record.ch == 1]


def test_copies_started_in_the_same_moment_write_captures_of_their_own(wrap, tmp_path):
    """Case 15; S-15."""
    folder = tmp_path / "captures"
    copies = [wrap("cat", options=("--capture-dir", str(folder))) for _ in range(12)]
    for number, copy in enumerate(copies):
        copy.stdin.write(b"%d\n" % number)
    for number, copy in enumerate(copies):
        assert copy.finish() == (b"%d\n" % number, b"", 0)
    assert sorted(_frames(path) for path in folder.iterdir()) == sorted([b"%d" % number] for number in range(12))
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("home", ["set", "missing"])
def test_the_default_directory_works_in_the_environment_of_a_desktop_client(wrap, tmp_path, home):
    """S-16: cwd `/`, no XDG_*, no LANG; without HOME, the password database has the home directory."""
    environ = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd())} | (
        {"HOME": str(tmp_path)} if home == "set" else {}
    )
    if home == "missing":
        environ["MCPSPY_CAPTURE_DIR"] = str(tmp_path / "elsewhere")  # so that the real home is not used
    wrapped = wrap("cat", options=(), env=environ, cwd="/")
    assert wrapped.finish(b"hi\n") == (b"hi\n", b"", 0)
    folder = tmp_path / (".mcpspy/captures" if home == "set" else "elsewhere")
    assert [_frames(path) for path in folder.iterdir()] == [[b"hi"]]


def test_a_capture_has_channels_and_processes_but_no_secrets_of_the_command_line(wrap, tmp_path):
    """A-09: a password in argv must never be in a capture. Each channel has its role and framing."""
    environ = os.environ | {"HOME": str(tmp_path), "SERVICE_TOKEN": "in-the-environment"}
    url = "mysql://username:hunter2@localhost:3306/database"
    wrapped = wrap("sh", "-c", "cat", "sh", url, "--api-key", "hunter2", env=environ)
    assert wrapped.finish(b"hi\n")[0] == b"hi\n"
    text = wrapped.path.read_bytes()
    assert b"hunter2" not in text
    assert b"in-the-environment" not in text
    assert b"SERVICE_TOKEN" in text
    assert (tmp_path / ".mcpspy" / "key").stat().st_mode & 0o777 == 0o600
    opened = [record for record in wrapped.capture.records() if isinstance(record, Open)]
    assert [(it.ch, it.role, it.sender, it.framing) for it in opened] == [
        (1, "stdin", "client", "lines"),
        (2, "stdout", "server", "lines"),
        (3, "stderr", "server", "lines"),
    ]
    header = wrapped.capture.header
    assert (header.transport, header.name, header.pid, header.ppid) == ("stdio", "cat", wrapped.pid, os.getpid())
    assert header.argv[:4] == ("sh", "-c", "cat", "sh")
    if sys.platform == "linux":
        assert header.client == tuple(Shortened().argv(client_command(os.getpid())))
        assert str(header.client_start) in Path("/proc/self/stat").read_text().split()


def test_a_capture_shows_while_it_is_live_and_after_a_kill(wrap, tmp_path):
    """Done when: after `kill -9`, the capture is readable, `ls` shows it as not live, and the server has exited."""
    folder = tmp_path / "captures"
    wrapped = wrap("cat", options=("--capture-dir", str(folder)))
    request, answer = b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"result":{}}'
    assert wrapped.ask(request) == request
    assert wrapped.ask(answer) == answer
    until(lambda: [path for path in folder.glob("*") if path.read_bytes().count(b"result") == 2], "the capture")
    (listed,) = _ls(folder)
    assert (listed["live"], listed["name"], listed["exchanges"]) == (True, "cat", 2)
    follow = limits.Popen(
        [sys.executable, "-m", "mcpspy", "show", "--json", "--follow", listed["path"]], stdout=subprocess.PIPE
    )
    try:
        rows = [json.loads(follow.stdout.readline()) for _ in range(4)]
        assert [row["kind"] for row in rows].count("request") == 2
        assert wrapped.ask(b"more") == b"more"
        assert json.loads(follow.stdout.readline())["text"] == "more"
        child = wrapped.child()
        wrapped.kill()
        until(lambda: not running(child))
        until(lambda: not _ls(folder)[0]["live"])
        follow.communicate(timeout=LIMIT)
        assert follow.returncode == 0
    finally:
        end_group(follow)
    shown = limits.run(
        [sys.executable, "-m", "mcpspy", "show", "--json", listed["path"]], capture_output=True, check=True
    )
    assert len(shown.stdout.splitlines()) == 6


def _ls(folder: Path) -> list[dict]:
    done = limits.run([sys.executable, "-m", "mcpspy", "ls", "--json", folder], capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_command_that_cannot_start_leaves_a_capture_that_says_so_and_no_secret(wrap):
    """A-09: the message to the user may contain the command and the PATH, but the capture must not."""
    wrapped = wrap("API_KEY=hunter2", "server")
    assert b"hunter2" in wrapped.finish()[1]
    *_, end = wrapped.capture.records()
    assert (end.code, end.why) == (127, "cannot start the server: not found")
    assert b"hunter2" not in wrapped.path.read_bytes()
    assert os.environ["PATH"].encode() not in wrapped.path.read_bytes()


def test_no_descriptors_left_is_one_line(wrap):
    """S-05, S-14."""
    command = ["sh", "-c", 'ulimit -n 9; exec "$@"', "sh", sys.executable, "-m", "mcpspy", "wrap", "--", "cat"]
    done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False)
    assert (done.stdout, done.returncode, done.stderr.count(b"\n")) == (b"", 126, 1)


def test_round_trips_on_one_core_are_paired_right(wrap):
    """Done when: no orphan, no negative latency, and every response has the right request."""
    source = """
import os, sys
for line in sys.stdin.buffer:
    os.write(1, line.replace(b'"method":"ping"', b'"result":{}'))
"""
    core = min(os.sched_getaffinity(0))
    wrapped = wrap(*python(source), preexec_fn=lambda: os.sched_setaffinity(0, {core}))
    count = 500
    buffer = wrapped.stdout
    for number in range(count):
        wrapped.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number)
        assert buffer.read(200).endswith(b"\n")
    assert wrapped.finish() == (b"", b"", 0)
    requests = responses = 0
    for row in final_rows(wrapped.capture.records, live=False):
        if row.kind == "request":
            requests += 1
            assert (row.status, row.id.token) == ("ok", str(requests - 1))
            assert row.latency >= 0
        elif row.kind == "result":
            responses += 1
            assert row.request is not None
            assert row.latency >= 0
    assert (requests, responses) == (count, count)
