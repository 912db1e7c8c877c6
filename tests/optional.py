"""The programs and peers that tests use if they are there, how a test asks for them, and how a person adds them.

A test has the mark `needs`, a fixture calls `require`. Both skip what needs something that is missing. A name is a
program on PATH, or an environment of tests/peers/prepare.py such as `.peers/node`.
"""

import functools
import os
import pty
import shutil

import pytest

from tests.peers import prepare

PACKAGES = {
    "bash": "bash",
    "cc": "gcc libc6-dev",
    "chromedriver": "chromium-driver",
    "chromium": "chromium",
    "curl": "curl",
    "fish": "fish",
    "git": "git",
    "mount": "mount",
    "nginx": "nginx-light",
    "node": "nodejs",
    "npm": "npm",
    "openssl": "openssl",
    "squid": "squid",
    "systemd-analyze": "systemd",
    "tinyproxy": "tinyproxy-bin",
    "tmux": "tmux",
    "zsh": "zsh",
}
"""The optional programs, and the Debian packages that have them."""
PEERS = {f".peers/{name}": name for name in prepare.PACKAGES}
_PLAIN = ("mem0", "plain")  # peers that need no environment
_NODE_PEERS = ".peers/node"
_MISSING = "missing: "


@functools.cache
def present(name):
    """Return whether a program or an environment is there."""
    if name in PEERS:
        return prepare.ready(PEERS[name]) and (name != _NODE_PEERS or present("node"))
    assert name in PACKAGES, f"{name} is not in the table of optional programs"
    return prepare.without_node() is None if name == "node" else shutil.which(name) is not None


def lacks(names):
    """Return why tests that need these names are skipped, or an empty text if all are there."""
    absent = sorted(name for name in set(names) if not present(name))
    return _MISSING + ", ".join(absent) if absent else ""


def require(*names):
    """Skip the test that runs if one of these is missing."""
    if reason := lacks(names):
        pytest.skip(reason)


def require_peers(*peers):
    """Skip the test that runs if the environment of a client or server is missing: an SDK, or `everything`."""
    require(*(f".peers/{'node' if peer == 'everything' else peer}" for peer in peers if peer not in _PLAIN))


def open_terminal():
    """Return the two ends of a new pseudo-terminal; skip the test if there is none, as in a chroot without /dev/pts."""
    return _terminal(os.openpty)


def fork_terminal():
    """Call `pty.fork`, and skip the test if there is no pseudo-terminal."""
    return _terminal(pty.fork)


def _terminal(call):
    try:
        return call()
    except OSError as error:
        pytest.skip(f"no pseudo-terminals: {error}")


def left_out(reasons):
    """Return the last lines of a run: how many tests were skipped, what they need, and how to add it.

    `reasons` are those of all skipped tests. Without a missing program or peer there are no lines.
    """
    absent = [reason.removeprefix(_MISSING).split(", ") for reason in reasons if reason.startswith(_MISSING)]
    names = {name for names in absent for name in names}
    if not names:
        return []
    programs = names - PEERS.keys() | ({"node", "npm"} if _NODE_PEERS in names else set())
    packages = " ".join(sorted(PACKAGES[name] for name in programs if shutil.which(name) is None))
    install = f" on Debian: apt-get install --no-install-recommends {packages} &&" if packages else ":"
    count = f"{len(absent)} test{'s' if len(absent) > 1 else ''}"
    lines = [
        f"left out: {count}, because these are missing: {', '.join(sorted(names))}",
        f"to add them{install} scripts/test",
    ]
    if "node" in programs:
        lines.append(f"Node must be {prepare.NODE} or newer; if Debian's is older: https://nodejs.org")
    return lines
