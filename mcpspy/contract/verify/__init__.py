"""A proof that client and server cannot notice a wrapper between them: the same session with and without it."""
