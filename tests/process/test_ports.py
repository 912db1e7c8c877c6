"""Ports: the values of `--listen`, ports in use, and which process uses them."""

import os
import socket
import sys

import pytest

from mcpspy.errors import UsageError
from mcpspy.process.ports import bound, holder, listening_place, to_dial


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


@pytest.mark.parametrize(
    ("text", "place"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("[::1]:0", ("::1", 0)), (":6278", ("127.0.0.1", 6278)), ("h:1", ("h", 1))],
)
def test_a_place_is_a_host_and_a_port(text, place):
    assert listening_place(text, 6278) == place


@pytest.mark.parametrize("text", ["6278", "h:", "h:x", "h:65536", "h:-1", ""])
def test_what_is_no_place_is_told_with_an_example(text):
    with pytest.raises(UsageError, match=r"--listen takes HOST:PORT, such as 127\.0\.0\.1:6278, not "):
        listening_place(text, 6278)


def test_a_port_is_taken_by_one():
    with bound("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(UsageError, match=f"127.0.0.1:{port} is in use.*: end it, or choose another port"):
            bound("127.0.0.1", port)
        with pytest.raises(UsageError, match=r"end it, or choose another port with --web$"):
            bound("127.0.0.1", port, "--web")


@pytest.mark.parametrize("host", ["192.0.2.1", "..", "a" * 70])
def test_a_host_that_is_not_this_machine_cannot_be_listened_on(host):
    with pytest.raises(UsageError, match=f"cannot listen on {host}:0: "):
        bound(host, 0)


@pytest.mark.parametrize(
    ("host", "dialled"),
    [("0.0.0.0", "127.0.0.1"), ("::", "127.0.0.1"), ("::1", "[::1]"), ("h", "h")],  # noqa: S104 (no socket)
)
def test_a_client_dials_what_can_be_reached(host, dialled):
    assert to_dial(host) == dialled
