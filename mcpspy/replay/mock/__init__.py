"""Serve a capture as a mock server."""
