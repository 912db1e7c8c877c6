"""The gates of the shown sessions, one line each: the gates in force, and the gates of this viewer that are off."""

from typing import NamedTuple

from mcpspy.browse.gates import SetGate, action_text, when_text
from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.merged import Merged

HERE, FILE, OTHER = "set here", "gate file", "another viewer"


class GateLine(NamedTuple):
    """One gate."""

    session: OpenCapture
    """The session of the gate."""
    gate: SetGate | None
    """The gate if this viewer has set it; None for other gates, which cannot be changed here."""
    name: str
    text: str
    """The filter for frames."""
    action: str
    """What it does with matching frames."""
    source: str
    """Where it was set: one of HERE, FILE, OTHER."""
    acted: int
    """The number of frames that it acted on."""
    latest: int
    """The line number of the latest of these frames; 0 if there is none."""

    @property
    def on(self) -> bool:
        """Whether it is in force."""
        return self.gate is None or self.gate.on


def gate_lines(shown: OpenCapture | Merged) -> list[GateLine]:
    """Return the gates of each session: first those of this viewer, then the others in force."""
    return [line for session in shown.sessions for line in _lines(session)]


def _lines(session: OpenCapture) -> list[GateLine]:
    seen, found = session.gates, []
    for gate in session.control.gates:
        does = action_text(gate.compiled()["action"])
        acted, latest = seen.acted[gate.name], seen.latest.get(gate.name, 0)
        found.append(GateLine(session, gate, gate.name, gate.text, does, HERE, acted, latest))
    for each, by in seen.in_force:
        name, when, action = str(each.get("name")), each.get("when"), each.get("action")
        if not session.control.has_set(name):
            text = when_text(when if isinstance(when, dict) else {})
            does = action_text(action if isinstance(action, dict) else {})
            source = FILE if by == "file" else OTHER
            acted, latest = seen.acted[name], seen.latest.get(name, 0)
            found.append(GateLine(session, None, name, text, does, source, acted, latest))
    return found
