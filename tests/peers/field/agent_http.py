"""`mcpspy mcp` over Streamable HTTP, for the conformance suite, which does not speak stdio: `agent_http.py DIR`.

It prints the port that it listens on, as the servers of the SDKs do. Run it with the environment of mcpspy.
"""

import os
import sys

import anyio

from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.server import AgentServer

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # the folder of `web`
from web import serve


async def main(folder):
    server = AgentServer(AgentCaptures(folder)).server
    await serve("http", server, server.create_initialization_options())


anyio.run(main, sys.argv[1])
