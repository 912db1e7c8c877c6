"""What a replay found: one module for each format."""
