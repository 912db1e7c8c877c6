"""Random processes of a running conversation are killed at random moments, by random signals.

`tests/peers/chatter.py` is the client and the server; their logs are the truth. After each kill: no process is left,
the capture is readable, what was received is what was sent, and the capture contains what was received, and no more.
`docs/limits.md` says what a relay that is killed by SIGKILL may lose.

`pytest -m "" tests/attack/test_kills.py -k "stdio and 17"` repeats one kill: the number is the seed of all choices.
"""

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import uuid
from collections import defaultdict
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Open
from tests import limits
from tests.peers.chatter import LARGEST, WINDOW
from tests.peers.serving import each
from tests.relay.harness import until
from tests.test_hostile import run

PROGRAM = str(Path(__file__).parents[1] / "peers" / "chatter.py")
CHATTER = (sys.executable, "-I", "-S", PROGRAM)
MCPSPY = (sys.executable, "-m", "mcpspy")
MARK = "MCPSPY_TESTS_KILL"  # the variable in the environment of all processes of one kill
SIGNALS = [signal.SIGKILL] * 5 + [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
WORDS = {"show": "viewer", "http-client": "client", "http-server": "server", "wrap": "relay", "proxy": "relay"}
UNRECORDED = (64 << 10) + int(2**LARGEST) + 500  # bytes of each direction that a relay killed by SIGKILL may lose
AHEAD = 2_000_000  # the most bytes that the client has received at the kill
GATES = """
[[gate]]
name = "slow"
when = 'name:slow'
delay = "5ms"

[[gate]]
name = "dropped"
when = 'method:notifications/dropped'
drop = true
"""
DROPPED = b'"notifications/dropped"'


class Kill:
    """The processes of one conversation, one of which is killed."""

    def __init__(self, seed, folder):
        self.chance = random.Random(f"kill {seed}")  # noqa: S311 (no secret)
        self.seed, self.folder = str(seed), folder
        self.capture = folder / "capture.jsonl"
        self.gates = folder / "gates.toml"
        self.gates.write_text(GATES)
        self.gated, self.checked, self.viewed = (self.chance.random() < part for part in (0.3, 0.4, 0.4))
        self.number = self.chance.choice(SIGNALS)
        self.mark = uuid.uuid4().hex
        self.victim = ""
        self._started = []

    def start(self, *command):
        """Start a process whose stdin ends its part of the conversation."""
        with (self.folder / "stderr").open("ab") as stderr:
            process = limits.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, bufsize=0,
                env=os.environ | {MARK: self.mark}, start_new_session=True,
            )  # fmt: skip
        self._started.append(process)
        return process

    def chatter(self, role, *rest):
        return self.start(*CHATTER, role, str(self.folder), self.seed, *rest)

    def log(self, name):
        path = self.folder / name
        return path.read_bytes() if path.exists() else b""

    def processes(self):
        """Return the pids of all processes of this conversation, by role."""
        found, needle = defaultdict(list), f"{MARK}={self.mark}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                if needle not in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0"):
                    continue
                words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
                word = words[4 if PROGRAM in words[:5] else 3] if len(words) > 4 else ""
                role = "companion" if word == "-c" or "-c" in words[1:4] else WORDS.get(word, word)
                found[role].append(int(pid))
        return found

    def kill(self, roles):
        """Wait for a random moment, and kill a process of a random role. Return whether it was one of the peers."""
        if self.viewed:
            until(self.capture.exists, "the capture")
            self.start(*MCPSPY, "show", "--json", "--follow", str(self.capture)).stdout.close()
        moment = self.chance.choice([0, *(self.chance.randrange(AHEAD) for _ in range(7))])
        heard = self.folder / "client.got"
        until(lambda: moment == 0 or (heard.exists() and heard.stat().st_size >= moment), f"{moment} bytes")
        role = self.chance.choice(roles)
        there = until(lambda: self.processes() or None, "a process")
        self.victim = role if role in there else self.chance.choice(sorted(there))
        pid = self.chance.choice(there[self.victim])
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, self.number)

    def nothing_left(self):
        """Wait until every process has ended, and close the pipes."""
        for process in self._started:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
        until(lambda: not any(process.poll() is None for process in self._started), "the end of what was started")
        until(lambda: not self.processes(), "the end of all other processes")

    def end(self):
        for pids in self.processes().values():
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.wait()
            process.stdout.close()

    def readable(self):
        """Read the capture as a user does. No command of ours has ended in a traceback."""
        assert not re.search(rb'File "[^"]*/mcpspy/', self.log("stderr")), self.log("stderr").decode()
        if self.capture.exists() and self.capture.stat().st_size:
            for command in (["check", "--format", "json"], ["show", "--json"]):
                status, err = run([command[0], str(self.capture), *command[1:]])
                assert status in (0, 1), err
                assert "bug of mcpspy" not in err

    @property
    def lossy(self):
        """Whether the relay itself was killed by a signal that it cannot handle."""
        return self.victim == "relay" and self.number == signal.SIGKILL

    def records(self):
        if not self.capture.exists() or not self.capture.stat().st_size:
            return []
        return list(Capture(str(self.capture)).records(1 << 62))


@contextlib.contextmanager
def killing(seed, folder):
    """Run a conversation. If it fails, its choices are in the notes of the failure."""
    kill = Kill(seed, folder)
    try:
        yield kill
    except BaseException as error:
        error.add_note(f"seed {seed}: {kill.number.name} to {kill.victim or 'nobody yet'}; {vars(kill)}")
        raise
    finally:
        kill.end()


def begins(part, whole, what):
    """Assert that `part` is the beginning of `whole`."""
    if not whole.startswith(part):
        at = next((n for n, (one, other) in enumerate(zip(part, whole, strict=False)) if one != other), len(whole))
        near = slice(max(at - 20, 0), at + 40)
        raise AssertionError(f"{what}: differs at byte {at} of {len(part)}: {part[near]} and {whole[near]}")


def passed(stream, *, gated):
    """Return what the gates forward of a stream of lines."""
    lines = stream.splitlines(keepends=True) if gated else [stream]
    return b"".join(line for line in lines if not (gated and DROPPED in line))


@pytest.mark.parametrize("seed", each(range(140), usual=range(0, 8, 4)))
def test_a_kill_on_stdio_loses_nothing_and_leaves_nothing(tmp_path, seed):
    """S-07, V-01."""
    with killing(seed, tmp_path) as kill:
        options = [*["--gate", str(kill.gates)] * kill.gated, *["--check"] * kill.checked]
        wrap = (*MCPSPY, "wrap", "-o", str(kill.capture), *options, "--")
        client = kill.chatter("client", *wrap, *CHATTER, "server", str(tmp_path), kill.seed)
        kill.kill(["client", "relay", "relay", "server", *["companion"] * kill.checked, *["viewer"] * kill.viewed])
        if kill.victim in ("client", "relay", "server"):
            client.wait()  # without an end of its stdin
        kill.nothing_left()
        kill.readable()
        recorded = {1: [], 2: [], 3: []}
        for record in kill.records():
            if isinstance(record, Frame) and record.sender != "mcpspy":
                recorded[record.ch].append(record.raw + (b"" if record.cut else b"\n"))
        for ch, sender, receiver in ((1, "client", "server"), (2, "server", "client")):
            sent, got, kept = kill.log(f"{sender}.sent"), kill.log(f"{receiver}.got"), b"".join(recorded[ch])
            begins(got, passed(sent, gated=kill.gated), f"what the {receiver} received")
            begins(kept, sent, f"what the capture has of the {sender}")
            if kill.lossy:
                assert len(got) - len(passed(kept, gated=kill.gated)) <= UNRECORDED
            else:
                begins(got, passed(kept, gated=kill.gated), f"what is recorded of what the {receiver} received")
        stderr = b"".join(recorded[3])
        if b"KeyboardInterrupt" not in stderr:  # Python prints it if SIGINT comes before the server is ready
            begins(stderr, kill.log("server.log"), "the server's stderr")


@pytest.mark.parametrize("seed", each(range(60), usual=[0]))
def test_a_kill_over_http_loses_nothing_and_leaves_nothing(tmp_path, seed):
    """H-05. A proxy that is killed by SIGKILL may lose the last exchange of each connection."""
    with killing(seed, tmp_path) as kill:
        port = int(kill.chatter("http-server").stdout.readline())
        options = ["--gate", str(kill.gates)] * kill.gated
        proxy = kill.start(
            *MCPSPY,
            "proxy",
            "--listen",
            "127.0.0.1:0",
            "-o",
            str(kill.capture),
            *options,
            f"http://127.0.0.1:{port}/mcp",
        )
        place = proxy.stdout.readline().decode().rpartition(":")[2].split("/")[0]
        client = kill.chatter("http-client", place)
        kill.kill(["client", "relay", "relay", "server", *["viewer"] * kill.viewed])
        client.stdin.close()
        client.wait()
        if kill.victim != "relay":
            proxy.send_signal(signal.SIGINT)
            assert proxy.wait() == 0
        kill.nothing_left()
        kill.readable()
        ours = [it.ch for it in kill.records() if isinstance(it, Open) and it.sender == "mcpspy"]
        roles = {it.ch: it.role for it in kill.records() if isinstance(it, Open)}
        frames = [it for it in kill.records() if isinstance(it, Frame) and it.ch not in ours]
        for role, sender, receiver in (("request", "client", "server"), ("response", "server", "client")):
            sent, got = (kill.log(name).splitlines() for name in (f"{sender}.sent", f"{receiver}.got"))
            of_role = [it for it in frames if roles[it.ch] == role]
            kept = [it.raw.removeprefix(b"data: ").removesuffix(b"\n") for it in of_role if not it.cut]
            assert not set(got) - set(sent)
            assert not set(kept) - set(sent)
            for cut in (it.raw.removeprefix(b"data: ") for it in of_role if it.cut):
                assert any(line.startswith(cut.rstrip(b"\n")) for line in sent)
            lost = len(got) - len(kept) if kill.lossy else len(set(got) - set(kept))
            assert lost <= (WINDOW if kill.lossy else 0), f"{lost} messages of the {sender}"
