"""Replay a capture as a client."""
