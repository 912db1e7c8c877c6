"""A client that calls a tool COUNT times, one call after the other, always with the same progress token.

caller.py COUNT -- COMMAND…        a server over stdio
caller.py COUNT URL                a server over Streamable HTTP
"""

import asyncio
import sys

from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


def transport(where):
    if where[0] == "--":
        return stdio_client(StdioServerParameters(command=where[1], args=where[2:]))
    return streamable_http_client(where[0])


async def main(count, *where):
    async with transport(where) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        await session.list_tools()
        for _ in range(int(count)):
            answer = await session.call_tool("slow", {"steps": 2}, meta={"progressToken": "t"})
            assert not answer.isError


asyncio.run(main(*sys.argv[1:]))
