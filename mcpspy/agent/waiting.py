"""Waiting for the next error, or the next row that matches a filter, in a session that is being recorded.

Only what happens from now on counts: new rows, and requests that change, for example because their response arrived.
`NextMatch` looks one step at a time and has no clock. Its caller waits between two looks.
"""

from bisect import bisect_right

from mcpspy.agent.answers import Answer, address, safe, split_address
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.rows import matches, told_row, wanted_filter
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError

ERRORS = "status:failed or severity:error or kind:invalid"
"""The filter for errors, used if no filter is given."""
STEP = 0.2
"""Seconds between two looks."""
_NEAR = 64  # maximum distance between the place of a row and its line number
LONGEST = 300
"""The longest time-out that a client may request, in seconds."""


class NextMatch:
    """Looks for new matches in one live session, or in all live sessions."""

    def __init__(self, captures: AgentCaptures, session: str = "", filter: str = "", after: str = "") -> None:  # noqa: A002
        """Watch what follows the frame at the address `after`, or without it, what is recorded from now on.

        Raises UsageError if a session is not live, unless there may be something after `after`.
        """
        self._captures = captures
        self._text = filter or ERRORS
        wanted_filter(self._text, "2026-01-01T00:00:00Z")  # fail before waiting
        self._session = ""
        # by path: number of rows, last line, and number of revised rows at the last look
        self._before: dict[str, tuple[int, int, int]] = {}
        line = 0
        if after:
            session, line = split_address(after)
        if session:
            entry = captures.find(session)
            self._session = captures.name(entry)
            if not (entry.live or after):
                raise UsageError(
                    f"the session {self._session} has ended, so nothing new will come; find_problems and read_timeline "
                    "show what is in it"
                )
        else:
            captures.look()
        for entry in captures.entries:
            if (entry.live or after) and self._watched(captures.name(entry)):
                capture = captures.open(entry)
                rows = capture.index.rows
                seen = bisect_right(rows, line) if after else len(rows)
                self._before[entry.path] = seen, line if after else max(rows, default=0), len(capture.revised)
        self.seen = 0
        """The number of new rows that were examined."""

    def _watched(self, name: str) -> bool:
        return not self._session or name == self._session

    @property
    def sessions(self) -> int:
        """The number of watched sessions."""
        return len(self._before)

    def look(self) -> Answer | None:
        """Return the next new row that matches, or the end of the session, or None if there is neither yet."""
        captures = self._captures
        captures.look()
        ended = self._session
        for entry in captures.entries:
            name = captures.name(entry)
            if not self._watched(name) or not (entry.live or entry.path in self._before):
                continue
            ended = ""
            capture = captures.open(entry, STEP)
            hit = self._hit(entry.path, capture)
            if hit is not None:
                row = told_row(captures.scrubber, capture, name, hit)
                return {"found": True, "session": name, "server": captures.server(entry)} | {
                    "row": row,
                    "hint": f"read_message {row['at']}",
                }
            if self._session and not entry.live and capture.complete:
                ended = name
        return {"found": False, "session": ended, "note": "the session has ended"} if ended else None

    def _hit(self, path: str, capture: OpenCapture) -> int | None:
        wanted = wanted_filter(self._text, capture.header.started)
        scrubber = self._captures.scrubber
        rows, last, revised = self._before.get(path, (0, 0, 0))
        found = None
        for n in sorted(n for n in capture.index.rows[max(rows - _NEAR, 0) :] if n > last):
            at = capture.index.row_of(n)
            fits = at is not None and matches(scrubber, capture, wanted, at)
            if fits is None:
                break  # the fold must come first
            self.seen += 1
            rows, last = rows + 1, n
            if fits:
                found = at
                break
        while revised < len(capture.revised) and found is None:
            at = capture.index.row_of(capture.revised[revised])
            found = at if at is not None and matches(scrubber, capture, wanted, at) else None
            revised += 1
        self._before[path] = rows, last, revised
        partner = capture.partner(found) if found is not None else None
        if found is None or partner is None or partner < found:
            return found
        # the response has the details of the error
        return partner if matches(scrubber, capture, wanted, partner) else found

    def nothing(self, seconds: float) -> Answer:
        """Return the answer after a time-out."""
        what = f"in {self._session}" if self._session else f"in {self.sessions} live sessions"
        note = f"nothing matched {safe(self._text, 200)!r} {what} within {seconds:g} s; {self.seen} new rows were seen"
        return {"found": False, "note": note} | self._after()

    def _after(self) -> Answer:
        """Return the address to continue from in the next call, if only one session is watched."""
        if len(self._before) != 1:
            return {}
        [(path, (_, last, _))] = self._before.items()
        entry = next((it for it in self._captures.entries if it.path == path), None)
        return {"after": address(self._captures.name(entry), last)} if entry and last else {}
