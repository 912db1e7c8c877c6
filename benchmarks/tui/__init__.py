"""What the TUI makes people wait for: a large capture, keys meanwhile, rows of a live session."""
