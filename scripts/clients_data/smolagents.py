"""Run a smolagents agent once, with the server in mcp.json."""

import json
import os
import sys
from pathlib import Path

sys.path.remove(str(Path(__file__).parent))  # otherwise this file would be imported instead of the library
from mcp import StdioServerParameters
from smolagents import MCPClient, OpenAIServerModel, ToolCallingAgent

entry = json.loads(Path("mcp.json").read_text())["mcpServers"]["plain"]
where = (
    {"url": entry["url"], "transport": "streamable-http"}
    if "url" in entry
    else StdioServerParameters(command=entry["command"], args=entry["args"])
)
model = OpenAIServerModel("scripted", api_base=os.environ["OPENAI_BASE_URL"], api_key="none")
with MCPClient(where, structured_output=False) as tools:
    # The agent expects a tool call for its last answer; after the last step it accepts text.
    print(ToolCallingAgent(tools, model, max_steps=1).run("Use the tools of the server plain."))
