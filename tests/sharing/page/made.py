"""A page made of a capture, for tests of what stands in it."""

from mcpspy.capture.location import list_captures  # noqa: F401
