"""Finding the recorded turn that answers a request."""
