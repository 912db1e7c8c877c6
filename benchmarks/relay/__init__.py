"""What `mcpspy wrap` costs on stdio, against the bare child, a relay in C, and `tee`."""
