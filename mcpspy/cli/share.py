"""`mcpspy share`: a capture as one HTML page that opens anywhere, without its secrets."""
