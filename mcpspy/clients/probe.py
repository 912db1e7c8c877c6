"""Starting a server as a client would and saying hello to it, and looking at who listens on a port.

The server is asked `server/discover` (2026-07-28), and `initialize` when that is refused or nothing comes. However it
behaves, it and what it started have ended when `talk` returns: stdin is closed, then come SIGTERM and SIGKILL, each
after the two seconds that SDKs leave a server.
"""

import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from mcpspy import __version__
from mcpspy.protocol.revisions import NEWEST_HANDSHAKE, PROTOCOL_VERSION, Revision

PATIENCE = 10.0
"""Seconds that a server has for its first answer, as in Cursor."""

_PROBE = 2.0  # seconds until `initialize` is sent to a server that says nothing to `server/discover`
_LEAVE = 2.0  # seconds for each way of asking a server to end
_KEPT = 20  # lines of stderr, and of stdout that is no message
_ME = {"name": "mcpspy-doctor", "version": __version__}
_DISCOVER = {
    "method": "server/discover",
    "params": {
        "_meta": {
            PROTOCOL_VERSION: Revision.R2026_07_28.value,
            "io.modelcontextprotocol/clientInfo": _ME,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
_INITIALIZE = {
    "method": "initialize",
    "params": {"protocolVersion": NEWEST_HANDSHAKE.value, "capabilities": {}, "clientInfo": _ME},
}
_REQUESTS = (_DISCOVER, _INITIALIZE)


@dataclass(slots=True)
class Answer:
    """What came of it."""

    method: str | None = None
    """The request that was answered by a result; None if none was."""
    result: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0
    """From the start to the answer, or to the end."""
    error: str = ""
    """What the server answered instead of a result."""
    noise: list[str] = field(default_factory=list)
    """Lines on stdout that are no messages."""
    stderr: list[str] = field(default_factory=list)
    """The last lines."""
    exit: int | None = None
    """The exit status of a server that ended by itself before it answered; negative for a signal."""


def talk(words: Sequence[str], environ: Mapping[str, str], cwd: str, patience: float = PATIENCE) -> Answer:
    """Start a server, say hello, end it; raises OSError if it cannot be started."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(environ), cwd=cwd, start_new_session=os.name == "posix"
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    said: deque[bytes] = deque(maxlen=_KEPT)
    readers = [
        threading.Thread(target=_read, args=(process.stdout, lines.put), daemon=True),
        threading.Thread(target=_read, args=(process.stderr, said.append), daemon=True),
    ]
    for reader in readers:
        reader.start()
    answer = Answer()
    try:
        _converse(process, lines, answer, patience)
    finally:
        _end(process)
    for reader, stream in zip(readers, (process.stdout, process.stderr), strict=True):
        reader.join(_LEAVE)
        if not reader.is_alive():  # else something that left its group holds the pipe
            stream.close()
    answer.stderr = [line.decode(errors="replace") for line in list(said) if line]
    return answer


def _converse(
    process: subprocess.Popen[bytes], lines: "queue.SimpleQueue[bytes | None]", answer: Answer, patience: float
) -> None:
    started = time.monotonic()
    sent = _send(process, 0)
    while answer.method is None and (now := time.monotonic()) < started + patience:
        due = started + (_PROBE if sent == 1 else patience)
        try:
            line = lines.get(timeout=max(min(due, started + patience) - now, 0.001))
        except queue.Empty:
            sent = _send(process, sent) if sent < len(_REQUESTS) else sent
            continue
        if line is None:
            try:
                answer.exit = process.wait(_LEAVE)
            except subprocess.TimeoutExpired:
                answer.error = "it closed its stdout"
            break
        refused = _take(line, answer)
        if refused == len(_REQUESTS):
            break
        if refused == sent:
            sent = _send(process, sent)
    answer.seconds = time.monotonic() - started


def _send(process: subprocess.Popen[bytes], number: int) -> int:
    """Send a request, the id being its number; returns how many have been sent."""
    assert process.stdin
    try:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number + 1} | _REQUESTS[number]).encode() + b"\n")
        process.stdin.flush()
    except OSError:  # it has gone, which its stdout will tell
        pass
    return number + 1


def _take(line: bytes, answer: Answer) -> int:
    """Note what a line says; returns the number of the request that it refuses, or 0."""
    try:
        message = json.loads(line)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        if len(answer.noise) < _KEPT and line.strip():
            answer.noise.append(line.decode(errors="replace"))
        return 0
    number = message.get("id")
    if "method" in message or type(number) is not int or not 1 <= number <= len(_REQUESTS):
        return 0
    if isinstance(message.get("result"), dict):
        answer.method, answer.result = str(_REQUESTS[number - 1]["method"]), message["result"]
    elif isinstance(message.get("error"), dict):
        answer.error = str(message["error"].get("message"))
        return number
    return 0


def _read(stream: IO[bytes], put: Any) -> None:
    for line in stream:
        put(line.rstrip(b"\r\n")[:4096])
    put(None)


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
            process.wait(_LEAVE)
            break
        except subprocess.TimeoutExpired:
            continue
    _signal(process, "SIGKILL")  # what it started and left behind


def _signal(process: subprocess.Popen[bytes], name: str) -> None:
    try:
        if os.name == "posix":
            os.killpg(process.pid, getattr(signal, name))
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass


def listening(port: int) -> bool:
    """Whether somebody on this machine takes connections on a port."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def holder(port: int) -> list[str]:
    """The command line of the process that listens on a port, where the system lets us see it (Linux); else nothing."""
    sockets = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                rows = [row.split() for row in file.readlines()[1:]]
        except OSError:
            continue
        sockets |= {
            f"socket:[{row[9]}]" for row in rows if row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port
        }
    try:
        processes = [name for name in os.listdir("/proc") if name.isdigit()] if sockets else []
    except OSError:
        return []
    return next((words for pid in processes if (words := _command_holding(pid, sockets))), [])


def _command_holding(pid: str, sockets: set[str]) -> list[str]:
    folder = f"/proc/{pid}/fd"
    try:
        for name in os.listdir(folder):
            if os.readlink(os.path.join(folder, name)) in sockets:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    return [word.decode(errors="replace") for word in file.read().split(b"\0") if word]
    except OSError:  # ended, or somebody else's
        pass
    return []
