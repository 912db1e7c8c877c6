"""Tests of `mcpspy.reading`."""
