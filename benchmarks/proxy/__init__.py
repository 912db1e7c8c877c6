"""The cost of `mcpspy proxy` over HTTP, compared with mitmdump, nginx and no proxy."""
