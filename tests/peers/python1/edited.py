"""A server of the Python SDK 1.x. `edits.py` edits its VERSION while it runs."""

import asyncio

from mcp import types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server

VERSION = 1
server = Server("edited", str(VERSION))


@server.list_tools()
async def list_tools():
    return [types.Tool(name=name, inputSchema={"type": "object"}) for name in ("version", "hang")]


@server.call_tool()
async def call_tool(name, _):
    if name == "hang":
        await server.request_context.session.send_log_message("info", "hanging")
        await asyncio.Event().wait()
    return [types.TextContent(type="text", text=f"version {VERSION}")]


@server.set_logging_level()
async def set_logging_level(_):
    pass


async def main():
    async with stdio_server() as streams:
        await server.run(*streams, server.create_initialization_options(NotificationOptions(tools_changed=True)))


asyncio.run(main())
