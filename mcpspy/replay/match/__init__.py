"""Which recorded turn answers a request."""
