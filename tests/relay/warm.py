"""`mcpspy mitm` as the child of a process that has imported mitmproxy before: each start takes 50 ms instead of 700.

A worker has one such parent. Tests of the start itself give `Mitm` a program of their own, and get a process from
nothing; so does every system but Linux.
"""

import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys

from tests import limits
from tests.peers import prepare

CAN = hasattr(os, "pidfd_open") and hasattr(signal, "pidfd_send_signal") and sys.version_info < (3, 14)
"""Whether a process can be watched that is not our child."""

PARENT = """
import json, os, signal, socket, sys, traceback
import mcpspy.relay.mitm.addon
from mcpspy.cli import main

control = socket.socket(fileno=os.dup(0))
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
while True:
    message, fds, _, _ = socket.recv_fds(control, 1 << 16, 2)
    if not message:
        os._exit(0)
    asked = json.loads(message)
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
    for number, fd in enumerate(fds, 1):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", 1, errors="backslashreplace", closefd=False)
    os.environ.clear()
    os.environ.update(asked["environ"])
    sys.argv[1:] = asked["arguments"]
    status = 1
    try:
        status = main()
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
"""


@functools.cache
def _parent():
    """The process that has imported mitmproxy, and the socket on which it is asked; it ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [prepare.python("mitm"), "-c", PARENT]
    process = limits.Popen(command, stdin=theirs, stdout=subprocess.DEVNULL, start_new_session=True)
    theirs.close()
    ours.settimeout(limits.LIMIT)
    return process, ours


def _ask(fds=(), **question):
    _, control = _parent()
    socket.send_fds(control, [json.dumps(question).encode()], fds)
    answer = control.recv(100)
    assert answer, "the process that has imported mitmproxy has ended"
    return int(answer)


class Child:
    """A running `mcpspy mitm`; what of `subprocess.Popen` its tests use."""

    def __init__(self, arguments, environ, stderr):
        read, write = os.pipe()
        self.pid = _ask((write, stderr.fileno()), arguments=arguments, environ=environ)
        os.close(write)
        self._handle = os.pidfd_open(self.pid)
        self.stdout = limits.Pipe(os.fdopen(read))
        self.returncode = None

    def poll(self, seconds=0):
        if self.returncode is None and select.select([self._handle], [], [], seconds)[0]:
            self.returncode = _ask(pid=self.pid)
            os.close(self._handle)
        return self.returncode

    def wait(self, timeout=limits.LIMIT):
        if self.poll(timeout) is None:
            raise subprocess.TimeoutExpired("mcpspy mitm", timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            signal.pidfd_send_signal(self._handle, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)
