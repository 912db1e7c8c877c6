"""What `mcpspy otel --follow` takes for the captures of many relays, and whether it loses anything."""
