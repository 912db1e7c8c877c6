"""The relay of `wrap --reload`: when files change, the server is replaced and the client stays connected.

    client ── fd 0 ──▶ client's thread ──▶ stdin  ┐
    client ◀── fd 1 ── server's thread ◀── stdout │ server 1, then server 2, …
    client ◀── fd 2 ── stderr's thread ◀── stderr ┘

The main thread starts and ends servers and waits for signals; it writes to no peer. The turning thread runs the steps
between two servers (`ReloadSession.leave`, `begin`, `fail`). Each server leads its own process group, which is ended as
a whole. POSIX only.
"""

import _signal  # type: ignore[import-not-found]  # as `process.child`
import os
import sys
import time
import warnings
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread

if sys.platform == "win32":
    raise ImportError("mcpspy.relay.reload.relay needs POSIX: `wrap --reload` does not run on Windows")

from mcpspy.capture.format import RELOAD
from mcpspy.errors import SpawnError
from mcpspy.process.ancestry import client_command
from mcpspy.process.child import Child, die_by, spawn
from mcpspy.process.ending import end, signal_group
from mcpspy.recording.recording import Channel, Clock, Recording
from mcpspy.relay.reload.files import StartChanges, WatchedFiles, age, import_watcher
from mcpspy.relay.reload.server import STDERR, LineSource, ReloadableServer, write_errors
from mcpspy.relay.reload.session import HOLDING, IDLING, REST, RUNNING, ReloadSession
from mcpspy.relay.stdio.companion import Companion
from mcpspy.relay.stdio.ending import drain, watch

AFTER_IDLE = 30.0
"""The longest time in seconds that `--reload-after idle` waits for running calls."""
STARTS = 30.0
"""The longest time in seconds that a new server may take to answer the handshake."""
_LEAVES, _TERMINATES = 1.0, 1.0  # seconds to wait after closing stdin, and after SIGTERM
_SPEAKS = 0.05  # seconds that the end waits until our sentences are written
_END = 0.2  # the longest time in seconds of our own end
_TOLD = 0.5  # seconds that the end waits until requests are answered
_NAMED = 3  # the most changed files that are named


def run(
    argv: list[str],
    environ: dict[bytes, bytes],
    paths: list[str],
    *,
    name: str | None,
    output: str | None,
    folder: str | None,
    limit: int | None = None,
    check: bool,
    after_idle: bool,
) -> int:
    """Relay between this process's client and servers started from `argv` with `environ`.

    When files in `paths` change, the server is replaced. With `after_idle`, running calls may end first, for at most
    `AFTER_IDLE` seconds. The other arguments are those of `relay.stdio.relay.run`. Returns the exit status for this
    process, which is that of the last server.
    """
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # the child only execs
    since = time.time_ns()
    child = spawn(argv, environ, apart=True)
    import_watcher()
    recording = Recording(_say, Clock(time.monotonic_ns(), time.time_ns()))
    variables = [os.fsdecode(variable) for variable in environ]
    client = client_command(os.getppid())
    recording.begin(
        "stdio", name, output=output, folder=folder, argv=argv, client=client, variables=variables, limit=limit
    )
    companion = Companion(recording.path, _say) if check and recording.path else None
    relay = _Relay(child, lambda: child.restart(argv, environ), recording, after_idle=after_idle)
    files = WatchedFiles(
        paths, since, recording.path, relay.changed, lambda: relay.say(f"watching {', '.join(paths)}"), relay.say
    )
    code = relay.live(files, companion)
    if code < 0:
        die_by(-code)
    return code if code >= 0 else 128 - code


class _Relay:
    """The servers of one client; they are replaced when files change."""

    def __init__(self, child: Child, restart: Callable[[], None], recording: Recording, *, after_idle: bool) -> None:
        self._child, self._restart = child, restart
        self._recording, self._clock = recording, recording.clock
        self._after_idle = after_idle
        sides = (("client", "stdin"), ("server", "stdout"), ("server", "stderr"))
        self._there, self._back, self._errors = (Channel(recording, self._clock.now(), *side) for side in sides)
        self._sentences: SimpleQueue[str | None] = SimpleQueue()
        self._steps: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._session = ReloadSession(self._there, self._back, self._clock.now, self.say, _wake)
        self._changed: list[tuple[str, bool]] = []  # each path, and whether the start of the server may be the cause
        self._start_changes = StartChanges()
        self._why = ""  # the changes, in words
        self._left = "exit"  # how the client's stream ended
        self._server = self._adopt(1)
        self._server.ready = self._alive = True
        self._idle_until: float | None = None
        self._started = 0.0

    def live(self, files: WatchedFiles, companion: Companion | None) -> int:
        """Run the relay; return the exit code of the last server, negative for a signal."""
        speaker = Thread(target=self._speak, daemon=True)
        for thread in (speaker, Thread(target=self._turn, daemon=True)):
            thread.start()
        code, why = 0, None
        try:
            self._child.confirm()
        except SpawnError as error:
            _say(str(error))
            code, why = error.status, error.reason
        else:
            self._server.begin(self._session.from_server)
            Thread(target=self._read_client, args=(companion,), daemon=True).start()
            watch({1: self._session.end_reading})
            files.start()
            code = self._supervise()
        exited = time.monotonic()
        if self._child.asked_to_end is None:  # after a signal to end, the client may be waiting for our end
            told = Event()
            self._steps.put(told.set)
            told.wait(_TOLD)
        drain(self._child, [self._server.stdout, self._server.stderr], self._signalled)
        self._sentences.put(None)
        speaker.join(_SPEAKS)
        t = self._clock.now()
        self._there.end(t, self._left)
        self._back.end(t, "eof" if self._server.stdout.ended else "exit")
        self._errors.end(t, "eof" if self._server.stderr.ended else "exit")
        self._recording.end(self._clock.now(), code, why)
        if companion:
            companion.end(exited + _END - time.monotonic())
        self._child.end_watch()
        return code

    # Called from other threads.

    def changed(self, paths: list[str]) -> None:
        """Note changed files, and wake the main thread."""
        now, server = self._clock.now(), self._server
        changed = [(it, server.is_starting(now - age(it))) for it in paths if it not in self._start_changes.ignored]
        if changed:
            self._changed += changed
            _wake()

    def say(self, sentence: str) -> None:
        """Queue a sentence for the user, to be written to stderr; return at once."""
        self._sentences.put(sentence)

    def _speak(self) -> None:
        """Write sentences to stderr and record them; in a thread of its own, because stderr may have no reader."""
        while (sentence := self._sentences.get()) is not None:
            safe = "".join(it if it.isprintable() else "?" for it in sentence)
            line = f"mcpspy: reload: {safe}".encode("utf-8", "replace")
            with STDERR:
                write_errors(line + b"\n")
                self._errors.cut(self._clock.now())
                self._errors.record(line, self._clock.now(), {"from": "mcpspy", "by": RELOAD})

    def _turn(self) -> None:
        """Run the steps from one server to the next; in a thread of its own, because they write to the peers."""
        while True:
            step = self._steps.get()
            try:
                step()
            except Exception as error:  # a bug of ours must not stop the traffic
                self.say(
                    f"a bug of mcpspy ({type(error).__name__}: {error}); what the client sends is forwarded unchanged"
                )
                self._session.set_mode(RUNNING, "", {})

    def _read_client(self, companion: Companion | None) -> None:
        source = LineSource(0, self._clock.started)
        for raw, whole, t in source.lines():
            self._session.from_client(raw, t, whole=whole)
            if companion:
                companion.wake()
        self._child.settle()
        t = self._clock.now()
        self._left = "reset" if source.reset else "eof"
        if self._session.client_ends():
            self._there.end(t, self._left)

    # Called in the main thread.

    def _supervise(self) -> int:
        """Start and end servers until the last one has exited; return its exit code."""
        code = 0
        while True:
            leaving = self._session.client_left or self._child.asked_to_end is not None
            unread = self._session.reader_left
            if unread and self._server.ready:  # until then, we read its response to the handshake
                self._server.stdout.reader_left()  # its next write fails
            if self._alive and (ended := self._poll()) is not None:
                code, never = ended, self._server.number == 1 and not self._session.served
                if leaving or unread or never or self._child.asked_to_end is not None:
                    if self._session.waits:
                        self._fail(code)  # the client may still read its responses
                    return code
                self._fail(code)
            elif self._alive and self._server.fault:
                code = self._end_server()
                self._fail(code)
            elif not self._alive and (leaving or unread):
                return code
            elif leaving and self._server.ready:
                self._wait(None)
            elif leaving and (self._child.asked_to_end is not None or not self._session.waits):
                return self._end_server()  # the client has never used it
            elif leaving:
                self._wait(self._timeout())
            elif self._changed and self._due():
                if self._alive:
                    self._hold(HOLDING)
                    code = self._end_server()
                    if self._child.asked_to_end is not None:
                        return code
                self._replace()
            else:
                self._wait(self._timeout())

    def _due(self) -> bool:
        """Return whether to replace the server now; if not, running calls must end first."""
        if not self._alive or not self._server.ready or not self._after_idle:
            return True
        if self._idle_until is None:
            self._idle_until = time.monotonic() + AFTER_IDLE
            self._hold(IDLING)
        if self._session.idle:
            return True
        if time.monotonic() < self._idle_until:
            return False
        self.say(f"calls still run after {AFTER_IDLE:g} s; replacing the server anyway")
        return True

    def _timeout(self) -> float | None:
        """Return the seconds until the next step; set the fault of a server that takes too long to start."""
        if self._idle_until is not None:
            return max(self._idle_until - time.monotonic(), 0)
        if self._alive and not self._server.ready:
            left = self._started + STARTS - time.monotonic()
            if left <= 0:
                self._server.fault = f"it did not answer the handshake within {STARTS:g} s"
                return 0
            return left
        return None

    def _hold(self, mode: str) -> None:
        """Hold the client's requests from now on."""
        changed = [path for path, _ in self._changed]
        self._why = _named(changed)
        again = f"the server is being reloaded because {self._why}, and too many requests wait; call again"
        self._session.set_mode(mode, again, _facts(changed))
        if mode == HOLDING or self._idle_until is not None:
            self.say(f"{self._why}; " + ("replacing the server" if mode == HOLDING else "waiting for running calls"))

    def _replace(self) -> None:
        """Start the next server after the last one has exited."""
        changes, self._changed = self._changed, []
        changed = [path for path, _ in changes]
        for path in self._start_changes.reload({path for path, early in changes if early}):
            self.say(f"{_shown([path])[0]} changes whenever the server starts: it no longer reloads the server")
        self._why, self._idle_until = _named(changed), None
        old, facts = self._server, _facts(changed)
        self._session.set_mode(HOLDING, f"the server is being reloaded because {self._why}", facts)
        refusal = f"the server was reloaded because {self._why}; call again"
        self._steps.put(lambda: self._session.leave(old, keep=True, reason=refusal, facts=facts))
        self._started = time.monotonic()
        self._restart()
        server, since = self._adopt(old.number + 1), self._started
        server.begin(self._session.from_server)
        try:
            self._child.confirm()
        except SpawnError as error:
            server.fault = str(error)
            self._fail(error.status)
            return
        self._alive = True

        def begin() -> None:
            self._session.begin(server)
            if server.ready:
                self.say(f"the server is ready after {time.monotonic() - since:.2f} s")

        self._steps.put(begin)

    def _adopt(self, number: int) -> ReloadableServer:
        """Make the child the current server of the session."""
        server = ReloadableServer(self._child, number, self._there, self._errors, self._clock.started)
        self._server = self._session.server = server
        return server

    def _fail(self, code: int) -> None:
        """Report that the server has exited and no file has changed: to the user now, to the client per request."""
        server, since = self._server, self._why
        self._idle_until = None

        def fail() -> None:
            server.wait_for_rest(REST)
            why = server.fault or _status(code)
            words = server.last_words
            what = f" after {since}" if since and not server.ready else ""
            reason = f"the server does not run: {why}{what}; it is started again when a file changes"
            facts: dict[str, object] = {"exit": code, "stderr": words}
            self._session.fail(server, reason + (f"\n{words}" if words else ""), facts)
            last = f": {server.last_word}" if words else ""
            self.say(f"the server does not run: {why}{last}; save a file to start it again")

        self._steps.put(fail)

    def _end_server(self) -> int:
        """End the server with all processes that it started; return its exit code."""
        server = self._server
        closed = server.stdin.close(_LEAVES)
        codes: list[int] = []

        def gone(seconds: float | None) -> bool:
            until = None if seconds is None else time.monotonic() + seconds
            while not codes and (until is None or time.monotonic() < until):
                if (code := self._poll()) is not None:
                    codes.append(code)
                else:
                    self._wait(None if until is None else max(until - time.monotonic(), 0))
            return bool(codes)

        end(gone, self._send, _LEAVES if closed else 0, _TERMINATES)
        gone(None)
        return codes[0]

    def _poll(self) -> int | None:
        """Return the exit code of the server if it has exited; then also kill the processes that it started."""
        if hasattr(os, "waitid"):  # macOS has it since Python 3.13
            if os.waitid(os.P_PID, self._child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            self._send(_signal.SIGKILL)  # the server is not reaped yet, so the group id is still its own
        code = self._child.poll()
        if code is not None:
            if not hasattr(os, "waitid"):
                self._send(_signal.SIGKILL)
            self._alive = False
            self._server.settle(self._clock.now())
            self._server.exited.set()
            self._server.answered.set()
        return code

    def _wait(self, seconds: float | None) -> None:
        self._child.handle_signal(seconds, self._signalled, self._interrupted)

    def _signalled(self, number: int, t: int, to: str, forwarded: bool) -> None:
        self._recording.signal(max(t - self._clock.started, 0), number, to, forwarded)

    def _interrupted(self, number: int) -> None:
        """Forward a signal that ends processes to the group of the server."""
        self._signalled(number, time.monotonic_ns(), "process", self._alive and self._send(number))

    def _send(self, number: int) -> bool:
        return signal_group(self._child.pid, number)


def _wake() -> None:
    """Wake the main thread, which waits for this signal anyway."""
    os.kill(os.getpid(), _signal.SIGCHLD)


def _shown(paths: list[str]) -> list[str]:
    """Return the paths to name in a message, relative to the current directory if they are below it."""
    here = os.path.join(os.getcwd(), "")
    return [path.removeprefix(here) for path in dict.fromkeys(paths)][:_NAMED]


def _facts(paths: list[str]) -> dict[str, object]:
    """Return the changes for programs, as `data` of an error."""
    return {"changed": _shown(paths)}


def _named(paths: list[str]) -> str:
    """Return the changes in words."""
    more = len(set(paths)) - _NAMED
    return ", ".join(_shown(paths)) + (f" and {more} more" if more > 0 else "") + " changed"


def _status(code: int) -> str:
    return f"it ended with signal {-code}" if code < 0 else f"it ended with exit status {code}"


def _say(sentence: str) -> None:
    """Write one line to stderr; in a thread of its own, because stderr may have no reader."""
    safe = "".join(it if it.isprintable() else "?" for it in sentence)
    Thread(target=write_errors, args=(f"mcpspy: {safe}\n".encode("utf-8", "replace"),), daemon=True).start()
