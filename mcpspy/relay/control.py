"""What viewers want of a running relay: gates and orders out of its live directory, put into force.

The relay calls `look` before it forwards something, and while it holds something every now and then; most calls
compare two numbers and return. Imported on the `wrap` path only when a live directory is there.
"""

from mcpspy.gate.compiled import DeclaredGate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcpspy.capture.live import LiveFolder
    from mcpspy.gate.gate import Gate

INTERVAL, HOLDING = 100_000_000, 10_000_000
"""Nanoseconds between two looks: usually, and while frames are held."""
_HOW = {"continued": False, "edited": True, "dropped": False, "answered": True}
"""What may become of a held frame, and whether that needs a message."""


class Control:
    """One relay's gate, under the control of those who may write to its live directory.

    `report` gets a sentence for what is wrong, `record` the gates that are in force now; `send` gets a request of a
    viewer's own and the session that it is for, or None.
    """

    def __init__(
        self,
        folder: "LiveFolder",
        gate: "Gate",
        report: "Callable[[str], None]",
        record: "Callable[[list[dict[str, Any]]], None]",
        send: "Callable[[bytes, str | None], None]",
    ) -> None:
        self._folder = folder
        self._gate = gate
        self._report = report
        self._record = record
        self._send = send
        self._wanted: list[dict[str, Any]] = []  # the gates of all viewers; some may be none
        self._entries: list[tuple[dict[str, Any], DeclaredGate]] = []
        self._looked = -INTERVAL
        self._failed = ""

    @property
    def due(self) -> int:
        """When it is time to look again."""
        return self._looked + (HOLDING if self._gate.holders else INTERVAL)

    def look(self, t: int) -> None:
        """Do what viewers want, if it is time to look; `t` is now. Never raises."""
        if t < self.due:
            return
        self._looked = t
        try:
            if self._folder.changed():
                self._read()
        except Exception as error:
            sentence = f"a live gate failed ({type(error).__name__}: {error}); traffic goes on"
            if sentence != self._failed:
                self._report(sentence)
            self._failed = sentence

    def _read(self) -> None:
        gates, orders, faults = self._folder.read()
        for fault in faults:
            self._report(fault)
        if gates != self._wanted:
            self._wanted = gates
            self._set(gates)
        for order in orders:
            self._carry_out(order)

    def _set(self, gates: "list[dict[str, Any]]") -> None:
        """Have these gates in force; one that was in force already goes on counting its matches."""
        before, self._entries = self._entries, []
        for compiled in gates:
            known = [entry for entry in before if entry[0] == compiled]
            try:
                self._entries.append(known[0] if known else (compiled, DeclaredGate(compiled)))
            except (ValueError, RecursionError) as error:
                self._report(f"{error}; a viewer has set it, and it is not in force")
        self._gate.set_live([gate for _, gate in self._entries])
        self._record([compiled for compiled, _ in self._entries])

    def _carry_out(self, order: "dict[str, Any]") -> None:
        held, frame = order.get("release"), order.get("frame")
        message = frame.encode("utf-8", "replace") if isinstance(frame, str) else None
        if type(held) is int:
            holder, how = self._gate.holders.get(held), str(order.get("how"))
            if how not in _HOW or (message is not None) != _HOW[how]:
                self._report(f"a viewer's order about held frame {held} cannot be understood: {how}")
            elif holder:
                holder.release(held, how, message)
        elif isinstance(order.get("send"), str):
            session = order.get("session")
            self._send(order["send"].encode("utf-8", "replace"), session if isinstance(session, str) else None)
