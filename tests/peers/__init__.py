"""Real peers: clients and servers of the official SDKs, each in its own environment (see README.md)."""
