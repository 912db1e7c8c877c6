"""The views of a session, a module for each."""
