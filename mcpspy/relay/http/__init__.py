"""The relay of `proxy`."""
