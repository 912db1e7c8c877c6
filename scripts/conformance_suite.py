"""The official conformance suite: its scenarios, and one of them run bare and through mcpspy.

The suite is the client of a server, or the server of a client; what it tests stands in tests/peers/field. It speaks
HTTP only. For `wrap` its servers get a bridge to stdio, and the run to compare with has the bridge alone.
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
NODE = "node@22"  # for a machine whose own is older than the suite takes
REVISIONS = ("2025-11-25", "2026-07-28")
SECONDS = 120  # for one scenario, once
OF_THE_SUITE = 60_000  # ms; its own limit
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
"""Checks that `proxy --rewrite-oauth` fails by its nature, of some with their scenario: the client asks for a token for
the proxy's URL, and these compare that with the server's."""

Verdicts = dict[str, int]
"""How often each check had each status: `{"SUCCESS ping": 1}`; under `exit` the status of the suite."""


@dataclass(frozen=True)
class Scenario:
    """One scenario at one revision; `scored` is empty, or why the suite does not count it."""

    revision: str
    role: str
    name: str
    scored: str

    @property
    def key(self) -> str:
        return f"{self.revision}-{self.role}-{self.name.replace('/', '-')}"


class Suite:
    """The installed suite; captures and what it writes are kept below `cache`."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        npm = {"registry": "npm", "bin": "conformance", "name": "conformance", "package": SUITE}
        program = real_servers.installed(npm, cache / "suite")
        self._command = [node(cache), str(program)]
        self._folder = program.resolve().parent.parent  # of the package

    def scenarios(self) -> list[Scenario]:
        """What the suite requires for each revision, and what it runs without counting it."""
        found = []
        for revision in REVISIONS:
            wanted = YAML(typ="safe").load(self._folder / "requirements" / f"{revision}.yaml")
            for role in ("server", "client"):
                found += [Scenario(revision, role, name, "") for name in wanted[role]]
                others = [it for it in wanted["not_scored"] if it["leg"] == role]
                found += [Scenario(revision, role, it["scenario"], it["reason"]) for it in others]
        return found

    def run(self, scenario: Scenario) -> dict[str, str | Verdicts]:
        """The verdicts of a bare run as `bare`, and by program how those through it compare."""
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
        """One run of a scenario, and the end of every process of it."""
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
    """How a run's verdicts compare with the reference, but for `known` ones; if they differ, both are run once more."""
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
    """The checks whose verdicts are not the same; `exit` only where nothing else differs."""
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    return {name.partition(" ")[2] for name in names - {"exit"}} or names


def node(cache: Path) -> str:
    """A Node.js that the suite takes: the machine's, or one from npm below `cache`."""
    found = shutil.which("node")
    if found:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
        if int(version.strip().removeprefix("v").partition(".")[0]) >= 22:
            return found
    return str(
        real_servers.installed({"registry": "npm", "bin": "node", "name": "node", "package": NODE}, cache / "node")
    )
