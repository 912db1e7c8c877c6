"""Every private name of textual-serve that mcpspy needs, each with the reason; no other module uses one.

Private names may change with any release, so `pyproject.toml` bounds textual-serve to the minor version that was
tested.
"""

import asyncio
from asyncio.subprocess import Process
from collections.abc import Sequence
from typing import Any

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.server import Server


class Service(AppService):
    """The process behind one page, started without a shell. textual-serve has no other way to name a command."""

    def __init__(self, words: Sequence[str], **options: Any) -> None:
        """Prepare the command `words`, without starting it."""
        super().__init__("", **options)
        self._words = words

    @property
    def process(self) -> Process | None:
        """The process; None before it is started."""
        return self._process

    async def _open_app_process(self, width: int = 80, height: int = 24) -> Process:
        """Start the process without a shell, because signals would reach only the shell."""
        pipe = asyncio.subprocess.PIPE
        environ = self._build_environment(width, height)
        process = await asyncio.create_subprocess_exec(*self._words, stdin=pipe, stdout=pipe, stderr=pipe, env=environ)
        self._process, self._stdin = process, process.stdin
        return process


async def application_of(server: Server) -> web.Application:
    """Return the web application of a server. textual-serve's own `serve` takes over the process and its signals."""
    return await server._make_app()
