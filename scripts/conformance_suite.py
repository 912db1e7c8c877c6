"""The official conformance suite: its scenarios, and how to run one bare and through mcpspy.

The suite acts as the client of a server, or as the server of a client. The programs under test are in
tests/peers/field. The suite speaks HTTP only. For `wrap`, a bridge connects a stdio client to the suite's server, and
the run to compare with uses the bridge without `wrap`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path

import real_servers
import through
from ruamel.yaml import YAML

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node@22"  # used if the machine's own version is too old for the suite
REVISIONS = ("2025-11-25", "2026-07-28")
SECONDS = 120  # time limit of one run of a scenario
OF_THE_SUITE = 60_000  # ms; the suite's own time limit
PEERS = through.ROOT / "tests" / "peers" / "field"
PYTHON = str(through.ROOT / ".peers" / "python2" / "bin" / "python")
CLIENT = [PYTHON, str(PEERS / "conformance_client.py")]
BRIDGE = [PYTHON, str(PEERS / "conformance_bridge.py")]
MCPSPY = [sys.executable, "-m", "mcpspy"]
OTHER_URL = {
    "resource-parameter-matches-prm",
    "auth/enterprise-managed-authorization: complete-flow-jwt-bearer",
    "auth/enterprise-managed-authorization: valid-bearer-token",
}
"""Checks that always fail with `proxy --rewrite-oauth`, some only in the scenario before the colon.

The client requests a token for the proxy's URL, and these checks compare that URL with the server's URL.
"""

Verdicts = dict[str, int]
"""Status and check -> number of times, such as `{"SUCCESS ping": 1}`; `exit` -> exit status, -1 for a time-out."""


@dataclass(frozen=True)
class Scenario:
    """One scenario at one revision. `scored` is empty, or the reason why the suite does not count the scenario."""

    revision: str
    role: str
    name: str
    scored: str

    @property
    def key(self) -> str:
        return f"{self.revision}-{self.role}-{self.name.replace('/', '-')}"


class Suite:
    """The installed suite. The suite, its output and the captures are stored below `cache`."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        npm = {"registry": "npm", "bin": "conformance", "name": "conformance", "package": SUITE}
        program = real_servers.installed(npm, cache / "suite")
        self._command = [node(cache), str(program)]
        self._folder = program.resolve().parent.parent  # the directory of the package

    def scenarios(self) -> list[Scenario]:
        """Return the scenarios that the suite requires for each revision, and those that it runs but does not count."""
        found = []
        for revision in REVISIONS:
            wanted = YAML(typ="safe").load(self._folder / "requirements" / f"{revision}.yaml")
            for role in ("server", "client"):
                found += [Scenario(revision, role, name, "") for name in wanted[role]]
                others = [it for it in wanted["not_scored"] if it["leg"] == role]
                found += [Scenario(revision, role, it["scenario"], it["reason"]) for it in others]
        return found

    def run(self, scenario: Scenario) -> dict[str, str | Verdicts]:
        """Run a scenario. Return the verdicts of the bare run as `bare`, and how the runs through mcpspy compare."""
        captures = self._cache / "captures" / scenario.key
        shutil.rmtree(captures, ignore_errors=True)
        (captures / "mitm").mkdir(parents=True)
        if scenario.role == "server":
            with through.running([PYTHON, str(PEERS / "conformance_server.py")]) as port:
                url = f"http://127.0.0.1:{port}/mcp"

                def proxied() -> Verdicts:
                    with through.proxy(str(captures / "proxy.jsonl"), url) as client_url:
                        return self._once(scenario, ["--url", client_url])

                bare = self._once(scenario, ["--url", url])
                return {"bare": bare, "proxy": compared(bare, lambda: self._once(scenario, ["--url", url]), proxied)}

        def client(*command: str) -> Callable[[], Verdicts]:
            return lambda: self._once(scenario, ["--command", " ".join(command)])

        between = [sys.executable, str(through.ROOT / "scripts" / "through.py")]
        once = client(*CLIENT)
        bare = once()
        proxied = client(*between, "proxy", str(captures / "proxy.jsonl"), *CLIENT)
        if scenario.name.startswith("auth/"):
            intercepted = client(*between, "mitm", str(captures / "mitm"), *CLIENT)
            known = {it.removeprefix(f"{scenario.name}: ") for it in OTHER_URL}
            return {
                "bare": bare,
                "proxy --rewrite-oauth": compared(bare, once, proxied, known),
                "mitm": compared(bare, once, intercepted),
            }
        found = {"bare": bare, "proxy": compared(bare, once, proxied)}
        if scenario.revision == "2025-11-25":
            bridged = client(*CLIENT, *BRIDGE)
            wrapped = client(*CLIENT, *MCPSPY, "wrap", "-o", str(captures / "wrap.jsonl"), "--", *BRIDGE)
            found["wrap"] = compared(bridged(), bridged, wrapped)
        return found

    def _once(self, scenario: Scenario, options: list[str]) -> Verdicts:
        """Run a scenario once, then kill all its processes."""
        folder = self._cache / "place"
        shutil.rmtree(folder, ignore_errors=True)
        common = ["--scenario", scenario.name, "--spec-version", scenario.revision, "--force", "-o", str(folder)]
        command = [*self._command, scenario.role, *common, "--timeout", str(OF_THE_SUITE), *options]
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, cwd=through.ROOT, start_new_session=True, **pipes)
        try:
            status = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            status = -1
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        checks = [it for file in folder.rglob("checks.json") for it in json.loads(file.read_text())]
        told = Counter(f"{it['status']} {it['id']}" for it in checks if it["status"] != "INFO")
        return {"exit": status} | dict(sorted(told.items()))


def compared(
    reference: Verdicts, again: Callable[[], Verdicts], run: Callable[[], Verdicts], known: Collection[str] = ()
) -> str:
    """Compare a run's verdicts with the reference, except for `known` checks. If they differ, run both once more."""
    first = differing(reference, run())
    if not first:
        return "equal"
    if first <= set(known):
        return f"equal except for {', '.join(sorted(first))}"
    second = differing(again(), run())
    if second <= set(known):
        return f"equal at the second try; first: {', '.join(sorted(first))}"
    return f"different: {', '.join(sorted(second))}"


def differing(one: Verdicts, other: Verdicts) -> set[str]:
    """Return the checks whose verdicts differ; `exit` only if nothing else differs."""
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return {name.partition(" ")[2] for name in names - {"exit"}} or names


def node(cache: Path) -> str:
    """Return a Node.js that the suite supports: the machine's, or one from npm below `cache`."""
    found = shutil.which("node")
    if found:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.strip().removeprefix("v").partition(".")[0]) >= 22:
            return found
    return str(
        real_servers.installed({"registry": "npm", "bin": "node", "name": "node", "package": NODE}, cache / "node")
    )
