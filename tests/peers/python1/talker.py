"""A client that calls `echo` with each line of stdin, and prints what comes back: `talker.py http|sse|ws URL`.

It stays connected until stdin ends. An error is printed as it is.
"""

import asyncio
import os
import sys

from mcp import ClientSession, McpError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client


def transport(kind, url):
    if kind == "ws":
        from mcp.client.websocket import websocket_client

        return websocket_client(url.replace("http", "ws", 1))
    return sse_client(url) if kind == "sse" else streamable_http_client(url)


async def main(kind, url):
    async with transport(kind, url) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        while line := await asyncio.to_thread(sys.stdin.readline):
            try:
                answer = await session.call_tool("echo", {"text": line.strip()})
                print(answer.content[0].text, flush=True)
            except McpError as error:
                print(error, flush=True)
    os._exit(0)


asyncio.run(main(*sys.argv[1:]))
