"""The connections of the server of `tui --web`, limited in number and time (A-23).

Somebody without the secret can open connections and send nothing, or a part of a request. Each would keep a file
descriptor for ever; when none is left, nobody gets the page. So each connection that is not an accepted WebSocket has a
time limit, from its opening and again from each request. Their number is limited too: the oldest is closed first.
"""

import asyncio
import errno
import sys
from typing import Any

from aiohttp import web

MOST = 100
"""The most connections that are not WebSockets. Even a process that may open only 256 files has room for them."""
PATIENCE = 15.0
"""The seconds until a connection must send its next request, and until a response must be sent."""
BACKLOG = 16
"""The most connections that are accepted at once. A request that arrives with its connection is read before MOST newer
connections are accepted."""
QUEUE = 128
"""The most connections that wait to be accepted."""
_EXHAUSTED = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class PagelessConnections:
    """Closes connections that exceed the limits."""

    def __init__(self) -> None:
        self._limits: dict[web.RequestHandler, asyncio.TimerHandle] = {}  # oldest first
        self._reported = False

    def opened(self, connection: web.RequestHandler) -> web.RequestHandler:
        """Begin the limits of a new connection, and return it."""
        self.renew(connection)
        if len(self._limits) > MOST:
            self._close_oldest()
        return connection

    def renew(self, connection: web.RequestHandler) -> None:
        """Begin the time limit of a connection, which is then the newest."""
        self.release(connection)
        self._limits[connection] = asyncio.get_running_loop().call_later(PATIENCE, self._close, connection)

    def release(self, connection: web.RequestHandler) -> None:
        """Remove the limits of a connection that is a WebSocket, or is closed."""
        timer = self._limits.pop(connection, None)
        if timer:
            timer.cancel()

    def report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Handle an error of the event loop: if no connection can be accepted, make room, and say so once."""
        error = context.get("exception")
        if not isinstance(error, OSError) or error.errno not in _EXHAUSTED or "socket" not in context:
            loop.default_exception_handler(context)
            return
        self._close_oldest()
        if not self._reported:
            self._reported = True
            what = f"cannot accept a connection ({error.strerror}): the oldest without a page are closed"
            print(f"mcpspy: {what}", file=sys.stderr, flush=True)

    def _close_oldest(self) -> None:
        if self._limits:
            self._close(next(iter(self._limits)))

    def _close(self, connection: web.RequestHandler) -> None:
        self.release(connection)
        transport = connection.transport
        connection.force_close()
        if isinstance(transport, asyncio.Transport):
            transport.abort()  # closing would wait for a client that does not read its response
