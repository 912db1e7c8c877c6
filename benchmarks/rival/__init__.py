"""mcpspy side by side with mcpsnoop, and where they do the same with fastmcp and mitmdump."""
