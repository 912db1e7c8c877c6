"""The gates of the sessions that are shown, a line for each: those in force, and those of this viewer that are off."""

from typing import NamedTuple

from mcpspy.browse.control import SetGate
from mcpspy.browse.gates import action_text, when_text
from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.merged import Merged

HERE, FILE, OTHER = "set here", "gate file", "another viewer"


class GateLine(NamedTuple):
    """One gate."""

    session: OpenCapture
    """Whose it is."""
    gate: SetGate | None
    """Where this viewer has set it; no other can be changed."""
    name: str
    text: str
    """Which frames it names."""
    action: str
    """What it does with them."""
    source: str
    """Who has set it."""
    acted: int
    """On how many frames it acted."""
    latest: int
    """The line number of the last of them; 0 where there is none."""

    @property
    def on(self) -> bool:
        """Whether it is in force."""
        return self.gate is None or self.gate.on


def gate_lines(shown: OpenCapture | Merged) -> list[GateLine]:
    """The gates of each session: first those of this viewer, then the others in force."""
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
