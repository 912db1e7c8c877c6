"""Recorded messages and sessions in the formats of other programs."""
