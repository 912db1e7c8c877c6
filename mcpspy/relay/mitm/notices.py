"""Messages to the user of `mitm` about peers and bugs: each once, and of each kind a limited number.

Peers choose what such sentences are about (a name, a status, a malformed line), so without a bound they could fill
stderr and memory; and what a library quotes of them may hold a secret, so quotations are withheld.
"""

import errno
import logging
import re
from collections import defaultdict
from collections.abc import Callable

from mcpspy.process.ports import holder
from mcpspy.secrets.redactor import unquoted

MOST = 20
"""Sentences of a kind."""
_REFUSAL = re.compile(r"alert ([a-z ]*certificate[a-z ]*|unknown ca)")  # RFC 8446, 6.2; in the words of OpenSSL
_REASON = re.compile(r"'([^']*)'\)\]")  # the last word of an error of OpenSSL


class Notices:
    """Says each sentence once, by `say`."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._known: defaultdict[str, set[str]] = defaultdict(set)

    def once(self, what: str, which: str, details: str = "") -> None:
        """Say `what` kind of thing happened with `which`, and `details`, unless that has been said."""
        known = self._known[what]
        if which in known or len(known) > MOST:
            return
        known.add(which)
        enough = len(known) > MOST
        self._say(f"{what} yet another; no more of these are mentioned" if enough else f"{what} {which}{details}")


class Bugs(logging.Handler):
    """Tells the user once of each kind of bug, in recording or in mitmproxy; what peers do wrong is in the capture."""

    def __init__(self, said: Notices) -> None:
        super().__init__(logging.ERROR)
        self._said = said
        self.silent = True
        """True before `mitm` listens and while it ends, when errors are not bugs."""

    def emit(self, record: logging.LogRecord) -> None:
        """As a handler of `logging` does."""
        error = record.exc_info[1] if record.exc_info else None
        what = f"{type(error).__name__}: {error}" if error else record.getMessage().partition("\n")[0]
        if not self.silent:
            self._said.once("a bug in recording or in mitmproxy", f"({unquoted(what)})", "; other traffic goes on")


def no_tls(host: str, why: str, *, greeted: bool) -> tuple[str, str, str] | None:
    """Why TLS with a client that dialled `host` failed, for `Notices.once`; None if that need not be said.

    `why` is the error of OpenSSL, or of mitmproxy; `greeted` tells whether the client's first words have been read.
    """
    advice = (
        ": it does not trust the authority, so start it with 'mcpspy run -- CLIENT' (or see 'mcpspy ca env'); or it"
        f" insists on the server's own certificate, and then it cannot be intercepted: leave {host} out of --allow"
    )
    if refusal := _REFUSAL.search(why):
        return "a client refused our certificate for", host, f" ({refusal[1]}){advice}"
    if "disconnected" in why or "closed early" in why:
        left = greeted and "early" not in why  # else it left before it had one
        return ("a client hung up when it had our certificate for", host, advice) if left else None
    reason = (_REASON.findall(why) or re.split("[:.] ", why))[0]
    return "no TLS with a client for", host, f" ({reason}): it is not TLS, or an old version"


def no_listening(host: str, port: int, mode: str, error: Exception) -> str:
    """Why `mitm` cannot listen on that host and port in that mode."""
    place = f"{host}:{port}"
    if isinstance(error, UnicodeError):
        return f"cannot listen on {place}: that is not a valid host name"
    if not isinstance(error, OSError):
        return f"--mode {mode} cannot be used here: {error}"
    if error.errno == errno.EADDRINUSE:
        who = holder(port)
        by = f" by {' '.join(who.words[:1])} (pid {who.pid})" if who else ""
        return f"{place} is in use{by}: end it, or choose another port with --listen"
    return f"cannot listen on {place}: {error.strerror or error}"
