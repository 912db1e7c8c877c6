"""Commands as children of a process that has imported their modules already: a start takes 50 ms, not 300 to 700.

A test worker has one such parent for `mcpspy mitm`, one for `mcpspy proxy`, one for all other commands, and one for the
programs of each Python SDK. Tests of the start itself start a new program, and so do all tests on systems other than
Linux.
"""

import asyncio
import atexit
import contextlib
import functools
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

from tests import limits
from tests.peers import prepare

CAN = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal") and sys.version_info < (3, 14)
"""Whether a process that is not our child can be watched."""

_SDK = "mcp, mcp.client.sse, mcp.server.lowlevel, mcp.server.sse, mcp.server.streamable_http_manager, uvicorn"
_IMPORTS = {
    "mitm": "mcpspy.cli.mitm, mcpspy.cli.commands, mcpspy.cli.output, mcpspy.relay.mitm.master, mcpspy.report.words",
    "proxy": "mcpspy.cli.proxy, mcpspy.relay.http.listener, mcpspy.relay.http.tunnel, mcpspy.relay.http.response"
    ", mcpspy.capture.writer, mcpspy.secrets.body, mcpspy.secrets.text",
    "mcpspy": "mcpspy.cli.check, mcpspy.cli.commands, mcpspy.cli.mcp, mcpspy.cli.mock, mcpspy.cli.otel"
    ", mcpspy.cli.proxy, mcpspy.cli.replay, mcpspy.cli.verify, mcpspy.contract.verify.proof, mcpspy.capture.writer"
    ", mcpspy.agent.server, mcpspy.relay.http.listener, mcpspy.relay.stdio.relay, mcpspy.secrets.body",
    "python1": f"{_SDK}, mcp.client.streamable_http, mcp.shared.experimental.tasks.in_memory_task_store",
    "python2": f"{_SDK}, mcp.server.subscriptions",
}
_PREPARE = {
    "mitm": """
import functools
from mitmproxy import certs
from mcpspy.relay.mitm import authority, master
certs.load_pem_private_key = functools.cache(certs.load_pem_private_key)
master.make(authority.Authority(sys.argv[1]))
"""
}
"""What a parent does before its first child. OpenSSL checks a private key for 100 to 250 ms whenever it is loaded."""
PARENT = """
import json, os, runpy, signal, socket, sys, traceback
import {imports}
{prepare}

control = socket.socket(fileno=os.dup(0))
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
while True:
    message, fds, _, _ = socket.recv_fds(control, 1 << 20, 3)
    if not message:
        os._exit(0)
    asked = json.loads(message)
    if not asked:
        control.send(b"0")
        continue
    if "pid" in asked:
        control.send(b"%d" % os.waitstatus_to_exitcode(os.waitpid(asked["pid"], 0)[1]))
        continue
    pid = os.fork()
    if pid:
        control.send(b"%d" % pid)
        for fd in fds:
            os.close(fd)
        continue
    control.close()
    for number, fd in zip((1, 2, 0), fds):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", 1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(asked["environ"])
    os.chdir(asked["folder"])
    first, *sys.argv[1:] = asked["command"]
    status = 1
    try:
        if first == "-m":
            runpy.run_module(sys.argv.pop(1), run_name="__main__")
        elif first == "-c":
            exec(sys.argv.pop(1), {"__name__": "__main__"})
        else:
            sys.path.append(os.path.dirname(first))  # at the end: `http` is a folder of tests, too
            runpy.run_path(first, run_name="__main__")
        status = 0
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
"""


def parent_of(command):
    """Return the name of the parent that can start a command, which begins with its Python, or None."""
    if not CAN:
        return None
    if command[:3] == [sys.executable, "-m", "mcpspy"] and command[3] in ("proxy", "mock"):
        return "proxy" if command[3] == "proxy" else "mcpspy"
    return next((name for name in ("python1", "python2") if command[0] == prepare.python(name)), None)


@functools.cache
def _parent(imported):
    """Start a parent that imports a command's modules, and return its request socket. It ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    python = sys.executable if imported in ("proxy", "mcpspy") else prepare.python(imported)
    source = PARENT.replace("{imports}", _IMPORTS[imported]).replace("{prepare}", _PREPARE.get(imported, ""))
    program = [python, "-c", source, *([_authority_folder()] if imported == "mitm" else ())]
    process = limits.Popen(program, stdin=theirs, stdout=subprocess.DEVNULL, start_new_session=True)
    theirs.close()
    ours.settimeout(limits.LIMIT)
    atexit.register(_end, process, ours)
    return ours


@functools.cache
def _authority_folder():
    folder = tempfile.TemporaryDirectory(prefix="authority-")
    atexit.register(folder.cleanup)
    return os.path.join(folder.name, "ca")


def give_authority(home):
    """Put the authority of the parent of `mcpspy mitm` into a home directory, so that no child has to create one."""
    _ask("mitm")
    shutil.copytree(_authority_folder(), os.path.join(home, ".mcpspy", "ca"))


def _end(process, control):
    control.close()
    process.wait()


_ONE_QUESTION = threading.Lock()


def _ask(imported, fds=(), **question):
    with _ONE_QUESTION:
        control = _parent(imported)
        socket.send_fds(control, [json.dumps(question).encode()], fds)
        answer = control.recv(100)
    assert answer, "the process that has imported the modules has ended"
    return int(answer)


class Child:
    """A running command, with the part of `subprocess.Popen` that tests use."""

    def __init__(self, command, environ, stderr, stdin=None, *, imported="mitm"):
        """Start `command`, without the name of Python at its front. The parent `imported` starts it."""
        read, write = os.pipe()
        self._imported = imported
        question = {"command": command, "environ": environ, "folder": os.getcwd()}
        fds = (write, stderr.fileno(), *([stdin.fileno()] if stdin else []))
        self.pid = _ask(imported, fds, **question)
        os.close(write)
        self.handle = os.pidfd_open(self.pid)
        self.stdout = limits.Pipe(os.fdopen(read))
        self.returncode = None

    def poll(self, seconds=0):
        if self.returncode is None and select.select([self.handle], [], [], seconds)[0]:
            self.returncode = _ask(self._imported, pid=self.pid)
            os.close(self.handle)
        return self.returncode

    def wait(self, timeout=limits.LIMIT):
        if self.poll(timeout) is None:
            raise subprocess.TimeoutExpired("mcpspy", timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            signal.pidfd_send_signal(self.handle, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class Process(Child):
    """A running command with the part of `limits.Popen` in text mode that tests use. Its streams are pipes."""

    def __init__(self, command, environ, imported):
        stdin, ours = os.pipe()
        theirs, stderr = os.pipe()
        with os.fdopen(stdin) as file, os.fdopen(stderr, "w") as told:
            super().__init__(command, environ, told, file, imported=imported)
        self.stdin, self.stderr = os.fdopen(ours, "w", 1), limits.Pipe(os.fdopen(theirs))

    def communicate(self, input="", timeout=limits.LIMIT):  # noqa: A002 (as in `subprocess`)
        with ThreadPoolExecutor() as pool:
            both = [pool.submit(pipe.read) for pipe in (self.stdout, self.stderr)]
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(input)
            told = tuple(text.result(timeout) for text in both)
        self.wait(timeout)
        self.stdout.close()
        self.stderr.close()
        return told

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.kill()
        for pipe in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()
        self.wait()


def start(*words, environ=None, cwd="."):
    """Start `mcpspy` with these words. Its streams are pipes in text mode."""
    environ = dict(os.environ if environ is None else environ)
    command = ["-m", "mcpspy", *map(str, words)]
    with contextlib.chdir(cwd):
        if CAN:
            return Process(command, environ, "mcpspy")
        pipe = subprocess.PIPE
        command = [sys.executable, *command]
        return limits.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environ)


def finish(*words, environ=None, cwd=".", said=""):
    """Run `mcpspy` to its end with this stdin. Return its exit status, stdout and stderr."""
    with start(*words, environ=environ, cwd=cwd) as process:
        told = process.communicate(said)
    return process.returncode, *told


class AsyncChild:
    """A running command for tests that are coroutines, with the part of `asyncio.subprocess.Process` that they use."""

    def __init__(self, child, stdout, stderr):
        self._child = child
        self.stdout, self.stderr = stdout, stderr
        self.pid, self.send_signal, self.kill = child.pid, child.send_signal, child.kill

    @property
    def returncode(self):
        return self._child.poll()

    async def wait(self):
        if self._child.poll() is None:
            loop, ended = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(self._child.handle, ended.set)
            await ended.wait()
            loop.remove_reader(self._child.handle)
        return self._child.wait()


def run(command, environ, *, imported="mitm"):
    """Run a command that ends by itself, as `subprocess.run` does."""
    with tempfile.TemporaryFile("w+") as stderr:
        child = Child(command, environ, stderr, imported=imported)
        try:
            stdout = child.stdout.read()
            status = child.wait()
        finally:
            child.kill()
            child.stdout.close()
        stderr.seek(0)
        return subprocess.CompletedProcess(command, status, stdout, stderr.read())


async def proxy(command):
    """Start `mcpspy proxy`. The event loop reads its stdout and stderr."""
    read, write = os.pipe()
    with os.fdopen(write, "wb") as told:
        child = Child(command, dict(os.environ), told, imported="proxy")
    return AsyncChild(child, await _reader(child.stdout), await _reader(os.fdopen(read, "rb")))


async def _reader(pipe):
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    return reader
