"""The setup of the benchmark: the programs, the variants, the numbers of rounds and samples."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

from benchmarks.relay.captures import Log

BARE, RELAY, TEE, WRAP, GATED = "bare", "C relay", "tee", "wrap", "wrap with a gate"
GATE = """\
[[gate]]
name = "matches nothing"
when = 'method:ping name:nothing*'
drop = true
"""

SOURCES = os.path.dirname(os.path.abspath(__file__))


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of the measurement. The defaults are the minimum for published figures."""

    rounds: int = 5
    samples: int = 3000
    warmups: int = 500
    big_frames: int = 30
    """Frames of 8 MB per round in the mixed test."""
    stream_frames: int = 20_000
    """Frames of 4 KB per pass. The figure of a run is the median of its passes."""
    stream_passes: int = 5
    starts: int = 40
    """Starts of each variant, over all rounds."""
    long_frame: int = 100_000_000
    """Size of the frame in the memory test, in bytes."""
    seconds: float = 120
    """The time limit of one run of one variant."""


QUICK = Scale(
    rounds=1,
    samples=50,
    warmups=10,
    big_frames=1,
    stream_frames=500,
    stream_passes=1,
    starts=2,
    long_frame=2_000_000,
    seconds=20,
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The programs of one run of the benchmark. They write all files to `folder`."""

    scale: Scale
    folder: str
    mcpspy: str
    """The path of the script."""
    given: bool
    """Whether that path comes from an option. If not, start-up is measured on a fresh installation."""
    check: bool
    server: list[str]
    relay: list[str] | None
    """The command of the C relay; None without a C compiler."""

    @property
    def capture(self) -> str:
        """The path of the capture, which is removed after each run."""
        return os.path.join(self.folder, "capture.jsonl")

    @property
    def environ(self) -> dict[str, str]:
        """The environment that MCP clients give to a server, with a temporary home, where `wrap` stores a key."""
        inherited = {
            name: os.environ[name] for name in ("LOGNAME", "PATH", "SHELL", "TERM", "USER") if name in os.environ
        }
        return inherited | {"HOME": self.folder}

    def variants(self) -> list[str]:
        """Return the variants that can run on this machine, in the order of each round."""
        return [BARE, *([RELAY] if self.relay else []), TEE, WRAP]

    def stages(self, variant: str, child: list[str]) -> list[list[str]]:
        """Return the pipeline of `variant` around `child`."""
        if variant == BARE:
            return [child]
        if variant == RELAY:
            return [[*(self.relay or []), *child]]
        if variant == TEE:
            copies = [os.path.join(self.folder, f"tee.{way}") for way in ("in", "out")]
            return [["tee", copies[0]], child, ["tee", copies[1]]]
        wrap = self.wrap(self.mcpspy, child)
        if variant == GATED:
            wrap[2:2] = ["--gate", self.gate()]
        return [wrap]

    def log(self, variant: str) -> Log | None:
        """Return the recording of a variant, complete once the variant has ended; None if it records nothing."""
        return Log(self.capture) if variant in (WRAP, GATED) else None

    def gate(self) -> str:
        """Return the path of a gate file whose gate matches nothing."""
        path = os.path.join(self.folder, "gate.toml")
        with open(path, "w") as file:
            file.write(GATE)
        return path

    def wrap(self, script: str, child: list[str]) -> list[str]:
        """Return the command line of mcpspy around `child`."""
        return [script, "wrap", "-o", self.capture, *(["--check"] if self.check else []), "--", *child]


def build(folder: str) -> tuple[list[str], list[str] | None]:
    """Return the commands of the server and of the C relay, compiled into `folder` if there is a C compiler."""
    compiler = shutil.which("cc")
    if compiler and all(_compile(compiler, folder, name) for name in ("server", "relay")):
        return [os.path.join(folder, "server")], [os.path.join(folder, "relay")]
    return [sys.executable, os.path.join(SOURCES, "server.py")], None


def _compile(compiler: str, folder: str, name: str) -> bool:
    source, target = os.path.join(SOURCES, name + ".c"), os.path.join(folder, name)
    done = subprocess.run([compiler, "-O2", "-Wall", "-pthread", "-o", target, source], check=False, timeout=60)
    return done.returncode == 0
