"""A proof that what stands between a client and a server cannot be seen: one session, bare and through it."""
