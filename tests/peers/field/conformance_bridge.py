"""A stdio server that forwards to the HTTP server at a URL: `conformance_bridge.py URL`. Messages are not changed.

With it, a server of the conformance suite, which speaks HTTP only, can run behind `mcpspy wrap`. It supports only the
handshake era: requests of 2026-07-28 need headers that are made from their bodies.
"""

import sys

import anyio
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server


async def main(url):
    async def passed(received, send, scope):
        async for message in received:
            if not isinstance(message, Exception):
                await send.send(message)
        scope.cancel()

    async with (
        stdio_server() as (from_client, to_client),
        streamable_http_client(url) as (from_server, to_server),
        anyio.create_task_group() as both,
    ):
        both.start_soon(passed, from_client, to_server, both.cancel_scope)
        both.start_soon(passed, from_server, to_client, both.cancel_scope)


anyio.run(main, sys.argv[1])
