"""Notices for the user of `mitm` about peers and bugs: each only once, and a limited number of each kind.

Peers choose the content of such sentences (a name, a status, a malformed line). Without a limit they could fill stderr
and memory. What a library quotes from a peer may contain a secret, so quotations are withheld.
"""

import errno
import logging
import re
from collections import defaultdict
from collections.abc import Callable

from mcpspy.process.ports import holder
from mcpspy.secrets.redactor import unquoted

MOST_NOTICES = 20
"""The most sentences of one kind."""
_TLS_REFUSAL = re.compile(r"alert ([a-z ]*certificate[a-z ]*|unknown ca)")  # RFC 8446, 6.2; in the wording of OpenSSL
_REASON = re.compile(r"'([^']*)'\)\]")  # the last word of an error of OpenSSL


class Notices:
    """Passes each sentence to `say` once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._known: defaultdict[str, set[str]] = defaultdict(set)

    def once(self, what: str, which: str, details: str = "") -> None:
        """Give the notice that `what` happened with `which`, followed by `details`, unless it was given before."""
        known = self._known[what]
        if which in known or len(known) > MOST_NOTICES:
            return
        known.add(which)
        enough = len(known) > MOST_NOTICES
        self._say(f"{what} another host; no more of these are reported" if enough else f"{what} {which}{details}")


class Bugs(logging.Handler):
    """Reports each kind of bug in recording or in mitmproxy once; the faults of peers are in the capture."""

    def __init__(self, said: Notices) -> None:
        super().__init__(logging.ERROR)
        self._said = said
        self.silent = True
        """True before `mitm` listens and while it ends, because errors are not bugs then."""

    def emit(self, record: logging.LogRecord) -> None:
        """Report one record of `logging`."""
        error = record.exc_info[1] if record.exc_info else None
        what = f"{type(error).__name__}: {error}" if error else record.getMessage().partition("\n")[0]
        if not self.silent:
            self._said.once("a bug in recording or in mitmproxy", f"({unquoted(what)})", "; other traffic goes on")


def no_tls(host: str, why: str, *, greeted: bool) -> tuple[str, str, str] | None:
    """Return the notice why TLS with a client that connected to `host` failed, for `Notices.once`; None if none is due.

    `why` is the error of OpenSSL or mitmproxy; `greeted` is whether the client's first TLS message was read.
    """
    advice = (
        ": it does not trust the authority, so start it with 'mcpspy run -- CLIENT' (or see 'mcpspy ca env'); or it"
        f" accepts only the server's own certificate, and cannot be intercepted: leave {host} out of --allow"
    )
    if refusal := _TLS_REFUSAL.search(why):
        return "a client refused our certificate for", host, f" ({refusal[1]}){advice}"
    if "disconnected" in why or "closed early" in why:
        left = greeted and "early" not in why  # else it disconnected before it got a certificate
        return ("a client disconnected after it received our certificate for", host, advice) if left else None
    reason = (_REASON.findall(why) or re.split("[:.] ", why))[0]
    return "no TLS with a client for", host, f" ({reason}): it is not TLS, or an old version"


def no_listening(host: str, port: int, mode: str, error: Exception) -> str:
    """Return the reason why `mitm` cannot listen on that host and port in that mode."""
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
