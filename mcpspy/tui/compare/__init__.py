"""Comparisons of two messages or two sessions, side by side."""
