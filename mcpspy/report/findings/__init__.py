"""What a check found: one module for each format."""
