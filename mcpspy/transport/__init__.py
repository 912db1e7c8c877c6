"""A client of our own: recorded transports to a server, and what is asked over them."""
