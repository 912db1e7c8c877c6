"""List everything that a server offers, over the link of a replay, which records the session as a capture.

The theory. The client sends `server/discover` first (2026-07-28). If that is refused or not answered, it sends
`initialize`. A server that exits at the first is started again and gets only the second. Then the client requests every
page of every listing whose capability is declared. It calls no tool, and answers only pings. Every wait for an answer
has a limit.
"""

import json
import os
import queue
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from mcpspy import __version__
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Open
from mcpspy.conversation.offers import LISTED
from mcpspy.errors import CaptureError
from mcpspy.json_values import member
from mcpspy.spec.revisions import NEWEST_HANDSHAKE, PROTOCOL_VERSION, STATELESS
from mcpspy.text import printable
from mcpspy.transport.link import FLOODS, Ended, Failed, Link, signals_restored
from mcpspy.wire.jsonrpc import Error, Id, Request, Result, parse

if TYPE_CHECKING:
    from mcpspy.transport.http_link import WebLink

ROOM = 8 << 20
"""Bytes that a server is expected to send. It may send ten times as much."""
PROBE = 2.0
"""Seconds without an answer to `server/discover` after which `initialize` is sent."""
START = 60.0
"""Seconds for the answer to `initialize`: a launcher may have to download the server first."""
ANSWER = 30.0
"""Seconds for a page of a listing."""
LISTING = 300.0
"""Seconds for all pages of a listing."""
_PAGES = 1000  # limit for one listing
_ME = {"name": "mcpspy-lock", "version": __version__}
_META = {
    PROTOCOL_VERSION: STATELESS[0].value,
    "io.modelcontextprotocol/clientInfo": _ME,
    "io.modelcontextprotocol/clientCapabilities": {},
}
_INITIALIZE = {"protocolVersion": NEWEST_HANDSHAKE.value, "capabilities": {}, "clientInfo": _ME}
_DECLARED = {"resourceTemplates": "resources"}

Connect = Callable[[], "Link | WebLink"]


class _NoAnswer(Exception):
    """A request got no result. The text is the reason."""


class _Gone(_NoAnswer):
    """The server has ended."""


class _Late(_NoAnswer):
    """No answer arrived in time."""


def record_offer(connect: Connect, start: float = START, answer: float = ANSWER) -> None:
    """Let a server introduce itself and list what it offers. The link from `connect` records it.

    A server that is started twice is connected to twice, and the second session counts. Raises CaptureError if the
    server ends, does not introduce itself within `start` seconds, or takes more than `answer` seconds for a page, and
    whatever `connect` raises. Call it from the main thread, while no other thread runs.
    """
    for discover in (True, False):
        inquiry = _Inquiry(start, answer, discover=discover)
        why = _session(connect, inquiry)
        if why is None:
            return
        if not inquiry.again:
            break
    raise CaptureError(f"the server {why}")


def _session(connect: Connect, inquiry: "_Inquiry") -> str | None:
    """Run one session from the start of the server to its end. Return why it is incomplete, or None."""
    with signals_restored():
        link = connect()
        with ThreadPoolExecutor(max_workers=1) as pool:
            asking = pool.submit(inquiry.run, link)
            link.wait()
        if link.interrupted:
            raise KeyboardInterrupt
        why = asking.result()
    return why + _last_words(link.path) if why is not None else None


class _Inquiry:
    """The client's side of one session."""

    def __init__(self, start: float, answer: float, *, discover: bool) -> None:
        self._start = start
        self._answer = answer
        self._discover = discover
        self._meta: dict[str, Any] = {}
        self._requests = 0
        self.again = discover
        """Whether it is worth starting the server again, and beginning with `initialize`."""

    def run(self, link: "Link | WebLink") -> str | None:
        """Send all requests, then close the link. Return why a request was not answered, or None."""
        try:
            capabilities = self._introduce(link)
            self.again = False
            for method, kind in LISTED.items():
                if _DECLARED.get(kind, kind) in capabilities:
                    self._list(link, method, kind)
        except _NoAnswer as error:
            return str(error)
        finally:
            link.close()
        return None

    def _introduce(self, link: "Link | WebLink") -> dict[str, Any]:
        """Return the capabilities of the server."""
        if self._discover:
            try:
                found = self._ask(link, "server/discover", {"_meta": _META}, PROBE)
            except _Gone:
                raise
            except _NoAnswer:
                pass
            else:
                self._meta = {"_meta": _META}
                return _capabilities(found, "server/discover")
        try:
            found = self._ask(link, "initialize", _INITIALIZE, self._start)
        except _Late:
            self.again = False
            raise
        link.send(_line(method="notifications/initialized"))
        return _capabilities(found, "initialize")

    def _list(self, link: "Link | WebLink", method: str, kind: str) -> None:
        """Request every page. A server may lack templates although it declares resources."""
        cursor: Any = None
        seen: set[str] = set()
        due = time.monotonic() + LISTING
        for _ in range(_PAGES):
            if time.monotonic() > due:
                raise _NoAnswer(f"did not send all pages of {method} within {LISTING:.0f} s")
            params = self._meta | ({} if cursor is None else {"cursor": cursor})
            try:
                found = self._ask(link, method, params, self._answer)
            except _Refused as error:
                if kind == "resourceTemplates":
                    return
                raise _NoAnswer(str(error)) from error
            cursor = member(found, "nextCursor")
            if cursor is None:
                return
            if json.dumps(cursor) in seen:
                raise _NoAnswer(f"repeats a cursor in its pages of {method}, so the list has no end")
            seen.add(json.dumps(cursor))
        raise _NoAnswer(f"has more than {_PAGES:,} pages of {method}")

    def _ask(self, link: "Link | WebLink", method: str, params: dict[str, Any], seconds: float) -> Any:
        """Return the result of a request. Raises _NoAnswer."""
        self._requests += 1
        number = self._requests
        link.send(_line(id=number, method=method, **({"params": params} if params else {})))
        due = time.monotonic() + seconds
        while (left := due - time.monotonic()) > 0:
            try:
                heard = link.heard.get(timeout=left)
            except queue.Empty:
                break
            if isinstance(heard, Ended):
                how = "sent more than a listing can need" if heard.how == FLOODS else heard.how
                raise _Gone(f"{how} before it answered {method}")
            if isinstance(heard, Failed):
                if heard.request == Id.of(number):
                    raise _NoAnswer(f"did not answer {method}: {heard.how}")
                continue
            for body in parse(heard):
                if isinstance(body, Request):
                    _reply(link, body)
                elif isinstance(body, Result) and body.id == Id.of(number):
                    return body.result
                elif isinstance(body, Error) and body.id == Id.of(number):
                    told = printable(str(member(body.error, "message")), 200)
                    raise _Refused(f"answered {method} with an error: {told}")
        raise _Late(f"did not answer {method} within {seconds:.0f} s")


class _Refused(_NoAnswer):
    """A request was answered with an error."""


def _reply(link: "Link | WebLink", request: Request) -> None:
    """Answer a request of the server: a ping with a result, anything else with -32601."""
    if request.method == "ping":
        link.send(_line(id=request.value["id"], result={}))
    else:
        link.send(_line(id=request.value["id"], error={"code": -32601, "message": "Method not found"}))


def _capabilities(introduction: Any, method: str) -> dict[str, Any]:
    """Return the declared capabilities. Raises _NoAnswer if there are none: they decide which listings to request."""
    found = member(introduction, "capabilities")
    if not isinstance(found, dict):
        raise _NoAnswer(f"declares no capabilities in its answer to {method}")
    return found


def _line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0"} | members).encode()


def _last_words(path: str) -> str:
    """Return the last line of the server's stderr, as the end of a sentence."""
    if not os.path.exists(path):
        return ""
    stderr, last = set(), ""
    for record in Capture(path).records():
        if isinstance(record, Open) and record.role == "stderr":
            stderr.add(record.ch)
        elif isinstance(record, Frame) and record.ch in stderr and record.raw.strip():
            last = record.raw.decode(errors="replace").strip()
    return f"; the last line of its stderr: {printable(last, 300)}" if last else ""
