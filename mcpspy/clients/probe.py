"""Starting a server like a client and sending the first request, and checking whether a port is in use.

The server receives `server/discover` (2026-07-28), and `initialize` if that is refused or not answered. A server that
exits on the first request is started again and receives only the second. In any case, the server and its child
processes have ended when `talk` returns or a signal ends it: stdin is closed, then SIGTERM and SIGKILL are sent, each
after the two seconds that SDKs give a server. The memory for its output is limited.
"""

import http.client
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from mcpspy import __version__
from mcpspy.json_values import excerpt, member, parsed
from mcpspy.process.command_line import command_line
from mcpspy.spec.revisions import NEWEST_HANDSHAKE, PROTOCOL_VERSION, STATELESS

PATIENCE = 10.0
"""Time-out for the first response in seconds, as in Cursor."""

PROBE = 2.0
"""Seconds until `initialize` is sent to a server that does not answer `server/discover`."""
LEAVE = 2.0
"""Seconds to wait after each way of ending a server."""
_KEPT = 20  # lines of stderr, and of invalid stdout; responses that wait
_SHOWN = 4096  # bytes of such a line
LONGEST = 4 << 20
"""Maximum length of a message in bytes."""
_Request = dict[str, object]
_Response = dict[str, Any] | None
_INTERRUPTED: _Response = {}
_INTERRUPTS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
_ME = {"name": "mcpspy-doctor", "version": __version__}
_DISCOVER: _Request = {
    "method": "server/discover",
    "params": {
        "_meta": {
            PROTOCOL_VERSION: STATELESS[0].value,  # servers that support a later one probably support this one
            "io.modelcontextprotocol/clientInfo": _ME,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
_INITIALIZE: _Request = {
    "method": "initialize",
    "params": {"protocolVersion": NEWEST_HANDSHAKE.value, "capabilities": {}, "clientInfo": _ME},
}
_REQUESTS = (_DISCOVER, _INITIALIZE)


@dataclass(slots=True)
class Answer:
    """The outcome of the conversation."""

    method: str | None = None
    """The request that was answered by a result; None if there was none."""
    result: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0
    """From the start to the response, or to the end."""
    error: str = ""
    """The error that the server returned instead of a result."""
    noise: list[str] = field(default_factory=list)
    """Lines on stdout that are not messages."""
    stderr: list[str] = field(default_factory=list)
    """The last lines."""
    exit: int | None = None
    """The exit status of a server that exited by itself before it answered; negative for a signal."""


def talk(words: Sequence[str], environ: Mapping[str, str], cwd: str, patience: float = PATIENCE) -> Answer:
    """Start a server, send the first request, end the server. Raises OSError or ValueError if it cannot be started.

    Call it from the main thread. A signal that would end mcpspy ends the server and raises KeyboardInterrupt.
    """
    answer = _talk(words, environ, cwd, patience, _REQUESTS)
    if answer.method is None and (answer.exit is not None or answer.error):
        return _talk(words, environ, cwd, patience, (_INITIALIZE,))  # it may require that `initialize` comes first
    return answer


def _talk(
    words: Sequence[str], environ: Mapping[str, str], cwd: str, patience: float, requests: Sequence[_Request]
) -> Answer:
    """Do the same with these requests, in this order.

    Each request is sent when the one before it is refused or remains unanswered.
    """
    answer, pipe = Answer(), subprocess.PIPE
    responses: queue.SimpleQueue[_Response] = queue.SimpleQueue()  # the only queue that a signal handler may use
    said: deque[bytes] = deque(maxlen=_KEPT)
    signals = []

    def interrupt(number: int, _: object) -> None:
        signals.append(number)
        responses.put(_INTERRUPTED)

    before = {number: signal.signal(number, interrupt) for number in _INTERRUPTS}
    try:
        process = subprocess.Popen(
            _command(words, environ), stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environ), cwd=cwd,
            start_new_session=sys.platform != "win32",
        )  # fmt: skip
        assert process.stdout
        assert process.stderr
        readers = [
            threading.Thread(target=_read_stdout, args=(process.stdout, responses, answer.noise), daemon=True),
            threading.Thread(target=_read_stderr, args=(process.stderr, said), daemon=True),
        ]
        for reader in readers:
            reader.start()
        try:
            _converse(process, requests, responses, answer, patience)
        finally:
            _end(process)
        for reader, stream in zip(readers, (process.stdout, process.stderr), strict=True):
            reader.join(LEAVE)
            if not reader.is_alive():  # otherwise a process outside the group holds the pipe
                stream.close()
    finally:
        for number, action in before.items():
            signal.signal(number, action)
    if signals:
        raise KeyboardInterrupt
    answer.stderr = [line.decode(errors="replace") for line in list(said) if line]
    return answer


def _command(words: Sequence[str], environ: Mapping[str, str]) -> str | Sequence[str]:
    """Return the arguments for `Popen`; Windows runs scripts, such as npx, by `cmd.exe`."""
    if sys.platform != "win32":
        return words
    return command_line(words, environ, shutil.which(words[0], path=environ.get("PATH")) or words[0])


def _converse(
    process: subprocess.Popen[bytes],
    requests: Sequence[_Request],
    responses: "queue.SimpleQueue[_Response]",
    answer: Answer,
    patience: float,
) -> None:
    started = time.monotonic()
    sent = _send(process, requests, 0)
    while (now := time.monotonic()) < started + patience:
        due = started + (PROBE if sent < len(requests) else patience)
        try:
            response = responses.get(timeout=max(min(due, started + patience) - now, 0.001))
        except queue.Empty:
            sent = _send(process, requests, sent) if sent < len(requests) else sent
            continue
        if response is _INTERRUPTED:
            break
        if response is None:
            try:
                answer.exit = process.wait(LEAVE)
            except subprocess.TimeoutExpired:
                answer.error = "it closed its stdout"
            break
        number = response["id"]
        if isinstance(response.get("result"), dict) and 1 <= number <= sent:
            answer.method, answer.result = str(requests[number - 1]["method"]), response["result"]
            break
        if number == sent:
            answer.error = _refusal(response)
            if sent == len(requests):
                break
            sent = _send(process, requests, sent)
    answer.seconds = time.monotonic() - started


def _refusal(response: dict[str, Any]) -> str:
    """Return why a response does not answer its request."""
    if "error" not in response:
        return f"its result is {excerpt(response.get('result'))}, not an object"
    message = member(response["error"], "message")
    return message if message and isinstance(message, str) else f"its error is {excerpt(response['error'])}"


def _send(process: subprocess.Popen[bytes], requests: Sequence[_Request], number: int) -> int:
    """Send a request whose id is its number from 1; return the number of requests sent."""
    assert process.stdin
    try:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number + 1} | requests[number]).encode() + b"\n")
        process.stdin.flush()
    except OSError:  # it has exited, which its stdout shows
        pass
    return number + 1


def _read_stdout(stream: IO[bytes], responses: "queue.SimpleQueue[_Response]", noise: list[str]) -> None:
    """Put the first responses into the queue, so the server may write any amount; None is the end."""
    number = 0
    for line in _lines(stream):
        try:
            message = parsed(line)
        except ValueError:
            message = None
        if isinstance(message, dict):
            answered = message.get("id")
            ours = type(answered) is int and 1 <= answered <= len(_REQUESTS) and "method" not in message
            if ours and number < _KEPT:
                responses.put(message)
                number += 1
        elif line.strip() and len(noise) < _KEPT:
            noise.append(line[:_SHOWN].rstrip(b"\r\n").decode(errors="replace"))
    responses.put(None)


def _read_stderr(stream: IO[bytes], said: deque[bytes]) -> None:
    for line in _lines(stream):
        said.append(line[:_SHOWN].rstrip(b"\r\n"))


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines; only the beginning of a line that is too long."""
    while line := stream.readline(LONGEST):
        rest = line
        while len(rest) == LONGEST and not rest.endswith(b"\n"):
            rest = stream.readline(LONGEST)
        yield line


def _end(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin
    try:
        process.stdin.close()
    except OSError:
        pass
    for name in ("", "SIGTERM", "SIGKILL"):
        if name:
            _signal(process, name)
        try:
            process.wait(LEAVE)
            break
        except subprocess.TimeoutExpired:
            continue
    _signal(process, "SIGKILL")  # child processes that it left behind


def _signal(process: subprocess.Popen[bytes], name: str) -> None:
    try:
        if sys.platform != "win32":
            os.killpg(process.pid, getattr(signal, name))
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass


def listening(port: int) -> bool:
    """Return whether a process on this machine accepts connections on a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def routes_at(port: int) -> list[str]:
    """Return the routes that a `mcpspy proxy` on a port of this machine serves, from its response at the root."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE / 2)
    try:
        connection.request("GET", "/")
        said = connection.getresponse().read(LONGEST).decode(errors="replace")
    except (OSError, http.client.HTTPException):  # something that does not speak HTTP
        return []
    finally:
        connection.close()
    return re.findall(r"/([\w.-]+)/", said) if said.startswith("mcpspy: there is no route at this path") else []
