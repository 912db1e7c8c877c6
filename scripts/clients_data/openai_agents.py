"""Run an openai-agents agent once, with the server in mcp.json."""

import asyncio
import json
from pathlib import Path

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp


async def main(entry: dict) -> None:
    set_tracing_disabled(True)
    async with (MCPServerStreamableHttp if "url" in entry else MCPServerStdio)(params=entry) as server:
        agent = Agent("a", model="scripted", mcp_servers=[server])
        print((await Runner.run(agent, "Use the tools of the server plain.")).final_output)


asyncio.run(main(json.loads(Path("mcp.json").read_text())["mcpServers"]["plain"]))
