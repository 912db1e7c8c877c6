"""Who has taken a port."""

import os
import socket
import sys

import pytest

from mcpspy.ports import holder


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such tables")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_process_that_listens_is_named(family):
    with socket.socket(family) as listener:
        listener.bind(("", 0))
        port = listener.getsockname()[1]
        assert holder(port) is None
        listener.listen()
        with open("/proc/self/cmdline", "rb") as file:
            words = [word.decode() for word in file.read().split(b"\0") if word]
        assert holder(port) == (os.getpid(), words)
    assert holder(port) is None
