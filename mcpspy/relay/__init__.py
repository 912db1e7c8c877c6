"""The only modules that touch peers."""
