"""The installed version of textual-serve has the private names that mcpspy uses."""

import asyncio
import sys

from aiohttp import web
from textual_serve.server import Server

from mcpspy.tui.textual_serve_internals import Service, application_of
from tests import limits


async def ignore(*_): ...


def test_a_service_runs_its_words_without_a_shell():
    async def run():
        service = Service(
            [sys.executable, "-c", "import os; print(os.environ['COLUMNS'], '$HOME')"],
            write_bytes=ignore,
            write_str=ignore,
            close=ignore,
            download_manager=None,
        )
        assert service.process is None
        process = await service._open_app_process(80, 24)
        assert service.process is process
        out, _ = await asyncio.wait_for(process.communicate(), limits.LIMIT)
        return out

    assert asyncio.run(run()).split() == [b"80", b"$HOME"]


def test_a_server_has_an_application():
    application = asyncio.run(application_of(Server("true")))
    assert isinstance(application, web.Application)
