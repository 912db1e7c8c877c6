"""mcpspy is a proxy between an MCP client and an MCP server: it forwards every byte and records every frame.

This module is imported before anything else on the `wrap` path and imports nothing itself.
"""

__version__ = "0.1.0"
