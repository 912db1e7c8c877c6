"""Run a langchain agent once, with the tools that its adapters make of the server in mcp.json."""

import asyncio
import json
import sys
from pathlib import Path

sys.path.remove(str(Path(__file__).parent))  # otherwise this file would be imported instead of the library
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI


async def main(entry: dict) -> None:
    entry["transport"] = "streamable_http" if "url" in entry else "stdio"
    tools = await MultiServerMCPClient({"plain": entry}).get_tools()
    agent = create_agent(ChatOpenAI(model="scripted"), tools)
    asked = {"messages": [("user", "Use the tools of the server plain.")]}
    print((await agent.ainvoke(asked))["messages"][-1].content)


asyncio.run(main(json.loads(Path("mcp.json").read_text())["mcpServers"]["plain"]))
