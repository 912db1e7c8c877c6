"""PagelessConnections to `tui --web` that send nothing, or not enough: they end, and others get the page (A-23)."""

import asyncio
import errno
import socket
import sys
from contextlib import ExitStack, closing
from types import SimpleNamespace

import pytest

pytest.importorskip("textual_serve")

from aiohttp import web

from mcpspy.tui.web import connections
from mcpspy.tui.web.connections import PagelessConnections
from tests.limits import LIMIT
from tests.transcript import capture
from tests.tui.web.browser import fetch
from tests.tui.web.websocket import Page, authority_of

PART = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
WHOLE = PART + b"\r\n"
MALFORMED = PART + b"no colon\r\n\r\n"
BEFORE = "the oldest without a page are closed"

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="limits the files of another process")


@pytest.fixture
def server(tmp_path, served):
    """The process of a server, and its link."""
    return served(capture(tmp_path / "a.jsonl", '> {"jsonrpc":"2.0","id":1,"method":"ping"}'))


def flood(stack, link, number, sent):
    """Open connections until the stack is closed, and send the same on each."""
    host, port = authority_of(link).split(":")
    for _ in range(number):
        client = stack.enter_context(socket.create_connection((host, port), timeout=LIMIT))
        try:
            client.sendall(sent)
        except ConnectionError:  # it was already closed
            pass


def stderr_of(process):
    process.terminate()
    return process.communicate(timeout=LIMIT)[1].splitlines()


@on_linux
def test_connections_without_a_page_do_not_exhaust_the_files(server):
    """A-23: a new client and an open page are served, and stderr has only the notice of the start."""
    import resource

    process, link = server
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, 256))
    with closing(Page(link)) as page:
        page.until(b"ping")
        for sent in (b"", PART, WHOLE, MALFORMED):
            with ExitStack() as stack:
                flood(stack, link, 300, sent)
                for path in ("", "static/js/textual.js"):
                    assert fetch(f"http://{authority_of(link)}/{path}")[0] == 200, sent
                page.seen = b""
                page.send("ping", 1)
                page.until(b"pong")
    assert len(stderr_of(process)) == 1


@on_linux
def test_a_server_that_cannot_accept_makes_room_and_says_so_once(server):
    """A-23: there are fewer files than connections may be open."""
    import resource

    process, link = server
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (40, 40))
    with ExitStack() as stack:
        flood(stack, link, 60, b"")
        assert fetch(f"http://{authority_of(link)}/")[0] == 200
    _, notice = stderr_of(process)
    assert notice == f"mcpspy: cannot accept a connection (Too many open files): {BEFORE}"


def test_a_connection_has_to_send_each_request_in_time(monkeypatch):
    """A-23: nothing, a part of a head, and nothing after a response."""
    monkeypatch.setattr(connections, "PATIENCE", 0.2)

    async def scenario():
        limits = PagelessConnections()

        async def answer(request):
            limits.renew(request.protocol)
            return web.Response()

        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(lambda: limits.opened(runner.server()), "127.0.0.1", 0)
        try:
            for sent in (b"", PART, WHOLE, WHOLE + PART):
                reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
                writer.write(sent)
                try:
                    received = await asyncio.wait_for(reader.read(), LIMIT)
                except ConnectionResetError:
                    received = b""
                assert received.startswith(b"HTTP/1.1 200 OK") == (WHOLE in sent)
                writer.close()
        finally:
            listening.close()
            await runner.cleanup()

    asyncio.run(scenario())


def test_other_errors_of_the_event_loop_are_reported_as_usual():
    reported = []
    loop = SimpleNamespace(default_exception_handler=reported.append)
    limits = PagelessConnections()
    for context in (
        {"message": "x"},
        {"exception": OSError(errno.EMFILE, "x")},
        {"exception": ValueError(), "socket": 1},
    ):
        limits.report(loop, context)
        assert reported.pop() == context
