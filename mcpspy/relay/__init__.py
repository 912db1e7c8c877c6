"""The only modules that forward traffic between a client and a server."""
