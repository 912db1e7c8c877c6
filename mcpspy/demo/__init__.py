"""The server and the client of `mcpspy demo`. They use the standard library only, and nothing of the package."""
