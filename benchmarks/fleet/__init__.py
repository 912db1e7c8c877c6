"""The time and memory of `mcpspy otel --follow` for the captures of many relays, and whether it loses spans."""
