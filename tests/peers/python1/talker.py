"""A client that calls `echo` with each line of stdin, and prints the results.

`talker.py http|sse|ws URL`, or `talker.py stdio COMMAND...`. It stays connected until stdin ends, and does not wait for
an answer before the next call. It prints each error. For the answer to a line that begins with `!` it waits one second
at most.
"""

import asyncio
import logging
import os
import sys
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

logging.disable()


def transport(kind, url, *command):
    if kind == "stdio":
        return stdio_client(StdioServerParameters(command=url, args=list(command), env=dict(os.environ)))
    if kind == "ws":
        from mcp.client.websocket import websocket_client

        return websocket_client(url.replace("http", "ws", 1))
    return sse_client(url) if kind == "sse" else streamable_http_client(url)


async def call(session, line):
    limit = timedelta(seconds=1) if line.startswith("!") else None
    try:
        answer = await session.call_tool("echo", {"text": line.removeprefix("!")}, limit)
        print(answer.content[0].text, flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)


async def main(*where):
    async with (
        transport(*where) as (read, write, *_),
        ClientSession(read, write) as session,
        asyncio.TaskGroup() as calls,
    ):
        await session.initialize()
        lines = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        while line := await lines.readline():
            calls.create_task(call(session, line.decode().strip()))
        os._exit(0)


def leaf(error):
    """Return the first error in nested exception groups."""
    return leaf(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error


try:
    asyncio.run(main(*sys.argv[1:]))
except ExceptionGroup as group:  # the transport ended the session
    print(type(leaf(group)).__name__, str(leaf(group)).partition("\n")[0], flush=True)
