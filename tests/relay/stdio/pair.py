"""Both directions of the relay of `wrap`, each between two pipes, inside the test process."""

import os
import threading

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import Gate
from mcpspy.recording.recording import Channel, Recording
from mcpspy.relay.stdio.gated import GatedSession, gate_lines
from mcpspy.relay.stdio.pump import Pump
from tests import limits
from tests.relay.harness import LIMIT as SECONDS
from tests.transcript import begin

SECOND = 1_000_000_000


def compiled(action, name="g", **when):
    return {"name": name, "when": when, "action": action}


class Pair:
    """A relay; `client` and `server` are the peers' ends of the pipes. Without `gated`, gates act after `switch`."""

    def __init__(self, path, gates, back=Channel, *, gated=True):
        self.path, self.said, self.statuses = path, [], []
        pipes = [os.pipe() for _ in range(4)]  # client writes, server reads, server writes, client reads
        self.gate = Gate([gate if hasattr(gate, "decide") else DeclaredGate(gate) for gate in gates], self.said.append)
        self.session = GatedSession(self.gate, self.said.append, self.statuses.append)
        self.pumps = Pump(pipes[0][0], pipes[1][1], 0), Pump(pipes[2][0], pipes[3][1], 0)
        if gated:
            self.switch()
        self.client, self.server = (pipes[0][1], pipes[3][0]), (pipes[2][1], pipes[1][0])
        self._open = {*self.client, *self.server}
        recording = Recording(self.said.append, sink=begin(path))
        self.threads = []
        self.channels = Channel(recording, 0, "client", "stdin"), back(recording, 0, "server", "stdout")
        for pump, channel in zip(self.pumps, self.channels, strict=True):
            pump.begin(channel, None)
            self.threads.append(threading.Thread(target=pump.run, daemon=True))
            self.threads[-1].start()

    def switch(self):
        """Put the gate into force."""
        self.there, self.back = gate_lines(*self.pumps, self.session)

    def close(self, *fds):
        for fd in fds:
            self._open.remove(fd)
            os.close(fd)

    def join(self):
        for thread in self.threads:
            thread.join(SECONDS)
            assert not thread.is_alive()

    def records(self, kind=None):
        return [it for it in Capture(str(self.path)).records() if kind is None or isinstance(it, kind)]

    def held(self):
        """Return the raw frames that were held, by number."""
        return {frame.held: frame.raw for frame in self.records(Frame) if frame.held is not None}

    def finish(self):
        """Close what is still open; return the rest of the output for the server and for the client."""
        self.close(*self._open & {self.client[0], self.server[0]})
        left = tuple(rest(fd) if fd in self._open else b"" for fd in (self.server[1], self.client[1]))
        self.join()
        self.close(*self._open.copy())
        return left


def aside(call, *arguments):
    """Call a function in a thread, and return that."""
    thread = threading.Thread(target=call, args=arguments, daemon=True)
    thread.start()
    return thread


def rest(fd):
    return b"".join(iter(lambda: limits.read(fd, 65536), b""))


def line(fd):
    """Read the next line byte by byte, so that the rest stays in the pipe."""
    found = b""
    while not found.endswith(b"\n"):
        byte = limits.read(fd, 1)
        if not byte:
            return found
        found += byte
    return found[:-1]


def exactly(fd, size):
    """Read the next `size` bytes."""
    found = bytearray()
    while len(found) < size and (piece := limits.read(fd, size - len(found))):
        found += piece
    return bytes(found)


def send(fd, *frames):
    os.write(fd, b"".join(frame + b"\n" for frame in frames))
