"""The relay of `wrap --reload`: it replaces the server while the client stays connected."""
