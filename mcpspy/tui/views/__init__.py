"""The views of a session, one module per view."""
