"""A stdio server that is the HTTP server at a URL: `conformance_bridge.py URL`. Messages pass as they are.

With it a server of the conformance suite, which speaks HTTP only, can stand behind `mcpspy wrap`. Requests of
2026-07-28 need headers made from their bodies, so it is for the handshake era.
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
