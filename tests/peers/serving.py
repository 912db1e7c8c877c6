"""Servers of the real peers over HTTP, each a process with a port of its own, for as long as somebody needs them."""

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
    """The cases as parameters of a test, of which those that are not `usual` are run by `scripts/test --field`."""
    assert set(usual) <= set(cases)
    values = {case: case if isinstance(case, tuple) else (case,) for case in cases}
    return [pytest.param(*values[case], marks=[] if case in usual else pytest.mark.field) for case in cases]


def run(command, env=None):
    """What a command writes that ends by itself, and its status."""
    command, parent = list(map(str, command)), warm.parent_of(command)
    if parent:
        return warm.run(command[1:], dict(env or os.environ), imported=parent)
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=2 * LIMIT, check=False)


@contextlib.contextmanager
def running(command, **popen):
    """A process whose standard output is read."""
    parent = None if popen else warm.parent_of(command)
    if parent:
        with open(os.devnull, "w") as stderr:
            process = warm.Child(command[1:], dict(os.environ), stderr, imported=parent)
    else:
        process = limits.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **popen)
    try:
        yield process
    finally:
        process.kill()
        process.wait(LIMIT)
        process.stdout.close()


@contextlib.contextmanager
def serving(server, transport, *tls):
    """The URL of a fresh server: that of an SDK, `everything`, or `mem0`, the scripted one.

    An SDK's Python server takes the files of a certificate and its key.
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
    """It says nowhere when it does."""
    given_up = time.monotonic() + LIMIT
    while time.monotonic() < given_up:
        with socket.socket() as trial:
            if trial.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise TimeoutError(f"no server came up on port {port}")
