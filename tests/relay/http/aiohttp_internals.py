"""What tests know of aiohttp's objects by private names; all of these names stand here."""


def let_an_hour_pass(connection):
    """Have a connection of the server do what it does when nobody has used it for long."""
    connection._next_keepalive_close_time = 0
    connection._process_keepalive()


def is_timed(protocol):
    """Whether a connection to a server has a limit for the next read."""
    return protocol._read_timeout_handle is not None


def limit(connection):
    """How many connections there may be besides; 0 is any number."""
    return connection._connector.limit
