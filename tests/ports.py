"""Free ports for programs that need a port number before they listen."""

import itertools
import os
import socket

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_FIRST = 20_000
"""Below the ports that the kernel assigns for port 0, so that no other program takes one before it is used."""
_EACH = 500
_numbers = itertools.cycle(range(_FIRST + _EACH * (_WORKER % 20), _FIRST + _EACH * (_WORKER % 20 + 1)))


def free(host="127.0.0.1"):
    """Return a port where nothing listens. No other worker gets the same one."""
    for port in itertools.islice(_numbers, _EACH):
        with socket.socket() as trial:
            try:
                trial.bind((host, port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
