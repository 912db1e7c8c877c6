"""The waiting times in the TUI: opening a large capture, keys meanwhile, filters, rows of a live session."""
