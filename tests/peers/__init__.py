"""Real peers: clients and servers of the official SDKs, each in an environment of its own (see README.md)."""
