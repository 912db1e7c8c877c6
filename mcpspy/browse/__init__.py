"""Open captures that may still grow, prepared for viewing: the part without a screen, shared by TUI and agent tools."""
