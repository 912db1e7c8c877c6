"""What gates, viewers and `wrap --reload` did to the frames of a capture.

The theory. The record of a frame that a gate changed, dropped or sent contains that fact. The record of a held frame
contains only that it was held. Its `release` record comes later and contains the outcome; until then the frame waits.
So an act belongs to a frame from its first record on, and is completed in place: every holder of the act sees what is
known by now. If no gate acted in a capture, nothing is kept here.
"""

from dataclasses import dataclass

from mcpspy.capture.format import RELOAD, VIEWER
from mcpspy.capture.records import Frame, Release
from mcpspy.conversation import bounds
from mcpspy.text import duration_text

_GATE = "gate "
_TOLD = ("answered", "cancelled", "closed")  # releases whose word is more precise than `dropped`


@dataclass(slots=True, eq=False)
class GateAct:
    """What was done to one frame."""

    n: int
    """The line number of the frame."""
    t: int
    by: str
    """`gate NAME`, `viewer` or `reload`."""
    how: str
    """`held` while the frame waits; afterwards what was forwarded, or why.

    The values are `continued`, `delayed`, `expired` (forwarded unchanged), `edited`, `repeated`, `dropped`, `answered`
    (in place of the receiver), `cancelled`, `closed`, and `made` for a frame of mcpspy.
    """
    held: int | None = None
    """For how many nanoseconds it was held; None while it is held, and if it was not held."""
    sent: bytes | None = None
    """What was forwarded in its place."""
    dropped: bool = False
    """Nothing was forwarded."""
    released_by: str | None = None
    """Who released a held frame, if that is not who held it."""

    @property
    def waits(self) -> bool:
        """Whether the frame is still held."""
        return self.how == "held"

    @property
    def made(self) -> bool:
        """Whether the frame was made by mcpspy."""
        return self.how == "made"

    @property
    def changed(self) -> bool:
        """Whether the receiver got something else, or nothing."""
        return self.dropped or self.how in ("edited", "made")

    @property
    def status(self) -> str | None:
        """The status of a request without a response: `held` or `dropped`; None if it was forwarded."""
        return "held" if self.waits else "dropped" if self.dropped else None

    @property
    def gate(self) -> str | None:
        """The name of the gate; None for a viewer, and for `wrap --reload`."""
        return self.by.removeprefix(_GATE) if self.by.startswith(_GATE) else None

    def __str__(self) -> str:
        if self.made:
            return f"sent by {_who(self.by)}"
        if self.waits:
            return f"held by {_who(self.by)}"
        if self.held is None:
            return "answers a viewer" if self.by == VIEWER and self.dropped else f"{self.how} by {_who(self.by)}"
        span = duration_text(self.held)
        if self.how in ("continued", "delayed"):
            return f"{'held' if self.how == 'continued' else 'delayed'} {span} by {_who(self.by)}"
        by = f" by {_who(self.released_by)}" if self.released_by and self.released_by != self.by else ""
        return f"held {span}, {self.how}{by} ({_who(self.by)})"  # the outcome comes first, for narrow columns


class GateActs:
    """The acts of one capture that are not complete."""

    def __init__(self) -> None:
        self._waiting: dict[int, GateAct] = {}  # by the number of the held frame

    def take(self, frame: Frame, sender: str) -> GateAct | None:
        """Return what was done to a frame that has a `by`; `sender` is the sender of the frame."""
        by = frame.by or ""
        if frame.held is None and not is_gate(by):
            return None
        if sender == "mcpspy":
            return GateAct(frame.n, frame.t, by, "made")
        if frame.held is not None:
            act = self._waiting[frame.held] = GateAct(frame.n, frame.t, by, "held")
            if len(self._waiting) > bounds.HELD + bounds.FORGOTTEN:
                bounds.forget(self._waiting)
            return act
        how = "dropped" if frame.dropped else "repeated" if frame.sent in (None, frame.raw) else "edited"
        return GateAct(frame.n, frame.t, by, how, sent=frame.sent, dropped=frame.dropped)

    def release(self, release: Release) -> GateAct | None:
        """Complete the act of a frame that was held; return None if there is no such frame."""
        act = self._waiting.pop(release.held, None)
        if act is None:
            return None
        act.held = max(release.t - act.t, 0)
        act.sent, act.dropped, act.released_by = release.sent, release.dropped, release.by
        if release.how in _TOLD:
            act.how = release.how
        else:
            act.how = "dropped" if release.dropped else "edited" if release.sent is not None else release.how
        return act


def is_gate(by: str | None) -> bool:
    """Return whether the user asked for this change, by a gate, a viewer or a reload.

    `endpoint` and `oauth` are changes of the proxy itself.
    """
    return by is not None and (by.startswith(_GATE) or by in (VIEWER, RELOAD))


def _who(by: str) -> str:
    return "a viewer" if by == VIEWER else by
