"""All private names of aiohttp that the tests use."""


def let_an_hour_pass(connection):
    """Make a connection of the server behave as after a long idle time."""
    connection._next_keepalive_close_time = 0
    connection._process_keepalive()


def is_timed(protocol):
    """Return whether a connection to a server has a time limit for the next read."""
    return protocol._read_timeout_handle is not None


def limit(connection):
    """Return the maximum number of connections; 0 is no limit."""
    return connection._connector.limit
