"""Captures as an MCP server, for agents: `mcpspy mcp`.

Each tool is a pure function from open captures to an answer (`tools`); `server` alone knows the MCP SDK.
"""
