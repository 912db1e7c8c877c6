"""A server and a client to look at: what `mcpspy demo` runs. Standard library only, and nothing of the package."""
