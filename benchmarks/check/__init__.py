"""The time and memory of `mcpspy check` for a capture of small frames."""
