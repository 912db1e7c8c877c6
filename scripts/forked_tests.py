"""Run test files again and again: each run is a fork of this process, which has imported what the tests import.

So a run needs neither the start of Python nor the import of pytest and of large libraries, only that of mcpspy. The
current directory is a copy of the repository. A line of stdin is a request, a JSON object with the arguments of `run`;
a line of stdout is its result.
"""

import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any

MEMORY = 4 << 30
"""Bytes that a test process, and each process that it starts, may allocate: a mutant may allocate for ever."""
UNKNOWN = 60.0
"""Seconds for what has not been measured: a test that only the mutant has, or the import of all test files."""
GRACE = 10.0
"""Seconds that are added to each limit, because a busy machine may delay any test."""
TIMES = 10
"""How many times longer than without a mutant a test may take."""
_LOOK = 0.05  # seconds between two looks for processes that have ended
_IMPORTED = "pytest hypothesis aiohttp.web jsonschema jsonschema_rs orjson textual.app ruamel.yaml"
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: processes whose parent has ended become our children


class Reporter:
    """The plugin that reports to the parent which test begins, and which one fails."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._send("begins", nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._send("ends", nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._send("fails", report.nodeid)

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self._send("fails", report.nodeid)

    def _send(self, event: str, nodeid: str) -> None:
        os.write(self._fd, json.dumps([event, nodeid]).encode() + b"\n")


class Watch:
    """What has been reported by a run: how long each test took, what failed, and until when the next report is due."""

    def __init__(self, known: dict[str, float]) -> None:
        self._known = known
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []
        self.current = "the collection of the tests"
        self._began = time.monotonic()
        self.due = self._began + UNKNOWN + GRACE

    def note(self, event: str, nodeid: str) -> None:
        now = time.monotonic()
        if event == "fails":
            self.failed.append(nodeid)
            return
        self.due = now + UNKNOWN + GRACE
        if event == "begins":
            self.current, self._began = nodeid, now
            self.due = now + TIMES * self._known.get(nodeid, UNKNOWN) + GRACE
        else:
            self.seconds[nodeid] = now - self._began
            self.current = f"the end of {nodeid}"


def run(files: list[str], known: dict[str, float], log: str, seconds: float) -> dict[str, Any]:
    """Run test files in a fork. `known` has how long tests take without a mutant, `log` gets what pytest prints.

    The result has the outcome: `passed`, `failed`, or `stopped` after `seconds`. `by` names the test that failed; it is
    `late` if it took too long. `seconds` has how long each test took.
    """
    watch, end = Watch(known), time.monotonic() + seconds
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        _test(files, write, log)
    os.close(write)
    status, data = None, b""
    while status is None and time.monotonic() < min(watch.due, end):
        if select.select([read], [], [], _LOOK)[0]:
            received = os.read(read, 1 << 16)
            *lines, data = (data + received).split(b"\n")
            for line in lines:
                watch.note(*json.loads(line))
            if not received:  # the tests have ended
                time.sleep(_LOOK / 10)
        status = _reap().get(pid)
    late = status is None and time.monotonic() >= watch.due
    outcome = "failed"
    if status is None and not late:
        outcome = "stopped"
    elif status in (0, 5) and not watch.failed:  # 5: no tests
        outcome = "passed"
    os.close(read)
    _kill_descendants()
    by = watch.failed[0] if watch.failed else watch.current
    return {"outcome": outcome, "by": by, "late": late, "seconds": watch.seconds}


def _test(files: list[str], report: int, log: str) -> None:
    """Run the tests in this process, and end it."""
    status = 3
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for fd in (1, 2):
            os.dup2(output, fd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.close(output)
        options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        sys.argv = ["pytest", *options, *files]
        gc.unfreeze()
        import pytest

        status = int(pytest.main(sys.argv[1:], plugins=[Reporter(report)]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _reap() -> dict[int, int]:
    """Return the exit codes of all children that have ended."""
    ended = {}
    try:
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    except ChildProcessError:
        pass
    return ended


def _kill_descendants() -> None:
    """Kill what the tests have started and not ended, with all that it has started."""
    for _ in range(200):
        _reap()
        living = _descendants(os.getpid())
        if not living:
            return
        for pid in living:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(_LOOK / 5)


def _descendants(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            except OSError:
                continue  # it has ended
    found: set[int] = set()
    while new := {pid for pid, parent in parents.items() if parent in found | {root}} - found:
        found |= new
    return found


def main() -> None:
    if sys.platform != "linux":
        sys.exit("mutants are tested on Linux only")
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    sys.path.insert(0, os.getcwd())
    importlib.import_module("tests")  # it sets up libraries before they are imported
    for name in _IMPORTED.split():
        importlib.import_module(name)
    gc.freeze()  # a fork that collects garbage copies every page
    for line in sys.stdin:
        print(json.dumps(run(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
