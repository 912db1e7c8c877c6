"""The relay of `wrap`."""
