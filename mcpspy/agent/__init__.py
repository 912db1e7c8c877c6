"""An MCP server that gives agents access to captures: `mcpspy mcp`.

Each tool is a pure function from open captures to an answer (`catalogue`). Only `server` uses the MCP SDK.
"""
