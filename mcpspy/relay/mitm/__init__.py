"""The relay of `mitm`."""
