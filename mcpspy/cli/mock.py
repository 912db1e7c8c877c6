"""`mcpspy mock`: serve a capture as a mock server, on stdin and stdout or over HTTP.

With `--gate`, the relay of `wrap` or `proxy` stands in front of the mock, without recording. A gate thus does exactly
the same to a mock as to a real server, and the mock itself does not know about gates. With `--record-missing`, requests
that the capture lacks are sent to the real server, and its answers are added.
"""

import argparse
import os
import queue
import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from mcpspy.capture.location import STANDARD_INPUT
from mcpspy.capture.reader import Capture
from mcpspy.cli.gates import compiled, recorded_answers
from mcpspy.cli.output import say
from mcpspy.errors import UsageError
from mcpspy.json_values import member
from mcpspy.process.ports import bound, listening_place, to_dial
from mcpspy.replay import settings
from mcpspy.replay.differences import excerpt
from mcpspy.replay.growth import RecordedServer, beside, take_in
from mcpspy.replay.mock import Heard, Missing, Mock, Wrong, say_due, serve
from mcpspy.replay.script import Script, Turn, load
from mcpspy.replay.tolerance import WAYS, Rules
from mcpspy.text import plural, printable
from mcpspy.wire.jsonrpc import Result

if TYPE_CHECKING:
    from mcpspy.gate.compiled import Answerers
    from mcpspy.replay.http_mock import Front


def _relay_stdio(command: list[str], gates: list[dict[str, Any]], answerers: "Answerers") -> NoReturn:
    """Start the mock with a command, relay between it and our client, and exit with the status of the mock."""
    from mcpspy.relay.stdio import relay

    if sys.platform == "win32":
        from mcpspy.process.child_windows import environment, spawn
    else:
        from mcpspy.process.child import environment, spawn

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C that ends the mock also ends us
    environ = environment()
    status = relay.run(
        spawn(command, environ),
        command,
        environ,
        name=None,
        output=None,
        folder=None,
        check=False,
        gates=gates,
        answerers=answerers,
        control=False,
        record=False,
    )
    os._exit(status)  # a pump may still block in a read


def _relay_in_front(where: str, gates: list[dict[str, Any]], answerers: "Answerers") -> "Front":
    """Listen at `HOST:PORT` in place of a mock, and relay to it. Raises UsageError if it cannot listen."""
    import asyncio

    from mcpspy.recording.recording import Recording
    from mcpspy.relay.http.heads import Address
    from mcpspy.relay.http.host_guard import Guard
    from mcpspy.relay.http.listener import Relay  # aiohttp takes 0.2 s to import
    from mcpspy.relay.http.route import HttpRoute, Upstream

    host, port = listening_place(where, 6279)
    listener = bound(host, port)

    @asynccontextmanager
    async def front(url: str) -> AsyncIterator[str]:
        address = Address(url)
        route = HttpRoute(address, Upstream(address), Recording(say))
        relay = Relay([route], Guard(host, ()), say, gates=gates, answerers=answerers, control=False)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: None)  # noqa: ARG005 (connections that break)
        server = await loop.create_server(relay.server(), sock=listener, backlog=1024)
        try:
            yield f"http://{to_dial(host)}:{listener.getsockname()[1]}{address.target}"
        finally:
            server.close()
            await relay.end()

    return front


_ANSWERS = 10.0  # seconds to wait for pending answers after the client has closed stdin
_MOST = 5  # maximum number of requests listed
_LONGEST = 60  # maximum length of a listed request, in characters
_ENDING = ("SIGTERM", "SIGINT", "SIGHUP")


def _refuse(options: argparse.Namespace) -> None:
    """Raise UsageError if `--record-missing` is not possible, before anything is started."""
    command = "mcpspy mock CAPTURE --record-missing -- COMMAND [ARG...]"
    if STANDARD_INPUT in options.captures and (not options.listen or options.gate):
        what = "standard input is for the client" if not options.listen else "--gate starts the mock as a program"
        raise UsageError(f"{what}: give the name of a file")
    if not options.record_missing:
        if options.server:
            raise UsageError(f"what follows '--' is the command of a server that records: {command}")
        return
    if not options.server:
        raise UsageError(f"--record-missing needs the command of the server: {command}")
    if len(options.captures) > 1:
        raise UsageError("--record-missing adds to one capture: give one")
    if options.listen:
        raise UsageError("--record-missing records a server on stdio for a client on stdio: leave out --listen")
    if options.gate:
        raise UsageError("--record-missing records what the server sends, not what a gate changes: leave out --gate")
    if options.loose:
        raise UsageError("--loose answers what is missing, --record-missing records it: give one of them")
    if shutil.which(options.server[0]) is None:
        raise UsageError(f"cannot start the server: {shlex.quote(options.server[0])} is not a command that can be run")
    _refuse_capture(options.captures[0])


def _refuse_capture(path: str) -> None:
    """Raise UsageError if the capture at `path` cannot be extended, or CaptureError if it is not a capture."""
    folder = os.path.dirname(os.path.realpath(path))
    if not os.path.isdir(folder):
        raise UsageError(f"cannot record into {path}: there is no directory {folder}")
    if not os.access(folder, os.W_OK):
        raise UsageError(f"cannot record into {path}: the directory {folder} is not writable")
    if not os.path.lexists(path):
        return
    capture = Capture(path)
    header = capture.header
    if capture.copied:
        raise UsageError(f"cannot record into {path}, because it is compressed: decompress it first")
    if capture.live:
        raise UsageError(f"{path} is still being recorded: end its session first")
    if not os.access(path, os.W_OK):
        raise UsageError(f"cannot record into {path}: it is not writable")
    if header.transport != "stdio":
        raise UsageError(f"{path} was recorded over HTTP: --record-missing adds sessions of servers on stdio")
    if header.scrubbed:
        raise UsageError(f"{path} was scrubbed, but new messages would not be: use the original capture")
    if len(capture.paths) > 1 or header.continues:
        raise UsageError(f"{path} is one of several files of a capture: --record-missing adds to a capture of one file")


def _serve_recording(options: argparse.Namespace, rules: Rules) -> Mock:
    """Serve the client on stdin and stdout until it disconnects, and add what was missing to the capture."""
    path = options.captures[0]
    sink = os.dup(1)
    os.dup2(2, 1)  # stdout carries only messages; all other output goes to stderr
    recovered = take_in(path, say)
    if recovered:
        say(f"{path} has {plural(recovered, 'request')} more, of an earlier session that was not added when it ended")
    scripts = [load(path, say)] if os.path.exists(path) else []
    name = scripts[0].header.name if scripts and scripts[0].header else None
    heard: Heard = queue.SimpleQueue()
    stopped = _end_by_signals(heard)
    server = RecordedServer(options.server, beside(path), name, heard)
    missing = Missing(server.begin)
    mock = Mock(scripts, recorded_pace=options.pace == "recorded", rules=rules, missing=missing)
    if serve(mock, 0, sink, say, heard) and not stopped.is_set():
        _hear_out(mock, missing, heard, sink)
    server.end()
    while not heard.empty():
        take = heard.get()
        if take:  # None stands for a signal: the session is already ending
            take()
    say_due(mock, sink)
    _tell_revision(path, scripts, missing.revision)
    if missing.asked:
        _tell(path, missing.asked, take_in(path, say))
    return mock


def _hear_out(mock: Mock, missing: Missing, heard: Heard, sink: int) -> None:
    """Wait for pending answers: the client has closed stdin, but may still read. A signal ends the wait."""
    due = time.monotonic() + _ANSWERS
    while missing.pending:
        try:
            take = heard.get(timeout=max(due - time.monotonic(), 0))
        except queue.Empty:
            return
        if take is None:
            return
        take()
        if not say_due(mock, sink):
            return


def _tell(path: str, asked: list[str], added: int) -> None:
    names = [printable(name, _LONGEST) for name in dict.fromkeys(asked)]
    shown = ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST:,} more" if len(names) > _MOST else "")
    now = f"lacked {shown}; it has {plural(added, 'request')} more now" if added else f"still lacks {shown}"
    say(f"{path} {now}")


def _tell_revision(path: str, scripts: list[Script], spoken: str | None) -> None:
    """Warn if the server answered with a revision other than the recorded one, which the client got."""
    answers = [turn.response for script in scripts for turn in script.turns if turn.method == "initialize"]
    told = [member(it.body.result, "protocolVersion") for it in answers if it and isinstance(it.body, Result)]
    if spoken and told and spoken not in told:
        say(
            f"the server answered with revision {spoken}, but {path} with {told[0]}: record the capture again to have "
            "one revision only"
        )


def _end_by_signals(heard: Heard) -> threading.Event:
    """Let signals that end processes end the session normally, so that new recordings are added.

    Returns an event that such a signal sets. A thread waits for the signals: Python runs handlers in the main thread
    only, and a signal that comes just before that thread blocks, or in another thread, would not wake it.
    """
    stopped = threading.Event()
    receiver, sender = socket.socketpair()
    sender.setblocking(False)

    def wait() -> None:
        while receiver.recv(1):
            stopped.set()
            heard.put(None)

    signal.set_wakeup_fd(sender.detach(), warn_on_full_buffer=False)
    for name in _ENDING:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
    threading.Thread(target=wait, daemon=True).start()
    return stopped


def run(options: argparse.Namespace) -> int:
    """Serve until the client disconnects, or over HTTP until a signal.

    Returns 1 if a request was not recorded, if an answer of the client is missing or differs from the capture, if the
    real server did not answer a request (`--record-missing`), or if a recording was not requested (`--all-used`).
    """
    _refuse(options)
    rules = settings.chosen(options.captures, vars(options)).rules
    gates = compiled(options.gate, "http" if options.listen else "stdio")
    if gates and not options.listen:
        return _relay_stdio(_command(options), gates, recorded_answers(gates))
    mocks = [_serve_recording(options, rules)] if options.record_missing else _serve(options, rules, gates)
    for mock in mocks:
        for miss in mock.misses:
            say(str(miss))
        for wrong in mock.wrong:
            say(_told(wrong))
    unused = _unused(mocks) if options.all_used else []
    for turn in unused:
        say(f"{printable(str(turn), _LONGEST)} (#{turn.cause.n}) was recorded, but not requested")
    return 1 if unused or any(mock.misses or mock.wrong or mock.failed for mock in mocks) else 0


def _unused(mocks: Sequence[Mock]) -> list[Turn]:
    """Return the recorded requests that no client sent."""
    first, *others = mocks
    used = {turn for mock in others for turn in set(first.unused) - set(mock.unused)}
    return [turn for turn in first.unused if turn not in used]


def _serve(options: argparse.Namespace, rules: Rules, gates: list[dict[str, Any]] | None) -> Sequence[Mock]:
    """Serve only what the captures contain."""
    scripts = [load(path, say) for path in options.captures]

    def make() -> Mock:
        return Mock(scripts, recorded_pace=options.pace == "recorded", loose=options.loose, rules=rules)

    if not options.listen:
        return [_serve_stdio(make())]
    return [make(), *_serve_web(make, options.listen, gates)]  # the first shows what was recorded, if no client came


def _serve_stdio(mock: Mock) -> Mock:
    sink = os.dup(1)
    os.dup2(2, 1)  # stdout carries only messages; all other output goes to stderr
    serve(mock, 0, sink, say)
    return mock


def _command(options: argparse.Namespace) -> list[str]:
    """Return the command line of the same mock on stdio, without gates."""
    more = [f"--{name}" for name, given in (("loose", options.loose), ("all-used", options.all_used)) if given]
    more += [word for way in WAYS for text in getattr(options, way) for word in (f"--{way}", text)]
    return [
        sys.executable,
        "-P",
        "-m",
        "mcpspy",
        "mock",
        "--pace",
        options.pace,
        *more,
        *map(_as_path, options.captures),
    ]


def _as_path(path: str) -> str:
    """Return a path that cannot be mistaken for an option."""
    return os.path.join(".", path) if path.startswith("-") else path


def _serve_web(make: Callable[[], Mock], where: str, gates: list[dict[str, Any]] | None) -> Sequence[Mock]:
    from mcpspy.replay.http_mock import serve_web  # aiohttp takes 0.2 s to import

    if not gates:
        return serve_web(make, where, say)
    return serve_web(make, "127.0.0.1:0", say, _relay_in_front(where, gates, recorded_answers(gates)))


def _told(wrong: Wrong) -> str:
    answer = f"the client's answer to {wrong.question.body.value['method']} (#{wrong.question.n})"
    if wrong.difference is None:
        return f"{answer} is missing"
    recorded, observed = excerpt(wrong.difference.recorded), excerpt(wrong.difference.observed)
    where = f" at {wrong.difference.pointer}" if wrong.difference.pointer else ""
    return f"{answer} differs from the capture: expected {recorded}{where}, got {observed}"
