"""The setup of the benchmark: mcpspy, the installed programs to compare with, and the plans of other benchmarks.

In every round, the variants of a row run one after the other, on one core.
"""

import glob
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace

import benchmarks.proxy.plan as proxy
import benchmarks.relay.plan as relay
from benchmarks.relay.captures import Log
from benchmarks.relay.plan import BARE, WRAP
from benchmarks.rival import snoop

OURS, SNOOP, FASTMCP, MITM = "mcpspy", "mcpsnoop", "fastmcp", proxy.MITM
HOW = {
    SNOOP: "npm pack @mcpsnoop/linux-x64, tar xf, then --mcpsnoop package/bin/mcpsnoop",
    FASTMCP: "pip install fastmcp, in an environment of its own, then --fastmcp with its script",
    MITM: "python tests/peers/prepare.py",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of the measurement. The defaults are the minimum for published figures."""

    rounds: int = 5
    frames: int = 200_001
    """Frames of the session that is checked, shown and filtered. The number is odd, so every call is answered."""
    calls: int = 300
    """Calls of a tool through fastmcp per round."""
    seconds: float = 180
    """The time limit of each step."""
    stdio: relay.Scale = field(default_factory=lambda: relay.Scale(seconds=180))
    http: proxy.Scale = field(default_factory=proxy.Scale)

    def of(self, rounds: int) -> "Scale":
        """Return the same with another number of rounds."""
        stdio, http = (replace(scale, rounds=rounds) for scale in (self.stdio, self.http))
        return replace(self, rounds=rounds, stdio=stdio, http=http)


QUICK = Scale(rounds=1, frames=2_001, calls=20, seconds=30, stdio=relay.QUICK, http=proxy.QUICK)


@dataclass(frozen=True)
class Stdio(relay.Plan):
    """The plan of `benchmarks.relay`, with the other relays."""

    others: dict[str, str]
    """The paths of the installed programs."""

    @property
    def trace(self) -> str:
        """The path of mcpsnoop's log, which is removed after each run."""
        return os.path.join(self.folder, "trace.jsonl")

    def variants(self) -> list[str]:
        """Return the variants for pings, in the order of each round."""
        return [BARE, *([SNOOP] if SNOOP in self.others else []), WRAP]

    def stages(self, variant: str, child: list[str]) -> list[list[str]]:
        """Return the pipeline of a variant around `child`."""
        if variant == SNOOP:
            return [[self.others[SNOOP], "--trace-file", self.trace, "--", *child]]
        if variant == FASTMCP:
            servers = {"mcpServers": {"bench": {"command": child[0], "args": child[1:]}}}
            path = os.path.join(self.folder, "servers.json")
            with open(path, "w") as file:
                json.dump(servers, file)
            return [[self.others[FASTMCP], "run", path, "--no-banner"]]
        return super().stages(variant, child)

    def log(self, variant: str) -> Log | None:
        """Return the recording of a variant, complete once the variant has ended; None if it records nothing."""
        return Log(self.trace, snoop.pieces) if variant == SNOOP else super().log(variant)


@dataclass(frozen=True)
class Http(proxy.Plan):
    """The plan of `benchmarks.proxy`, with mcpsnoop in place of nginx."""

    others: dict[str, str]

    def variants(self) -> list[str]:
        """Return the variants that can run on this machine, in the order of each round."""
        return [proxy.DIRECT, *(name for name in (MITM, SNOOP) if name in self.others), proxy.PROXY]

    def command(self, variant: str, port: int, upstream: int) -> list[str]:
        """Return the command that listens on `port` and forwards to `upstream`, both on loopback."""
        if variant != SNOOP:
            return super().command(variant, port, upstream)
        target = ["--target", f"http://127.0.0.1:{upstream}"]
        return [self.others[SNOOP], "http", *target, "--listen", f"127.0.0.1:{port}"]

    def log(self, variant: str) -> Log | None:
        """Return the recording of a variant, complete once the variant has ended; None if it records nothing."""
        if variant != SNOOP:
            return super().log(variant)
        (path,) = glob.glob(os.path.join(self.folder, snoop.SESSIONS, "*.jsonl"))
        return Log(path, snoop.bodies)


@dataclass(frozen=True, slots=True)
class Plan:
    """One run of the benchmark. All files are written to `folder`."""

    scale: Scale
    folder: str
    mcpspy: str
    """The path of the script."""
    others: dict[str, str]
    stdio: Stdio
    http: Http

    @property
    def environ(self) -> dict[str, str]:
        """The environment with a temporary home."""
        return {"PATH": os.environ["PATH"], "HOME": self.folder}


def prepare(scale: Scale, folder: str, mcpspy: str, given: bool, others: dict[str, str]) -> Plan:
    """Build the servers. Raises CalledProcessError or OSError if there is no C compiler."""
    places = [os.path.join(folder, name) for name in ("stdio", "http")]
    for place in places:
        os.mkdir(place)
    base = proxy.prepare(scale.http, places[1], mcpspy)
    server, _ = relay.build(places[0])
    stdio = Stdio(scale.stdio, places[0], mcpspy, given, False, server, None, others)
    http = Http(base.scale, base.folder, base.mcpspy, base.cores, base.big, others)
    return Plan(scale, folder, mcpspy, others, stdio, http)


def find(mcpsnoop: str | None, fastmcp: str | None) -> dict[str, str]:
    """Return the paths of the programs to compare with, if they are installed."""
    paths = {SNOOP: shutil.which(mcpsnoop or "mcpsnoop"), FASTMCP: shutil.which(fastmcp or "fastmcp")}
    paths[MITM] = shutil.which(proxy.mitmdump())
    return {name: os.path.abspath(path) for name, path in paths.items() if path}


def versions(others: dict[str, str]) -> str:
    """Return names and versions of the compared programs, as the programs print them."""
    found = []
    for name, path in others.items():
        done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=60)
        number = re.search(r"\d+\.\d+(\.\d+)?", done.stdout)
        found.append(f"{name} {number[0] if number else '?'}")
    return ", ".join(found)
