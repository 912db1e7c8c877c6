"""A client of the Python SDK, 1.x or 2.x: `answers.py CALLS COMMAND…` makes CALLS, a JSON array of [tool, arguments].

It prints a JSON object: the tools, and for each call whether it failed, its text and its structured content. The SDK
has validated the structured content against the tool's outputSchema.
"""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def dump(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def main(calls, command):
    taken = []
    async with (
        stdio_client(StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))) as streams,
        ClientSession(*streams) as session,
    ):
        await session.initialize()
        tools = dump(await session.list_tools())["tools"]
        for name, arguments in calls:
            result = dump(await session.call_tool(name, arguments))
            text = "".join(part["text"] for part in result["content"])
            taken.append([bool(result.get("isError")), text, result.get("structuredContent")])
        resources = dump(await session.list_resources())["resources"]
        prompts = dump(await session.list_prompts())["prompts"]
    print(json.dumps({"tools": tools, "taken": taken, "resources": len(resources), "prompts": len(prompts)}))


asyncio.run(main(json.loads(sys.argv[1]), sys.argv[2:]))
