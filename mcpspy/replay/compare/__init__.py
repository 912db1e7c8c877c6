"""Comparison of two sessions."""
