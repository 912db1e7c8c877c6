"""Rules about what clients and model APIs refuse although MCP allows it. They run only if clients are named."""
