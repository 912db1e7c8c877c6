"""What the proxy itself has to change in a body."""
