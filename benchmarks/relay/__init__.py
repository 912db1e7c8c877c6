"""The cost of `mcpspy wrap` on stdio, compared with the bare child, a relay in C, and `tee`."""
