"""The options that say how a server at a URL is reached, and the passphrase of a key."""

import argparse
import os
import sys
from getpass import getpass

from mcpspy.errors import UsageError
from mcpspy.network.access import PASSPHRASE, Access, is_encrypted
from mcpspy.text import printable


def access_of(options: argparse.Namespace) -> Access:
    """Return the access that the options give. Raises UsageError."""
    if options.key and not options.cert:
        raise UsageError("--key belongs to --cert, which names the certificate of the key")
    key = options.key or options.cert
    return Access(
        options.ca,
        options.cert,
        options.key,
        getattr(options, "unix", None),
        getattr(options, "insecure", False),
        _passphrase(key) if key and is_encrypted(key) else None,
    )


def access_to_url(options: argparse.Namespace) -> Access:
    """Return the same for a command that takes a URL or a server's command. Raises UsageError."""
    for name in ("header", "ca", "cert", "key", "unix"):
        if getattr(options, name) and not options.url:
            why = "has no HTTP headers" if name == "header" else "is not reached over HTTP"
            raise UsageError(f"--{name} belongs to --url: a command {why}")
    return access_of(options)


def _passphrase(key: str) -> str | None:
    """Return the passphrase of an encrypted key: the variable's, or what the user types."""
    given = os.environ.get(PASSPHRASE)
    if given is None and sys.stdin is not None and sys.stdin.isatty():
        return getpass(f"passphrase of {printable(key, 200)}: ")
    return given
