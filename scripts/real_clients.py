"""Real MCP clients: one start of a client in its own directories, with a scripted model and the server of the tests.

There are several connections ("ways") to the server: `bare` and `wrap` on stdio; `http`, `proxy` and `mitm` over HTTP.
Three sides observe the client: the model (offered tools, results), the server (messages, signals, its end), and the
script (exit status and output of the client).
"""

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from client_rows import PROMPT, Client, Server
from environment import ROOT, VENV

from tests.peers import prepare
from tests.peers.model_dialects import Script
from tests.peers.model_endpoint import ModelEndpoint, serving_model

SERVER = [sys.executable, str(ROOT / "tests" / "peers" / "plain_server.py")]
MCPSPY = [str(VENV / "bin" / "mcpspy")]
PATIENCE = 100  # seconds until a client must have ended by itself
AFTER_SIGNAL = 8  # seconds between two signals, and until server processes must have ended
ECHO = ("echo", {"text": "hello"})


class Scenario(NamedTuple):
    """A scenario: the calls that the model requests, and options of the server."""

    name: str
    script: Script
    options: tuple[str, ...] = ()
    ways: tuple[str, ...] = ("bare", "wrap")
    interrupted: bool = False
    """Whether Ctrl-C is sent during the first call."""
    patience: float = PATIENCE
    mistake: str = ""
    """The mistake in the configuration, if there is one."""


SCENARIOS = (
    Scenario("call", [ECHO], ways=("bare", "wrap", "http", "proxy", "mitm")),
    Scenario("interrupt", [("slow", {"seconds": 120})], interrupted=True, ways=("bare", "wrap", "http", "proxy")),
    Scenario("slow", [ECHO], ("--slow-initialize", "3")),
    Scenario("noise", [ECHO], ("--noise",)),
    Scenario("crash", [("crash", {}), ECHO]),
    Scenario("shutdown", [ECHO], ("--stubborn",)),
    Scenario("clean-up", [ECHO], ("--clean-up", "0.4")),
)
MISTAKES = (
    Scenario("doctor, no mistake", [ECHO], ways=("bare",)),
    Scenario("doctor, wrong command", [ECHO], ways=("bare",), mistake="command"),
    Scenario("doctor, missing file", [ECHO], ways=("bare",), mistake="file"),
    Scenario("doctor, trailing comma", [ECHO], ways=("bare",), mistake="comma"),
    Scenario("doctor, port taken", [ECHO], ways=("proxy",), mistake="port"),
    Scenario("doctor, untrusted folder", [ECHO], ways=("bare",), mistake="trust"),
)
LIMITS = (
    Scenario("initialize-limit", [ECHO], ("--slow-initialize", "200"), ("bare",), patience=100),
    Scenario("call-limit", [("slow", {"seconds": 75})], (), ("bare",), patience=150),
)


def isolate() -> None:
    """Cut this process and its children off from every network except loopback (Linux; user namespaces)."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000 | 0x40000000):  # CLONE_NEWUSER | CLONE_NEWNET
        raise OSError(ctypes.get_errno(), "user namespaces are not allowed here, and no client runs with a network")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket() as any_socket:  # ioctl SIOCSIFFLAGS: IFF_UP
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh22x", b"lo", 1))


def heed_signals() -> None:
    """Stop ignoring signals, because clients would inherit that. A shell may start background processes like this."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


def adopt_orphans() -> None:
    """Become the parent of processes that a client leaves behind (PR_SET_CHILD_SUBREAPER)."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)


def descendants(pid: int) -> list[int]:
    """Return the running descendants of a process."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(folder.name))
    found, left = [], [pid]
    while left:
        below = children.get(left.pop(), [])
        found += below
        left += below
    return found


class Place:
    """The directories of one run, below `folder`."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        self.home, self.work, self.log = folder / "home", folder / "work", folder / "server.log"
        self.work.mkdir(parents=True)
        self.home.mkdir()
        self.folder = folder

    def events(self) -> list[dict]:
        return [json.loads(line) for line in self.log.read_text().splitlines()] if self.log.exists() else []

    def filled(self, text: str, **more: str) -> str:
        for name, value in ({"home": str(self.home), "work": str(self.work), "prompt": PROMPT} | more).items():
            text = text.replace("{" + name + "}", value)
        return text


@contextlib.contextmanager
def started(command: list[str], environ: dict[str, str], needle: str) -> Iterator[str]:
    """Start a process that serves, and yield its first line that contains `needle`."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    process = subprocess.Popen(command, env=environ, start_new_session=True, **pipes)
    limit = threading.Timer(PATIENCE, process.kill)
    limit.start()
    try:
        for line in process.stdout:
            if needle in line:
                limit.cancel()
                yield line.strip()
                break
        else:
            raise RuntimeError(f"{command} does not start")
    finally:
        limit.cancel()
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(5)
        process.kill()
        process.wait()
        process.stdout.close()


def certificate(folder: Path) -> list[str]:
    """Create a certificate for localhost, and return the paths of the certificate and its key."""
    files = [str(folder / "certificate.pem"), str(folder / "key.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    subprocess.run([*command, *names, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


def entries(text: bytes | str) -> object:
    """Return the servers of a JSON file; None if the text is not JSON."""
    with contextlib.suppress(ValueError):
        content = json.loads(text)
        return content.get("mcpServers", content.get("mcp"))
    return None


class Start:
    """One start of a client, in one scenario and over one connection. `command` precedes the client's arguments."""

    def __init__(self, client: Client, command: list[str], scenario: Scenario, way: str, folder: Path) -> None:
        self.client, self.command, self.scenario, self.way = client, command, scenario, way
        self.place = Place(folder)
        self.facts: dict[str, Any] = {"way": way, "scenario": scenario.name}
        self._stack = contextlib.ExitStack()
        self._environ = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
        self._before: list[str] = []
        self.captures: list[Path] = []

    def run(self) -> dict:
        with self._stack:
            path, model = self._prepare()
            self._begun = time.monotonic()
            self._play(model)
            self._undo(path)
            self._tell(model)
        return self.facts

    def diagnose(self) -> tuple[bool, bool]:
        """Return whether `mcpspy doctor` finds no problem, and whether the client gets its answer."""
        with self._stack:
            _, model = self._prepare()
            if "there is no client" in self._mcpspy("install", "--dry-run", self.client.known).stderr:
                raise LookupError(self.client.known)
            doctor = self._mcpspy("doctor", self.client.known)
            self.facts["doctor"] = doctor.stdout
            self._begun = time.monotonic()
            self._play(model)
            self._tell(model)
        told = self.facts["results"] if self.facts["turns"] else [self.facts["output"]]
        return doctor.returncode == 0, any("echo: hello" in it for it in told)

    def edit(self) -> str:
        """Return the configuration after the client has added and removed a server.

        With `wrap`, mcpspy was installed before that and uninstalled after it.
        """
        with self._stack:
            path, model = self._prepare()
            for line in self.client.own:
                options = {"env": self._environ, "cwd": self.place.work, "stdin": subprocess.DEVNULL}
                subprocess.run(
                    [*self.command, *line.split()], timeout=PATIENCE, check=True, capture_output=True, **options
                )
            self._undo(path)
            return path.read_text().replace(model.url, "{url}")

    def _prepare(self) -> tuple[Path, ModelEndpoint]:
        model = self._stack.enter_context(serving_model(self.scenario.script))
        programs = [str(Path(self.command[0]).parent), os.environ["PATH"]]
        self._environ |= {"HOME": str(self.place.home), "PATH": ":".join(programs), "TERM": "dumb"}
        environ = self.client.environ | (self.client.untrusted if self.scenario.mistake == "trust" else {})
        self._environ |= {name: self._filled(value, model) for name, value in environ.items()}
        path = Path(self._filled(self.client.file, model))
        self._configure(path, model)
        return path, model

    def _filled(self, text: str, model: ModelEndpoint) -> str:
        name, arguments = self.scenario.script[0]
        return self.place.filled(text, url=model.url, tool=name, arguments=json.dumps(arguments))

    # Before the start

    def _configure(self, path: Path, model: ModelEndpoint) -> None:
        """Write the configuration, with mcpspy in it if the connection needs that."""
        on_stdio = [*SERVER, str(self.place.log), *self.scenario.options]
        if self.scenario.mistake == "file":
            on_stdio[1] += ".missing"
        elif self.scenario.mistake == "command":
            on_stdio[0] += ".missing"
        server = Server(tuple(on_stdio))
        if self.way not in ("bare", "wrap"):
            server = Server(url=self._serve())
        for name, content in self.client.beside.items():
            file = Path(self._filled(name, model))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._filled(json.dumps(content), model))
        path.parent.mkdir(parents=True, exist_ok=True)
        text = self._filled(self.client.text(server), model)
        if self.scenario.mistake == "comma":
            text = text.rstrip()[:-1].rstrip() + ",\n}\n"
        path.write_text(text)
        self._original = path.read_bytes()
        if self.way in ("wrap", "proxy") and not self._install(path):
            path.write_text(self._filled(self.client.text(self._by_hand(server)), model))

    def _install(self, path: Path) -> bool:
        """Run `mcpspy install`, and return whether it changed the configuration.

        If it did not, the fact `install` has the reason.
        """
        if not self.client.known:
            return False
        done = self._mcpspy("install", self.client.known, "--yes")
        if path.read_bytes() == self._original:
            self.facts["install"] = (done.stderr or done.stdout).strip()
            return False
        self.facts["install"] = "done"
        if self.scenario.mistake == "port":
            self._stack.enter_context(socket.create_server(("127.0.0.1", 6278)))
        elif self.way == "proxy":
            command = [*MCPSPY, "proxy", "--from", self.client.known]
            self._stack.enter_context(started(command, self._environ, "http://"))
        return True

    def _by_hand(self, server: Server) -> Server:
        if self.way == "wrap":
            return Server((*MCPSPY, "wrap", "--name", "plain", "--", *server.argv))
        command = [*MCPSPY, "proxy", "--listen", "127.0.0.1:0", server.url]
        line = self._stack.enter_context(started(command, self._environ, "http://"))
        return Server(url=next(word for word in line.split() if word.startswith("http://")))

    def _serve(self) -> str:
        """Start the server over HTTP, and return its URL. For `mitm` the server uses TLS."""
        tls = certificate(self.place.folder) if self.way == "mitm" else []
        command = [*SERVER, str(self.place.log), *self.scenario.options, *(["--tls", *tls] if tls else ["--http"])]
        port = self._stack.enter_context(started(command, dict(os.environ), ""))
        if not tls:
            return f"http://127.0.0.1:{port}/mcp"
        mitm = [prepare.python("mitm"), "-m", "mcpspy", "mitm", "--allow", "localhost", "--ca", tls[0]]
        line = self._stack.enter_context(started([*mitm, "--listen", "127.0.0.1:0"], self._environ, "127.0.0.1:"))
        proxy = "127.0.0.1:" + line.partition("127.0.0.1:")[2].split()[0].strip("/,.;")
        self._before = [*MCPSPY, "run", "--proxy", proxy, "--"]
        return f"https://localhost:{port}/mcp"

    def _mcpspy(self, *arguments: str) -> subprocess.CompletedProcess:
        options = {"env": self._environ, "cwd": self.place.work, "capture_output": True, "text": True}
        return subprocess.run([*MCPSPY, *arguments], stdin=subprocess.DEVNULL, timeout=60, check=False, **options)

    # While the client runs

    def _play(self, model: ModelEndpoint) -> None:
        arguments = [self._filled(argument, model) for argument in self.client.arguments]
        self._known = set(descendants(os.getpid()))
        with (self.place.folder / "output").open("wb") as output:
            process = subprocess.Popen(
                [*self._before, *self.command, *arguments],
                env=self._environ,
                cwd=self.place.work,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._signals: list[dict] = []
        ended = self._wait(process)
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
            if ended:
                break
            self._signals.append({"t": time.monotonic(), "event": number.name})
            os.killpg(process.pid, number)
            ended = self._ends(process, AFTER_SIGNAL)
        self.facts["status"] = process.returncode
        self.facts["seconds"] = round(time.monotonic() - self._begun, 1)
        self._clear()

    def _wait(self, process: subprocess.Popen) -> bool:
        """Wait for the client's end, or for the call to interrupt. Return whether the client ended."""
        if not self.scenario.interrupted:
            return self._ends(process, self.scenario.patience)
        until = time.monotonic() + self.scenario.patience
        while time.monotonic() < until and not self._ends(process, 0.05):
            if any(it["event"] == "< tools/call" for it in self.place.events()):
                return self._ends(process, 0.5)  # the call is running
        return process.poll() is not None

    @staticmethod
    def _ends(process: subprocess.Popen, seconds: float) -> bool:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.returncode is not None

    def _clear(self) -> None:
        """Wait for the servers to end, then kill the processes that the client has left behind."""
        until = time.monotonic() + AFTER_SIGNAL
        servers = {it["pid"] for it in self.place.events()} if self.way in ("bare", "wrap") else set()
        while time.monotonic() < until and any(Path(f"/proc/{pid}").exists() for pid in servers):
            for pid in servers:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)  # an orphan of which we are the parent now
            time.sleep(0.05)
        ours = set(descendants(os.getpid())) - self._known
        self.facts["left"] = len(ours)
        for pid in ours:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in ours:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    # After the end

    def _undo(self, path: Path) -> None:
        """Uninstall, and note whether the configuration, or at least its list of servers, is the original one."""
        if self.facts.get("install") == "done":
            self._mcpspy("uninstall", self.client.known)
            now = path.read_bytes()
            self.facts["undone"] = now == self._original or entries(now) == entries(self._original) is not None

    def _tell(self, model: ModelEndpoint) -> None:
        """Collect the facts of all three sides. Times count from the start of the client."""
        turns = [turn for _, turn in model.turns]
        offered = [tool.name for turn in turns for tool in turn.tools if "echo" in tool.name or "slow" in tool.name]
        self.facts["offered"] = sorted(set(offered))
        self.facts["results"] = max((turn.results for turn in turns), key=len, default=[])
        # A request without tools is for a title or similar, and does not depend on the server.
        self.facts["turns"] = [round(t - self._begun, 2) for t, turn in model.turns if turn.tools]
        self.facts["signals"] = [it | {"t": round(it["t"] - self._begun, 2)} for it in self._signals]
        events = [it | {"t": round(it["t"] - self._begun, 2)} for it in self.place.events()]
        pids = list(dict.fromkeys(it["pid"] for it in events))
        self.facts["servers"] = [[it for it in events if it["pid"] == pid] for pid in pids]
        output = (self.place.folder / "output").read_text(errors="replace")
        self.facts["output"] = output[-2000:]
        captures = self.place.home / ".mcpspy" / "captures"
        self.captures = sorted(captures.rglob("*.jsonl"))
