"""What this viewer does to one session: the gates that it sets, and its orders for held frames.

A viewer writes gates and orders into the live directory of the capture, and reads the effects from the capture. Removed
gates are forgotten. When the viewer quits, its gates are removed and the frames that they hold are continued.
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
"""How long a breakpoint holds a frame unless it is released earlier, in nanoseconds."""
_NAME = 40  # maximum length of a breakpoint name, in characters


@dataclass(slots=True)
class SetGate:
    """A gate set by this viewer."""

    name: str
    text: str
    """The filter as typed."""
    when: dict[str, Any]
    """The compiled filter."""
    on: bool = True

    def compiled(self) -> dict[str, Any]:
        """Return the gate in the form that the relay reads."""
        return {"name": self.name, "when": self.when, "action": {"hold": HOLD}}


class SessionControl:
    """Controls one session. Methods raise CaptureError if the live directory cannot be used."""

    def __init__(self, path: str, header: Header, seen: GatesInCapture, lives: Callable[[], bool]) -> None:
        """`lives` returns whether the relay of the capture at `path` is still running."""
        self.gates: list[SetGate] = []
        """The gates of this viewer, on or off."""
        self._path, self._header, self._seen, self._lives = path, header, seen, lives
        self._viewer: LiveViewer | None = None
        self._names: set[str] = set()  # names of all gates that were set here, also of removed ones

    @property
    def used(self) -> bool:
        """Whether this viewer has changed the session."""
        return self._viewer is not None

    def refusal(self) -> str | None:
        """Return why the session cannot be controlled, in one line; None if it can be."""
        header = self._header
        if header.imported:
            return f"{header.name} was imported from {header.imported.form}: only a running session can be controlled"
        if not self._lives():
            return f"{header.name} has ended: only a running session can be controlled"
        if not header.control:
            return f"{header.name} cannot be controlled: it runs with --no-control, or in an earlier mcpspy"
        return None

    def has_set(self, name: str) -> bool:
        """Return whether a gate with that name was set here, even if it was removed since."""
        return name in self._names

    def add(self, text: str, when: dict[str, Any]) -> SetGate:
        """Set a breakpoint for the frames that match a filter, given as text and compiled. Raises UsageError."""
        if any(gate.text == text for gate in self.gates):
            raise UsageError("there is such a breakpoint already")
        gate = SetGate(self._free(_subject(when) or text), text, when)
        self._set([*self.gates, gate])
        self._names.add(gate.name)
        return gate

    def _free(self, subject: str) -> str:
        """Return a name that no gate of the session uses yet."""
        start = f"break {subject}"[:_NAME]
        taken = {str(gate.get("name")) for gate, _ in self._seen.in_force} | self._names | set(self._seen.acted)
        number = next(number for number in range(1, len(taken) + 2) if _numbered(start, number) not in taken)
        return _numbered(start, number)

    def toggle(self, gate: SetGate) -> None:
        """Switch a gate off, or on again."""
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
        """Release a held frame: continued, edited (`frame` is the new one), dropped, or answered (`frame` is it)."""
        self._live().release(held.number, how, frame)

    def send(self, frame: str, session: str | None) -> None:
        """Send a request of the viewer in the session with that id."""
        self._live().send(frame, session)

    def _live(self) -> LiveViewer:
        refused = self.refusal()
        if refused:
            raise CaptureError(refused)
        if self._viewer is None:
            self._viewer = LiveViewer(self._path, self._header.id)
        return self._viewer

    def close(self) -> None:
        """Release everything that the gates of this viewer hold, and remove them."""
        if self._viewer is None:
            return
        with suppress(CaptureError):  # the session has ended
            for held in self._seen.held.values():
                if held.gate in self._names and self._lives():
                    self._viewer.release(held.number, "continued")
        self._viewer.close()
        self._viewer, self.gates = None, []


def _subject(when: dict[str, Any]) -> str:
    """Return the subject of a gate in one word: the name or the method that it matches."""
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
