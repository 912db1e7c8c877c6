"""Whether a client has disconnected or only half-closed (A-11), as the kernel reports it for real sockets."""

import socket
import sys

import pytest

from mcpspy.process.ports import is_still_held

needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")


def connected(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen()
        client = socket.socket(family)
        client.connect(listener.getsockname())
        return client, listener.accept()[0]


def held(ours):
    return is_still_held(ours.getpeername(), ours.getsockname())


@needs_linux
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_client_that_half_closes_still_holds_its_end(host):
    """A-11."""
    client, ours = connected(host)
    with ours:
        assert held(ours)
        client.shutdown(socket.SHUT_WR)
        assert ours.recv(1) == b""
        assert held(ours)
        client.close()
        assert not held(ours)


@needs_linux
def test_a_client_that_closes_does_not():
    """H-05."""
    client, ours = connected("127.0.0.1")
    with ours:
        addresses = ours.getpeername(), ours.getsockname()
        client.close()
        assert ours.recv(1) == b""
        assert not is_still_held(*addresses)
    assert not is_still_held(*addresses)


@pytest.mark.parametrize(
    ("client", "own"),
    [(("192.0.2.1", 4000), ("192.0.2.2", 80)), ("", ("127.0.0.1", 80)), (None, None), (("x", 1), ("y", 2))],
)
def test_of_a_client_elsewhere_nobody_can_tell(client, own):
    assert not is_still_held(client, own)


def test_nobody_can_tell_on_other_systems(monkeypatch):
    monkeypatch.delattr(socket, "AF_NETLINK", raising=False)
    client, ours = connected("127.0.0.1")
    with client, ours:
        assert not held(ours)
