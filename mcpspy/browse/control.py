"""What this viewer has done to one session: the gates that it has set, and its orders about held frames.

The theory. A viewer writes what it wants into the live directory of the capture, and sees in the capture what came of
it. Nothing is kept of a gate that was removed. When the viewer leaves, its gates go, and what they hold is continued.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from mcpspy.browse.gates import GatesInCapture, HeldFrame
from mcpspy.capture.live import LiveViewer
from mcpspy.capture.records import Header
from mcpspy.errors import CaptureError, UsageError

HOLD = 60_000_000_000
"""Nanoseconds that a breakpoint holds a frame, if nobody lets it go earlier."""
_NAME = 40  # characters of the name of a breakpoint


@dataclass(slots=True)
class SetGate:
    """A gate that this viewer has set."""

    name: str
    text: str
    """The filter, as it was typed."""
    when: dict[str, Any]
    """The same, compiled."""
    on: bool = True

    def compiled(self) -> dict[str, Any]:
        """The gate as the relay takes it."""
        return {"name": self.name, "when": self.when, "action": {"hold": HOLD}}


class SessionControl:
    """What a viewer does to one session; methods raise CaptureError where the live directory is not possible."""

    def __init__(self, path: str, header: Header, seen: GatesInCapture, lives: Callable[[], bool]) -> None:
        """`lives` tells whether the relay of the capture at `path` is still there."""
        self.gates: list[SetGate] = []
        """Those of this viewer, on or off."""
        self._path, self._header, self._seen, self._lives = path, header, seen, lives
        self._viewer: LiveViewer | None = None
        self._names: set[str] = set()  # of all gates that were ever set here

    @property
    def used(self) -> bool:
        """Whether anything was done to the session."""
        return self._viewer is not None

    def refusal(self) -> str | None:
        """Why the session cannot be controlled, in one line; None where it can."""
        header = self._header
        if header.imported:
            return f"{header.name} was imported from {header.imported.form}: only a running session can be controlled"
        if not self._lives():
            return f"{header.name} has ended: only a running session can be controlled"
        if not header.control:
            return f"{header.name} cannot be controlled: it runs with --no-control, or in an earlier mcpspy"
        return None

    def has_set(self, name: str) -> bool:
        """Whether a gate of that name was set here, and may be removed since."""
        return name in self._names

    def add(self, text: str, when: dict[str, Any]) -> SetGate:
        """Set a breakpoint for the frames of a filter, given as a text and compiled. Raises UsageError."""
        if any(gate.text == text for gate in self.gates):
            raise UsageError("there is such a breakpoint already")
        gate = SetGate(self._free(_subject(when) or text), text, when)
        self._set([*self.gates, gate])
        self._names.add(gate.name)
        return gate

    def _free(self, subject: str) -> str:
        """A name that no gate of the session has."""
        start = f"break {subject}"[:_NAME]
        taken = {str(gate.get("name")) for gate, _ in self._seen.in_force} | self._names | set(self._seen.acted)
        number = next(number for number in range(1, len(taken) + 2) if _numbered(start, number) not in taken)
        return _numbered(start, number)

    def toggle(self, gate: SetGate) -> None:
        """Take a gate out of force, or put it in force again."""
        gate.on = not gate.on
        try:
            self._set(self.gates)
        except CaptureError:
            gate.on = not gate.on
            raise

    def remove(self, gate: SetGate) -> None:
        """Remove a gate."""
        self._set([it for it in self.gates if it is not gate])

    def _set(self, gates: list[SetGate]) -> None:
        self._live().set_gates([gate.compiled() for gate in gates if gate.on])
        self.gates = gates

    def release(self, held: HeldFrame, how: str, frame: str | None = None) -> None:
        """Let a held frame go: continued, edited (`frame` is the message), dropped, answered (`frame` is that)."""
        self._live().release(held.number, how, frame)

    def send(self, frame: str, session: str | None) -> None:
        """Send a request of our own, in the session of that id."""
        self._live().send(frame, session)

    def _live(self) -> LiveViewer:
        refused = self.refusal()
        if refused:
            raise CaptureError(refused)
        if self._viewer is None:
            self._viewer = LiveViewer(self._path, self._header.id)
        return self._viewer

    def close(self) -> None:
        """Let go what the gates of this viewer hold, and remove them."""
        if self._viewer is None:
            return
        with suppress(CaptureError):  # the session has ended
            for held in self._seen.held.values():
                if held.gate in self._names and self._lives():
                    self._viewer.release(held.number, "continued")
        self._viewer.close()
        self._viewer, self.gates = None, []


def _subject(when: dict[str, Any]) -> str:
    """What a gate is about, in a word: the name or the method that it wants."""
    for key in ("name", "method"):
        wanted = when.get(key)
        if isinstance(wanted, list) and wanted:
            wanted = wanted[0]
        literal = wanted.get("is") if isinstance(wanted, dict) else wanted
        if isinstance(literal, str):
            return literal
    return ""


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} {number}"
