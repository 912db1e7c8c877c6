"""List everything that a server offers, over a transport that records the session as a capture.

The theory. The client introduces itself (`mcpspy.transport.client`), and requests every page of every listing whose
capability is declared. It calls no tool. A server that ends or refuses before it has introduced itself is started again
and gets only `initialize`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from mcpspy.errors import CaptureError
from mcpspy.json_values import member
from mcpspy.text import printable
from mcpspy.transport.client import PROBE, AskingClient, ErrorAnswer, Gone, Late, NoAnswer, listings
from mcpspy.transport.link import FLOODS, Link, run_session, stderr_of

if TYPE_CHECKING:
    from mcpspy.transport.http_link import WebLink

ROOM = 8 << 20
"""Bytes that a server is expected to send. It may send ten times as much."""
START = 60.0
"""Seconds for the answer to `initialize`: a launcher may have to download the server first."""
ANSWER = 30.0
"""Seconds for a page of a listing."""

Connect = Callable[[], "Link | WebLink"]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What came of a session."""

    path: str
    why: str | None = None
    """Why it is incomplete."""
    again: bool = False
    """Whether it is worth starting the server again, and beginning with `initialize`."""


def record_offer(connect: Connect, start: float = START, answer: float = ANSWER, probe: float = PROBE) -> None:
    """Let a server introduce itself and list what it offers. The link from `connect` records it.

    A server that is started twice is connected to twice, and the second session counts. Raises CaptureError if the
    server ends, does not introduce itself within `start` seconds, or takes more than `answer` seconds for a page, and
    whatever `connect` raises. Call it from the main thread, while no other thread runs.
    """

    def asked(*, discover: bool) -> _Asked:
        return run_session(connect, partial(_ask, start=start, answer=answer, probe=probe, discover=discover))

    found = asked(discover=True)
    if found.again:
        found = asked(discover=False)
    if found.why is not None:
        raise CaptureError(f"the server {found.why}{_last_words(found.path)}")


def _ask(link: "Link | WebLink", *, start: float, answer: float, probe: float, discover: bool) -> _Asked:
    """Send all requests of one session."""
    client = AskingClient(link, "mcpspy-lock")
    try:
        method, introduction = client.greet(start, probe, discover=discover)
    except NoAnswer as error:
        return _Asked(link.path, _told(error), again=discover and not isinstance(error, Late))
    if not isinstance(member(introduction, "capabilities"), dict):  # they decide which listings to request
        return _Asked(link.path, f"declares no capabilities in its answer to {method}", again=discover)
    try:
        for listing in listings(introduction):
            _list(client, listing, answer)
    except NoAnswer as error:
        return _Asked(link.path, _told(error))
    return _Asked(link.path)


def _list(client: AskingClient, method: str, answer: float) -> None:
    """Request every page. A server may lack templates although it declares resources."""
    try:
        for _ in client.pages(method, answer):
            pass
    except ErrorAnswer:
        if method != "resources/templates/list":
            raise


def _told(error: NoAnswer) -> str:
    if isinstance(error, Gone) and error.why == FLOODS:
        return f"sent more than a listing can need before it answered {error.method}"
    return str(error)


def _last_words(path: str) -> str:
    """Return the last line of the server's stderr, as the end of a sentence."""
    if not os.path.exists(path):
        return ""
    return "".join(f"; the last line of its stderr: {printable(last, 300)}" for last in stderr_of(path, 1))
