"""Run a google-adk agent once, with the server in mcp.json."""

import asyncio
import json
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams


async def main(entry: dict) -> None:
    remote = "url" in entry
    where = StreamableHTTPConnectionParams(**entry) if remote else StdioConnectionParams(server_params=entry)
    agent = LlmAgent(name="a", model="gemini-scripted", tools=[McpToolset(connection_params=where)])
    async with InMemoryRunner(agent=agent) as runner:
        await runner.run_debug("Use the tools of the server plain.")


asyncio.run(main(json.loads(Path("mcp.json").read_text())["mcpServers"]["plain"]))
