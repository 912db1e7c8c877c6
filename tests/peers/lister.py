"""A client of the Python SDK, 1.x or 2.x: `lister.py COUNT COMMAND…` lists the tools COUNT times.

It prints a JSON array: the number of tools in each answer, or null if the SDK refused the answer.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(count, command):
    taken = []
    async with (
        stdio_client(StdioServerParameters(command=command[0], args=command[1:])) as streams,
        ClientSession(*streams) as session,
    ):
        await session.initialize()
        for _ in range(count):
            try:
                taken.append(len((await session.list_tools()).tools))
            except ValueError:  # raised by pydantic
                taken.append(None)
    print(json.dumps(taken))


asyncio.run(main(int(sys.argv[1]), sys.argv[2:]))
