"""Turn bytes into a capture."""
