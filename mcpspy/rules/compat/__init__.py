"""Rules about what clients and model APIs refuse although MCP allows it; silent unless clients are named."""
