"""A pytest plugin: a capture as the server of the code under test, or as the client of the server under test.

It also provides a faulty server: the real one behind gates that delay, change or drop messages.

    def test_my_client(mcp_mock):
        command = mcp_mock("weather.jsonl", [sys.executable, "server.py"])
        assert my_client(command).forecast("Oslo") == "12 °C"

    def test_my_client_over_http(mcp_mock_url):
        url = mcp_mock_url("weather.jsonl", "http://127.0.0.1:8000/mcp")
        assert my_client(url).forecast("Oslo") == "12 °C"

    def test_my_server(mcp_replay):
        mcp_replay("weather.jsonl", [sys.executable, "server.py"])  # or its URL

    def test_my_client_gives_up_in_time(mcp_faults):
        server = mcp_faults([sys.executable, "server.py"], Path("no-forecast.toml"))
        with pytest.raises(TimeoutError):
            my_client(server).forecast("Oslo")

And it checks a session against expectations (docs/expect.md):

    def test_my_agent_asks_once(mcp_session):
        my_agent(mcp_session([sys.executable, "server.py"])).answer("Is it cold in Oslo?")
        mcp_session.expect(tool="get_forecast", times=1, arguments={"city": "Oslo"})
        mcp_session.expect(no_errors=True, max_duration="30s")

Paths are relative to the test's file. `--mcpspy-record` sets when captures are recorded:

    none   never (the default if CI is set)
    once   if there is no capture yet (the default elsewhere)
    new    use the real server; if it got new requests, its session becomes the capture
    all    use the real server, and its session becomes the capture; a replay is accepted

The plugin imports pytest and starts `mcpspy`; it needs no SDK. Requests that a mock could not answer are found, for
stdio, in the session that `mcpspy wrap` records around the mock, and for HTTP in the stderr of the mock, which the
plugin ends itself.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from mcpspy.capture.location import stem
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End, Frame
from mcpspy.process.ending import end
from mcpspy.replay import settings
from mcpspy.replay.match import Matcher, Miss
from mcpspy.replay.script import accept, script_of
from mcpspy.report.differences import as_text, from_fields

MODES = ("none", "once", "new", "all")
_MCPSPY = (sys.executable, "-m", "mcpspy")
_PATIENCE = 5.0  # seconds for a session to end after its test


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--mcpspy-record`."""
    group = parser.getgroup("mcpspy", "captures of MCP sessions")
    group.addoption("--mcpspy-record", choices=MODES, help="whether to record captures; see the plugin's documentation")


def _mode(config: pytest.Config) -> str:
    chosen: str | None = config.getoption("--mcpspy-record")
    return chosen or ("none" if os.environ.get("CI") else "once")


@pytest.fixture
def mcp_mock(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., list[str]]]:
    """Return a function that makes the command of a stdio server from a capture and the recorded server's command.

    It takes options of `mcpspy mock` too. The test fails at its end if the server got a request that is not in the
    capture, and with `--all-used` also if a recorded request was not sent.
    """
    sessions: list[tuple[Path, Path, bool, bool]] = []

    def mock(capture: str | Path, command: Sequence[str] = (), *options: str) -> list[str]:
        path, live = _chosen(request, capture, named=bool(command))
        session = tmp_path / f"mcpspy-{len(sessions)}.jsonl"
        sessions.append((path, session, live, "--all-used" in options))
        served = list(command) if live else [*_MCPSPY, "mock", str(path), *options]
        return [*_MCPSPY, "wrap", "-o", str(session), "--name", stem(path.name), "--", *served]

    yield mock
    for path, session, live, all_used in sessions:
        if session.exists():
            _await_end(session)
            if live:
                _keep(request, path, session)
            else:
                _judge(session)
        elif all_used:
            pytest.fail(f"no client started the server of {path}", pytrace=False)


@pytest.fixture
def mcp_mock_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Return a function that makes the URL of an HTTP server from a capture and the recorded server's URL.

    It takes options of `mcpspy mock` too. The test fails at its end if the server got a request that is not in the
    capture, and with `--all-used` also if a recorded request was not sent.
    """
    servers: list[tuple[Path, Path, bool, subprocess.Popen[str]]] = []

    def mock(capture: str | Path, url: str = "", *options: str) -> str:
        path, live = _chosen(request, capture, named=bool(url))
        session = tmp_path / f"mcpspy-url-{len(servers)}.jsonl"
        recording = ["proxy", "-o", str(session), "--name", stem(path.name), url]
        argv = [*_MCPSPY, *(recording if live else ["mock", str(path), *options]), "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        servers.append((path, session, live, process))
        assert process.stdout
        return process.stdout.readline().strip() or _fail(process.communicate()[1])

    yield mock
    for path, session, live, process in servers:
        said = _ended(process)
        if live and session.exists():
            _keep(request, path, session)
        elif process.returncode:
            _fail(said)


def _chosen(request: pytest.FixtureRequest, capture: str | Path, *, named: bool) -> tuple[Path, bool]:
    """Return the path of a capture, and whether the real server is used; `named` is True if the test names one."""
    mode = _mode(request.config)
    path = request.path.parent / capture
    live = mode in ("new", "all") or (mode == "once" and not path.exists())
    if live and not named:
        pytest.fail(f"{path} cannot be recorded: the test names no server to record")
    if not live and not path.exists():
        pytest.fail(f"there is no {path}, and --mcpspy-record=none records nothing")
    return path, live


def _ended(process: "subprocess.Popen[str]") -> str:
    """End a server; return its stderr."""
    said: list[str] = []

    def gone(seconds: float) -> bool:
        with suppress(subprocess.TimeoutExpired):
            said.append(process.communicate(timeout=seconds)[1])
        return bool(said)

    end(gone, process.send_signal, 0, _PATIENCE)
    return said[0] if said else process.communicate()[1]


def _await_end(session: Path) -> None:
    """Wait until a session is no longer live."""
    deadline = time.monotonic() + _PATIENCE
    while Capture(str(session)).live and time.monotonic() < deadline:
        time.sleep(0.01)


def _keep(request: pytest.FixtureRequest, path: Path, session: Path) -> None:
    """Replace the capture by a session: always in mode `all`, else if it has requests that the capture lacks."""
    if _mode(request.config) == "all" or not path.exists() or _has_more(path, session):
        path.parent.mkdir(parents=True, exist_ok=True)
        accept(str(session), str(path))


def _has_more(path: Path, session: Path) -> bool:
    known = Matcher(script_of(str(path)).turns, settings.read(settings.place(str(path))).rules)
    bodies = [turn.cause.body for turn in script_of(str(session)).turns if turn.exchange]
    return any(isinstance(known.find(body), Miss) for body in bodies)  # type: ignore[arg-type]  # they are requests


def _judge(session: Path) -> None:
    """Fail if the mock reports a request that is not in its capture."""
    records = list(Capture(str(session)).records())
    code = next((record.code for record in records if isinstance(record, End)), 0)
    said = [record.raw.decode(errors="replace") for record in records if isinstance(record, Frame)]
    if code:
        _fail("\n".join(said))


def _fail(said: str) -> NoReturn:
    """Fail with the stderr of a mock."""
    told = [line.removeprefix("mcpspy: ") for line in said.splitlines() if line.startswith("mcpspy: ")]
    pytest.fail("\n".join(["the client differs from the capture:", *told]), pytrace=False)


class FaultyServer(list[str]):
    """The command of a stdio server behind gates."""

    capture: Path
    """The capture, with the frames as received and as changed by the gates."""


@pytest.fixture
def mcp_faults(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., FaultyServer]:
    """Return a function that makes the command of a faulty server from a stdio server's command and gates.

    `gates` is a gate file (docs/gate.md): its text, or a Path. A mistake in it fails the test.
    """
    count = 0

    def faults(command: Sequence[str], gates: str | Path) -> FaultyServer:
        nonlocal count
        count += 1
        file = tmp_path / f"mcpspy-gates-{count}.toml"
        if isinstance(gates, Path):
            file = request.path.parent / gates
        else:
            file.write_text(gates, encoding="utf-8")
        check = [sys.executable, "-m", "mcpspy.gate_files", str(file), "--transport", "stdio"]
        done = subprocess.run(check, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.fail(done.stderr.strip(), pytrace=False)
        capture = tmp_path / f"mcpspy-faults-{count}.jsonl"
        server = FaultyServer([*_MCPSPY, "wrap", "--gate", str(file), "-o", str(capture), "--", *command])
        server.capture = capture
        return server

    return faults


class RecordedSession:
    """The sessions of one test: each is recorded, and all are checked against the expectations."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._awaited: set[Path] = set()
        self.captures: list[Path] = []
        """The captures, in the order of their start."""

    def __call__(self, command: Sequence[str], name: str = "") -> list[str]:
        """Return the command that records a stdio server's session under a name, from the server's command."""
        capture = self._folder / f"mcpspy-session-{len(self.captures)}.jsonl"
        self.captures.append(capture)
        return [*_MCPSPY, "wrap", "-o", str(capture), *(["--name", name] if name else []), "--", *command]

    def expect(self, **expected: Any) -> None:
        """Raise AssertionError if a session violates an expectation; call it after your client has ended the session.

        With `tool` the keys are those of a `[[tool]]`, else those of `[session]`, and `order`.
        """
        __tracebackhide__ = True
        from mcpspy.pytest_plugin.expected import failures

        recorded = [capture for capture in self.captures if capture.exists()]
        assert recorded, "no session was recorded: start the command that mcp_session(command) returns"
        for capture in recorded:
            if capture not in self._awaited:
                _await_end(capture)
                self._awaited.add(capture)
        found = failures(expected, [str(capture) for capture in recorded])
        assert not found, "\n".join(found)


@pytest.fixture
def mcp_session(tmp_path: Path) -> RecordedSession:
    """Record the sessions of a stdio server, and check them against expectations."""
    return RecordedSession(tmp_path)


@pytest.fixture
def mcp_replay(request: pytest.FixtureRequest) -> Callable[..., dict[str, Any]]:
    """Return a function that replays a capture to a server's command or URL, with options of `mcpspy replay`.

    The function returns the report (`docs/replay.md`), and fails the test if something differs.
    """
    update = ["--update"] if _mode(request.config) == "all" else []

    def replay(capture: str | Path, server: Sequence[str] | str, *options: str) -> dict[str, Any]:
        path = str(request.path.parent / capture)
        where = ["--url", server] if isinstance(server, str) else ["--", *server]
        argv = [*_MCPSPY, "replay", path, "--format", "json", *update, *options, *where]
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            pytest.fail(done.stderr.strip(), pytrace=False)
        report: dict[str, Any] = json.loads(done.stdout)
        if done.returncode:
            told = as_text(path, [from_fields(it) for it in report["exchanges"]])
            pytest.fail(f"the server differs from {path}:\n{told}", pytrace=False)
        return report

    return replay
