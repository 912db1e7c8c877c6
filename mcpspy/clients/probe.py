"""Starting a server like a client and introducing a client to it, and checking whether a port is in use.

The server is started and asked as by any client of ours (`mcpspy.transport`), and its session is recorded in a
temporary capture, which has what it wrote to stderr. A server that exits or refuses before it has introduced itself is
started again and receives only `initialize`. In any case, the server and its child processes have ended when `talk`
returns or a signal ends it.
"""

import http.client
import os
import re
import socket
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from mcpspy.json_values import parsed
from mcpspy.transport.client import PROBE, AskingClient, ErrorAnswer, Gone, NoAnswer
from mcpspy.transport.link import CLOSES, FLOODS, Link, run_session, stderr_of

PATIENCE = 10.0
"""Time-out for the first response in seconds, as in Cursor."""
_KEPT = 20  # lines of stderr, and of invalid stdout
_SHOWN = 4096  # characters of such a line
_STILL_RUNS = {CLOSES: "it closed its stdout", FLOODS: "it did not stop writing"}
_LONGEST = 4 << 20  # bytes of a response at the root of a port


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


def talk(
    words: Sequence[str], environ: Mapping[str, str], cwd: str, patience: float = PATIENCE, probe: float = PROBE
) -> Answer:
    """Start a server, introduce a client, end the server. Raises SpawnError or ValueError if it cannot be started.

    `probe` is the time after which `initialize` is sent to a server that does not answer `server/discover`.

    Call it from the main thread, while that is the only thread. A signal that would end mcpspy ends the server and
    raises KeyboardInterrupt.
    """
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    if any(b"\0" in os.fsencode(it) for it in (cwd, *words, *environ, *environ.values())):
        raise ValueError("embedded null byte")
    if any("=" in name for name in environ):
        raise ValueError("illegal environment variable name")
    answer = Answer()
    for discover in (True, False):  # it may require that `initialize` comes first
        answer = Answer()
        with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
            path = os.path.join(folder, "session.jsonl")
            connect = partial(Link, [*words], "doctor", path, lambda _: None, 0, variables, cwd)
            play = partial(_introduced, answer, patience, probe, time.monotonic(), discover=discover)
            run_session(connect, play)
            answer.stderr = [line[:_SHOWN] for line in stderr_of(path, _KEPT)]
        if answer.method or (answer.exit is None and not answer.error):
            break
    return answer


def _introduced(answer: Answer, patience: float, probe: float, started: float, link: Link, *, discover: bool) -> None:
    """Introduce a client, and note what comes of it."""

    def noted(line: bytes) -> None:
        if len(answer.noise) < _KEPT and line.strip() and not _is_object(line):
            answer.noise.append(line.rstrip(b"\r").decode(errors="replace")[:_SHOWN])

    client = AskingClient(link, "mcpspy-doctor", aside=noted)
    try:
        left = patience - probe if discover else patience
        answer.method, answer.result = client.greet(left, probe, discover=discover)
    except Gone as error:
        answer.exit, answer.error = error.code, _STILL_RUNS.get(error.why, "")
    except ErrorAnswer as error:
        answer.error = error.why
    except NoAnswer:
        pass
    finally:
        answer.seconds = time.monotonic() - started


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(parsed(line), dict)
    except ValueError:
        return False


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
        said = connection.getresponse().read(_LONGEST).decode(errors="replace")
    except (OSError, http.client.HTTPException):  # something that does not speak HTTP
        return []
    finally:
        connection.close()
    return re.findall(r"/([\w.-]+)/", said) if said.startswith("mcpspy: there is no route at this path") else []
