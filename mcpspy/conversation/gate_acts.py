"""What gates, viewers and `wrap --reload` did to the frames of a capture.

The theory. A frame that a gate changed, dropped or sent says so itself. One that was held says only that: its `release`
record, which comes later, says what became of it, and until then it waits. So an act belongs to a frame from the first
record on and is completed in place: whoever has it sees what is known by now. Of a capture in which no gate acted
nothing is kept here.
"""

from dataclasses import dataclass

from mcpspy.capture.format import RELOAD, VIEWER
from mcpspy.capture.records import Frame, Release
from mcpspy.conversation.recent import FORGOTTEN, forget
from mcpspy.text import duration_text

_GATE = "gate "
_WAITING = 8192  # held frames whose release may still come
_TOLD = ("answered", "cancelled", "closed")  # releases whose word tells more than that the frame was dropped


@dataclass(slots=True, eq=False)
class GateAct:
    """What was done to one frame."""

    n: int
    """The line number of the frame."""
    t: int
    by: str
    """`gate NAME`, `viewer` or `reload`."""
    how: str
    """`held` while it waits; else what was forwarded, or why: `continued`, `delayed`, `expired` (as it came), `edited`,
    `repeated`, `dropped`, `answered` (in the receiver's place), `cancelled`, `closed`; `made`: the frame is ours."""
    held: int | None = None
    """For how many nanoseconds it was held; None while it is, and where it was not."""
    sent: bytes | None = None
    """What was forwarded in its place."""
    dropped: bool = False
    """Nothing was forwarded."""
    released_by: str | None = None
    """Who decided what became of a held frame, where that is not who held it."""

    @property
    def waits(self) -> bool:
        """Whether the frame is still held."""
        return self.how == "held"

    @property
    def made(self) -> bool:
        """Whether the frame is one of ours."""
        return self.how == "made"

    @property
    def changed(self) -> bool:
        """Whether its receiver got something else, or nothing."""
        return self.dropped or self.how in ("edited", "made")

    @property
    def status(self) -> str | None:
        """The status of a request that has no answer: `held` or `dropped`; None where it was forwarded."""
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
        return f"held {span}, {self.how}{by} ({_who(self.by)})"  # first what has to be read where there is little room


class GateActs:
    """The acts of one capture that are not complete."""

    def __init__(self) -> None:
        self._waiting: dict[int, GateAct] = {}  # by the number of the held frame

    def take(self, frame: Frame, sender: str) -> GateAct | None:
        """What was done to a frame that says by whom; `sender` is whose frame it is."""
        by = frame.by or ""
        if frame.held is None and not is_gate(by):
            return None
        if sender == "mcpspy":
            return GateAct(frame.n, frame.t, by, "made")
        if frame.held is not None:
            act = self._waiting[frame.held] = GateAct(frame.n, frame.t, by, "held")
            if len(self._waiting) > _WAITING + FORGOTTEN:
                forget(self._waiting)
            return act
        how = "dropped" if frame.dropped else "repeated" if frame.sent in (None, frame.raw) else "edited"
        return GateAct(frame.n, frame.t, by, how, sent=frame.sent, dropped=frame.dropped)

    def release(self, release: Release) -> GateAct | None:
        """Complete what is known of a frame that was held; None where there is no such frame."""
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
    """Whether it is a gate, a viewer, or a reload, which the user wants; `endpoint`, `oauth` are the proxy's own."""
    return by is not None and (by.startswith(_GATE) or by in (VIEWER, RELOAD))


def _who(by: str) -> str:
    return "a viewer" if by == VIEWER else by
