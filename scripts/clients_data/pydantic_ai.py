"""One run of an agent of pydantic-ai with the servers of mcp.json."""

import sys
from pathlib import Path

sys.path.remove(str(Path(__file__).parent))  # where this file would be found as the library
from pydantic_ai import Agent
from pydantic_ai.mcp import load_mcp_toolsets
from pydantic_ai.models.openai import OpenAIChatModel

agent = Agent(OpenAIChatModel("scripted"), toolsets=load_mcp_toolsets("mcp.json"))
print(agent.run_sync("Use the tools of the server plain.").output)
