"""Servers of the real peers over HTTP. Each is a process with its own port, and runs for the length of a block."""

import contextlib
import os
import socket
import subprocess
import time

import pytest

from tests import limits, ports
from tests.limits import LIMIT
from tests.peers import prepare, warm

PATHS = {"http": "/mcp", "json": "/mcp", "sse": "/sse", "ws": "/ws"}


def each(cases, usual):
    """Return the cases as parameters of a test. Only `scripts/test --field` runs those that are not `usual`."""
    assert set(usual) <= set(cases)
    values = {case: case if isinstance(case, tuple) else (case,) for case in cases}
    return [pytest.param(*values[case], marks=[] if case in usual else pytest.mark.field) for case in cases]


def run(command, env=None):
    """Run a command that ends by itself. Return its output and its status."""
    command, parent = list(map(str, command)), warm.parent_of(command)
    if parent:
        return warm.run(command[1:], dict(env or os.environ), imported=parent)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=2 * LIMIT, check=False)


@contextlib.contextmanager
def running(command, *, stderr=os.devnull, **popen):
    """Run a process whose stdout is read. The file `stderr` gets its stderr."""
    parent = None if popen else warm.parent_of(command)
    with open(stderr, "w") as told:
        if parent:
            process = warm.Child(command[1:], dict(os.environ), told, imported=parent)
        else:
            process = limits.Popen(command, stdout=subprocess.PIPE, stderr=told, text=True, **popen)
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT)
        process.stdout.close()


@contextlib.contextmanager
def serving(server, transport, *tls):
    """Start a server of an SDK, `everything`, or the scripted `mem0`, and yield its URL.

    A Python SDK server accepts a certificate file and its key file.
    """
    if server == "everything":
        port = ports.free()
        kind = {"http": "streamableHttp", "sse": "sse"}[transport]
        with running(prepare.everything(kind), env=os.environ | {"PORT": str(port)}):
            _until_it_listens(port)
            yield f"http://127.0.0.1:{port}{PATHS[transport]}"
    else:
        command = prepare.mem0() if server == "mem0" else prepare.server(server, f"--{transport}", *tls)
        with running(command) as process:
            scheme = "https" if tls else "http"
            yield f"{scheme}://127.0.0.1:{process.stdout.readline().strip()}{PATHS[transport]}"


def _until_it_listens(port):
    """Wait until the server listens, by trying to connect: it does not report it."""
    given_up = time.monotonic() + LIMIT
    while time.monotonic() < given_up:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"no server came up on port {port}")
