"""Comparison of mcpspy with mcpsnoop, and for common features with fastmcp and mitmdump."""
