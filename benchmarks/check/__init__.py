"""What `mcpspy check` takes for a capture of small frames."""
