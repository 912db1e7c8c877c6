"""`mcpspy mock --gate`: the relay of `wrap` or `proxy` in front of a mock server, without recording.

A gate thus does exactly the same to a mock as to a real server, and the mock itself does not know about gates.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from mcpspy.cli.output import say
from mcpspy.process.ports import bound, listening_place, to_dial
from mcpspy.recording.recording import Recording
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.listener import Relay
from mcpspy.relay.http.route import HttpRoute
from mcpspy.relay.http.upstream import Upstream
from mcpspy.relay.stdio.relay import run
from mcpspy.replay.http_mock import Front

if sys.platform == "win32":
    from mcpspy.process.child_windows import environment, spawn
else:
    from mcpspy.process.child import environment, spawn

if TYPE_CHECKING:
    from mcpspy.gate.compiled import Answerers


def relay_stdio(command: list[str], gates: list[dict[str, Any]], answerers: "Answerers") -> NoReturn:
    """Start the mock with a command, relay between it and our client, and exit with the status of the mock."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C that ends the mock also ends us
    environ = environment()
    status = run(
        spawn(command, environ),
        command,
        environ,
        name=None,
        output=None,
        folder=None,
        check=False,
        gates=gates,
        answerers=answerers,
        control=False,
        record=False,
    )
    os._exit(status)  # a pump may still block in a read


def relay_in_front(where: str, gates: list[dict[str, Any]], answerers: "Answerers") -> Front:
    """Listen at `HOST:PORT` in place of a mock, and relay to it. Raises UsageError if it cannot listen."""
    host, port = listening_place(where, 6279)
    listener = bound(host, port)

    @asynccontextmanager
    async def front(url: str) -> AsyncIterator[str]:
        address = Address(url)
        route = HttpRoute(address, Upstream(address), Recording(say))
        relay = Relay([route], Guard(host, ()), say, gates=gates, answerers=answerers, control=False)
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: None)  # noqa: ARG005 (connections that break)
        server = await loop.create_server(relay.server(), sock=listener, backlog=1024)
        try:
            yield f"http://{to_dial(host)}:{listener.getsockname()[1]}{address.target}"
        finally:
            server.close()
            await relay.end()

    return front
