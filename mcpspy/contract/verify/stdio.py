"""Runs of a server on stdio, bare and through a wrapper, with a probe in its place (`mcpspy.contract.verify.probe`).

    client  <-->  probe  <-->  server                       bare
    client  <-->  wrapper  <-->  probe  <-->  server        through

A run records the traffic at both ends of the path between client and probe. Timed runs have no probe. Servers write
only a few forms of JSON. So one more run has `cat` in the server's place, and sends lines that a wrapper must not
change, although no server of the user may write them.
"""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from mcpspy.contract.verify import probe
from mcpspy.contract.verify.launch import Launched, end_text
from mcpspy.contract.verify.session import SessionPlan, Talk, Transcript, said
from mcpspy.foreign_file import open_foreign
from mcpspy.transport.client import Gone

GRACE = 5.0
"""Seconds within which a server has to end."""
_LEAVE = 1.0  # seconds to end after a timed run
_MOST_SECONDS = 5.0  # limit for all the pings of a run
ODD_LINES = (
    b'{"jsonrpc": "2.0",  "method": "x/numbers", "params": {"b": 1.0, "a": 1E2, "c": 123456789012345678901234567890} }',
    b'{"method":"x/twice","jsonrpc":"2.0","params":{"a":1,"a":2}}',
    b'{"jsonrpc":"2.0","method":"x/escapes","params":{"\\u0061\\/":"\\u00e9\\ud83d\\ude00 \xc3\xa9 \xe2\x80\xa8"}}',
    b'{"jsonrpc":"2.0","method":"x/return"}\r',
    b'{"jsonrpc":"2.0","method":"x/no-utf-8","params":{"a":"\xff\xc3"}}',
    b"",
    b"no message \x00\x1b[0m",
    b'{"jsonrpc":"2.0","method":"x/long","params":{"a":"' + b"0123456789" * 7_000 + b'"}}',
    b'{"jsonrpc":"2.0","method":"x/longer","params":{"a":"' + b"0123456789" * 120_000 + b'"}}',
    b'{"jsonrpc":"2.0","method":"x/same"}',
    b'{"jsonrpc":"2.0","method":"x/same"}',
)
"""Lines that a wrapper changes, cuts or drops if it parses them: rare forms of JSON, other text, long lines."""


@dataclass(frozen=True, slots=True)
class Stream:
    """One direction of bytes, at both ends."""

    written: bytes
    arrived: bytes


@dataclass(frozen=True, slots=True)
class StdioRun:
    """What client and server saw in one run."""

    streams: Mapping[str, Stream]
    """By the name of the stream: stdin, stdout, stderr."""
    facts: Mapping[str, Any]
    """How the server was started, by topic."""
    signals: tuple[str, ...]
    """The signals that the server received."""
    server_end: str
    """How the server ended."""
    end: str
    """How the process ended that the client started."""
    ended: bool
    """Whether it ended by itself, and was not killed after the limit."""
    transcript: Transcript


class StdioBench:
    """Starts one server repeatedly."""

    def __init__(
        self, argv: Sequence[str], through: Sequence[str], environ: Mapping[bytes, bytes], folder: str, seconds: float
    ) -> None:
        """`through` is the wrapper's command, which takes the server's command. `folder` is for our files only."""
        self._argv = [*argv]
        self._through = [*through]
        self._environ = environ
        self._report = os.path.join(folder, "report")
        self._seconds = seconds
        self._grace = min(GRACE, seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: each run has ended by itself."""

    def connect(self) -> Launched:
        """Start the server, bare. Raises SpawnError."""
        return self._launched()

    def _launched(self, *, wrapped: bool = False, probed: bool = False) -> Launched:
        place = [sys.executable, "-I", "-S", probe.__file__, self._report] if probed else []
        return Launched([*(self._through if wrapped else []), *place, *self._argv], self._environ)

    def run(self, plan: SessionPlan, *, wrapped: bool, number: int | None = None) -> StdioRun:
        """Run a whole plan, then close stdin. With `number`, only do the handshake, then send that signal."""
        shutil.rmtree(self._report, ignore_errors=True)
        os.mkdir(self._report, 0o700)
        messages = plan.messages if number is None else plan.greeting
        with self._launched(wrapped=wrapped, probed=True) as server:
            transcript = said(SessionPlan(messages, replies=plan.replies), server, self._seconds)
            if number is None:
                server.close()
            else:
                server.signal(number)
            code = server.ended(self._grace)
        if server.flooded:
            transcript.trouble = "the server did not stop writing"
        streams = {
            "stdin": Stream(bytes(server.sent), self._noted("stdin")),
            "stdout": Stream(self._noted("stdout"), bytes(server.read)),
            "stderr": Stream(self._noted("stderr"), bytes(server.logged)),
        }
        ended = self._noted("end")
        return StdioRun(
            streams,
            self._facts(server.pid),
            tuple(self._noted("signals").decode().split()),
            end_text(int(ended) if ended else None, self._grace) if self._noted("facts") else "not started",
            end_text(code, self._grace),
            code is not None,
            transcript,
        )

    def echoed(self) -> Stream:
        """Return unusual lines sent through the wrapper to `cat`, and what `cat` returned. Raises SpawnError."""
        with Launched([*self._through, "cat"], self._environ) as echo:
            for line in ODD_LINES:
                echo.send(line)
            echo.close()
            echo.ended(self._seconds)
        return Stream(b"".join(line + b"\n" for line in ODD_LINES), bytes(echo.read))

    def timed(self, plan: SessionPlan, *, wrapped: bool, pings: int = 0) -> tuple[int | None, list[int]]:
        """Return the time from start to first answer, and the latencies of `pings` requests, in nanoseconds."""
        with self._launched(wrapped=wrapped) as server:
            transcript = said(SessionPlan(plan.greeting, replies=plan.replies), server, self._seconds)
            took = transcript.first - server.begun if transcript.first else None
            found = latencies(plan, Talk(server, self._seconds, plan.replies), pings) if took else []
            server.close()
            server.ended(min(_LEAVE, self._grace))
        return took, found

    def _noted(self, name: str) -> bytes:
        try:
            with open_foreign(os.path.join(self._report, name)) as file:  # as large as the session
                return file.read()
        except FileNotFoundError:
            return b""

    def _facts(self, leader: int) -> dict[str, Any]:
        """Return what the probe recorded about its start. Process numbers are replaced by their meaning."""
        noted = self._noted("facts")
        facts: dict[str, Any] = json.loads(noted) if noted else {}
        for name in ("group", "session"):
            if name in facts:
                facts[name] = "the client's" if facts[name] == leader else "another one"
        return facts


def latencies(plan: SessionPlan, talk: Talk, pings: int) -> list[int]:
    """Return the latencies of up to `pings` requests, one after the other, in nanoseconds, as time allows."""
    found: list[int] = []
    until = time.monotonic() + _MOST_SECONDS
    for number in range(pings):
        begun = time.perf_counter_ns()
        try:
            talk.ask(plan.ping(1_000_000 + number), -1)
        except (TimeoutError, Gone):
            break
        found.append(time.perf_counter_ns() - begun)
        if time.monotonic() > until:
            break
    return found


ENDINGS = {name: int(getattr(signal, name)) for name in ("SIGTERM", "SIGINT")}
"""The signals by which clients end servers."""
