"""Real MCP servers from npm and PyPI: how to install one, and one session with it on stdio.

A session is scripted: `initialize`, a listing for each capability that the server declares, and the calls of its entry
in the list. Requests of the server are answered. The server's answers are stored by request, so that two sessions can
be compared.
"""

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
import time
import venv
from pathlib import Path

REVISION = "2025-11-25"
PATIENCE = 30  # time limit of one answer in seconds, also at a cold start
INSTALL = 600  # time limit of an installation in seconds
LISTED = ("tools", "prompts", "resources")  # capabilities, also the prefixes of `/list`
ANSWERS = {
    "ping": {},
    "roots/list": {"roots": []},
    "elicitation/create": {"action": "decline"},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "ok"}, "model": "none"},
}


def problems(program: Path, cache: Path) -> dict[str, list[str]]:
    """Return for each capture in a cache what failed and the responsible side, as `mcpspy why` tells it."""
    command = [program, "why", "--json", cache / "captures"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # it exits with 1 if something failed
    told: dict[str, list[str]] = {}
    for problem in json.loads(done.stdout)["problems"]:
        sentence = problem["headline"].replace(str(cache / "place" / "work"), "WORK").replace(str(cache), "CACHE")
        sentence = re.sub(r" [0-9,]+ times", "", sentence, count=1)
        for capture in problem["captures"]:
            often = f", {capture['count']} times" if capture["count"] > 1 else ""
            told.setdefault(Path(capture["path"]).stem, []).append(f"{sentence} ({problem['side']}{often})")
    return told


class InstallError(Exception):
    """A package cannot be installed here. The text is the reason."""


def installed(entry: dict, folder: Path) -> Path:
    """Return the program of a package, and install it into `folder` if it is not there. Raises InstallError.

    If the entry has `steps`, the package's own installation scripts do not run, but these commands do.
    """
    bins = folder / "node_modules" / ".bin" if entry["registry"] == "npm" else folder / "bin"
    program = bins / entry["bin"]
    if program.exists():
        return program
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    steps = entry.get("steps", ())
    if entry["registry"] == "npm":
        (folder / "package.json").write_text("{}")
        packages = entry.get("packages") or [entry["package"]]
        command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages]
        command += ["--ignore-scripts"] if steps else []
    else:
        venv.create(folder, with_pip=True)
        packages = entry.get("packages") or [entry["package"].replace(" ", "==").replace("_", "-")]
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        command += packages
    try:
        for it in (command, *map(str.split, steps)):
            install_step(it, folder)
    except InstallError:
        shutil.rmtree(folder)
        raise
    if not program.exists():
        raise InstallError(f"the package has no program {entry['bin']}")
    return program


def install_step(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=INSTALL, check=False)
    except subprocess.TimeoutExpired:
        raise InstallError(f"not installed within {INSTALL} s") from None
    if done.returncode:
        said = [line for line in (done.stderr + done.stdout).splitlines() if "rror" in line]
        raise InstallError(said[0].replace(str(folder), "").strip()[:200] if said else "no reason given")


def stage(entry: dict, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Create a new working directory and home below `folder`. Returns what `filled_in` returns."""
    shutil.rmtree(folder, ignore_errors=True)
    work, home = folder / "work", folder / "home"
    work.mkdir(parents=True)
    home.mkdir()
    (work / "a.txt").write_text("hello\n")
    when = {"GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z", "HOME": str(home)}
    author = ["-c", "user.name=c", "-c", "user.email=c@example.org"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "a"]):
        subprocess.run(["git", *command], cwd=work, check=True, env=os.environ | when)
    return filled_in(entry, folder)


def filled_in(entry: dict, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Return the entry's arguments and environment with the paths filled in, and fill them into its calls."""
    work, home = folder / "work", folder / "home"

    def filled(value: object) -> object:
        return json.loads(json.dumps(value).replace("{work}", str(work)).replace("{home}", str(home)))

    environ = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    environ |= {"HOME": str(home)} | filled(entry.get("env") or {})
    entry["calls"] = filled(entry["calls"])
    return filled(entry["args"]), environ


class Session:
    """One session. `answers` has the server's answers by request, `trouble` has what went wrong."""

    def __init__(self, command: list[str], environ: dict[str, str], folder: Path, seconds: float) -> None:
        self.answers: dict[str, object] = {}
        self.revision: str | None = None
        self.server: dict = {}
        self.trouble: list[str] = []
        self._deadline = time.monotonic() + seconds
        self._came: queue.Queue[dict | None] = queue.Queue()
        self._number = 0
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, env=environ, cwd=folder, start_new_session=True, **pipes)
        threading.Thread(target=self._read, daemon=True).start()

    def run(self, calls: list) -> None:
        """Send all requests, then end the server: close stdin, then send signals."""
        try:
            self._talk(calls)
        except (TimeoutError, EOFError, BrokenPipeError) as error:
            self.trouble.append(str(error) or type(error).__name__)
        finally:
            self._leave()

    def _talk(self, calls: list) -> None:
        asked = {"protocolVersion": REVISION, "capabilities": {"roots": {}, "sampling": {}, "elicitation": {}}}
        agreed = self._ask("initialize", asked | {"clientInfo": {"name": "census", "version": "1"}}, "initialize")
        result = agreed.get("result") if isinstance(agreed, dict) else None
        if not isinstance(result, dict):
            self.trouble.append("initialize was refused")
            return
        self.revision, self.server = result.get("protocolVersion"), result.get("serverInfo") or {}
        self._send({"method": "notifications/initialized"})
        for capability in LISTED:
            if capability in (result.get("capabilities") or {}):
                self._ask(f"{capability}/list", {}, f"{capability}/list")
        for place, (name, arguments) in enumerate(calls):
            self._ask("tools/call", {"name": name, "arguments": arguments}, f"{place} {name}")

    def _ask(self, method: str, params: dict, key: str) -> object:
        self._number += 1
        number = self._number
        self._send({"id": number, "method": method, "params": params})
        limit = min(time.monotonic() + PATIENCE, self._deadline)
        while True:
            try:
                message = self._came.get(timeout=max(limit - time.monotonic(), 0.01))
            except queue.Empty:
                raise TimeoutError(f"no answer to {key}") from None
            if message is None:
                raise EOFError(f"the server ended before it answered {key}")
            if "method" in message and "id" in message:
                self._answer(message)
            elif message.get("id") == number:
                self.answers[key] = message
                return message

    def _answer(self, message: dict) -> None:
        known = ANSWERS.get(message["method"])
        refusal = {"error": {"code": -32601, "message": "not here"}}
        self._send({"id": message["id"], **({"result": known} if known is not None else refusal)})

    def _send(self, message: dict) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message).encode() + b"\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict):
                    self._came.put(message)
        self._came.put(None)

    def _leave(self) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        for number, seconds in ((None, 5), (signal.SIGTERM, 3), (signal.SIGKILL, 3)):
            if number:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # processes that the server has left behind


def session(command: list[str], entry: dict, folder: Path, seconds: float, before: list[str] | None = None) -> Session:
    """Run one session in new directories. `before` is a command that gets the server's command as its arguments."""
    entry = json.loads(json.dumps(entry))
    arguments, environ = stage(entry, folder)
    found = Session([*(before or []), *command, *arguments], environ, folder / "work", seconds)
    found.run(entry["calls"])
    return found
