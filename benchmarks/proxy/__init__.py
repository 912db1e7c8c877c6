"""What `mcpspy proxy` costs over HTTP, against mitmdump, nginx and no proxy at all."""
