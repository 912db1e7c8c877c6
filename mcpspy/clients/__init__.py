"""MCP clients: where their configurations are, and how mcpspy is put in front of a server in one."""
