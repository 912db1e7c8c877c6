"""Using a capture: as a mock server, as a client, and in comparison with another capture."""
