"""A server over HTTP whose client is ours, with `mcpspy proxy` between the two to record.

For a client this is a transport like any other: it sends lines and receives lines (`mcpspy.transport.http_client`). The
proxy records the traffic itself, so the new capture is like all others.
"""

import os
import sys
import threading
from collections.abc import Sequence
from functools import partial

from mcpspy.errors import CaptureError
from mcpspy.network.access import Access
from mcpspy.process.ending import KILL, end, signal_group
from mcpspy.transport.http_client import HttpClient, parsed_header, reach
from mcpspy.transport.link import PATIENCE, Ended
from mcpspy.transport.streams import chunks, lines, room

if sys.platform == "win32":
    from mcpspy.process.child_windows import environment, spawn
else:
    from mcpspy.process.child import environment, spawn

_PLAIN = Access()


class WebLink:
    """The URL of a server, the proxy in front of it, and the capture that the proxy writes."""

    def __init__(
        self, url: str, headers: Sequence[str], name: str, path: str, recorded: int, access: Access = _PLAIN
    ) -> None:
        """Start the proxy. `headers` are `Name: value`. Raises UsageError or CaptureError.

        Call it from the main thread, while that is the only thread. `recorded` is the number of bytes that the server
        of the capture sent.
        """
        named = dict(parsed_header(header) for header in headers)
        reach(url, access)
        self.path = path
        self.interrupted = False
        """Whether a signal interrupted the replay."""
        argv = [sys.executable, "-P", "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", "--name", name, "-o", path]
        self._proxy = spawn([*argv, *access.words(), url], environment() | access.variables(), apart=True)
        self._proxy.confirm()
        there = next(lines(chunks(self._proxy.stdout)), b"").decode()
        if not there:
            said = [line.decode(errors="replace") for line in lines(chunks(self._proxy.stderr))]
            self._proxy.wait()
            raise CaptureError((said or ["the proxy did not start"])[-1].removeprefix("mcpspy: "))
        if not os.path.exists(path):  # a proxy continues without a capture
            signal_group(self._proxy.pid, KILL)
            self._proxy.wait()
            raise CaptureError(f"cannot write a capture to {path}")
        self._gone = threading.Event()
        self._client = HttpClient(there, named, room(recorded))
        self.heard = self._client.heard
        """The messages of the server, what failed, and finally that it has ended."""
        self.send = self._client.send

    def close(self) -> None:
        """Stop sending, then end the proxy, and with it every stream."""
        self._client.finish(PATIENCE)
        end(self._gone.wait, partial(signal_group, self._proxy.pid), 0, PATIENCE)

    def wait(self) -> None:
        """Wait in the main thread until the proxy has exited."""
        self._proxy.wait(interrupted=self._interrupt)
        self._gone.set()
        self._client.join(PATIENCE)  # its streams have ended with the proxy
        self.heard.put(Ended("was left"))

    def _interrupt(self, _: int) -> None:
        self.interrupted = True
        self.heard.put(Ended("was left"))
