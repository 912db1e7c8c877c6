"""Ports for what has to be told one before it listens."""

import itertools
import os
import socket

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_FIRST = 20_000
"""Below those that the kernel hands out for port 0, so that nobody takes one between here and its use."""
_EACH = 500
_numbers = itertools.cycle(range(_FIRST + _EACH * (_WORKER % 20), _FIRST + _EACH * (_WORKER % 20 + 1)))


def free(host="127.0.0.1"):
    """A port where nothing listens; no other worker gets the same."""
    for port in itertools.islice(_numbers, _EACH):
        with socket.socket() as trial:
            try:
                trial.bind((host, port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")
