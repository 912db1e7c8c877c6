"""MCP clients: where their configurations lie, and how a server in one gets mcpspy in front of it."""
