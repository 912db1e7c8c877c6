"""How bytes become a capture."""
