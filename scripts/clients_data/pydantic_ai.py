"""Run a pydantic-ai agent once, with the servers in mcp.json."""

import sys
from pathlib import Path

sys.path.remove(str(Path(__file__).parent))  # otherwise this file would be imported instead of the library
from pydantic_ai import Agent
from pydantic_ai.mcp import load_mcp_toolsets
from pydantic_ai.models.openai import OpenAIChatModel

agent = Agent(OpenAIChatModel("scripted"), toolsets=load_mcp_toolsets("mcp.json"))
print(agent.run_sync("Use the tools of the server plain.").output)
