"""Apply what viewers put into the live directory of a running relay: gates and orders.

The relay calls `look` before it forwards something, and at intervals while it holds frames. Most calls compare two
numbers and return.

Imported on the `wrap` path after the pumps have started: no heavy imports here.
"""

from mcpspy.gate.check import GATES, TEXTS, count_texts
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.json_values import text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from mcpspy.capture.live import LiveFolder
    from mcpspy.gate.gate import Gate

INTERVAL, HOLDING = 100_000_000, 10_000_000
"""Nanoseconds between two checks: usually, and while frames are held."""
_HOW = {"continued": False, "edited": True, "dropped": False, "answered": True}
"""The decisions about a held frame, and whether each needs a message."""


class Control:
    """Sets the gates of viewers in the gate of one relay, and carries out their orders.

    `report` gets a sentence about a fault, `record` the gates that are now in force. `send` gets a request of a viewer
    and the session that it is for, or None.
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
        self._wanted: list[dict[str, Any]] = []  # the gates of all viewers, not validated
        self._entries: list[tuple[dict[str, Any], DeclaredGate]] = []
        self._looked = -INTERVAL
        self._told = ""

    @property
    def due(self) -> int:
        """The time of the next check."""
        return self._looked + (HOLDING if self._gate.holders else INTERVAL)

    def look(self, t: int) -> None:
        """Apply changes in the live directory if a check is due; `t` is the current time. Never raises."""
        if t < self.due:
            return
        self._looked = t
        try:
            if self._folder.changed():
                self._read()
        except Exception as error:
            self._tell([f"a live gate failed ({type(error).__name__}: {error}); traffic goes on"])

    def _tell(self, sentences: "list[str]") -> None:
        """Report the first of some faults, with the number of the others, unless that was just reported."""
        if sentences:
            more = f" (and {len(sentences) - 1} more such faults)" if len(sentences) > 1 else ""
            if sentences[0] + more != self._told:
                self._told = sentences[0] + more
                self._report(self._told)

    def _read(self) -> None:
        gates, orders, faults = self._folder.read()
        if gates != self._wanted:
            self._wanted = gates
            self._set(gates)
        for order in orders:
            faults += self._carry_out(order)
        self._tell(faults)

    def _set(self, gates: "list[dict[str, Any]]") -> None:
        """Put these gates into force; a gate that was in force before keeps its count of matches."""
        before = {text_of(compiled): gate for compiled, gate in self._entries}
        self._entries, refused = [], []
        texts = 0
        for compiled in gates[:GATES]:
            texts += count_texts(compiled.get("when"))
            if texts > TEXTS:
                refused.append(f"the filters of viewers have more than {TEXTS} texts; the other gates are not in force")
                break
            try:
                self._entries.append((compiled, before.get(text_of(compiled)) or DeclaredGate(compiled)))
            except (ValueError, RecursionError) as error:
                refused.append(f"{error}; a viewer has set it, and it is not in force")
        if len(gates) > GATES:
            refused.append(f"viewers have set more than {GATES} gates; the others are not in force")
        self._tell(refused)
        self._gate.set_live([gate for _, gate in self._entries])
        self._record([compiled for compiled, _ in self._entries])

    def _carry_out(self, order: "dict[str, Any]") -> "list[str]":
        """Carry out an order; return what is wrong with it."""
        held, frame = order.get("release"), order.get("frame")
        message = frame.encode("utf-8", "replace") if isinstance(frame, str) else None
        if type(held) is int:
            holder, how = self._gate.holders.get(held), str(order.get("how"))
            if how not in _HOW or (message is not None) != _HOW[how]:
                return [f"a viewer's order about held frame {held} cannot be understood: {how[:60]}"]
            if holder:
                holder.release(held, how, message)
        elif isinstance(order.get("send"), str):
            session = order.get("session")
            self._send(order["send"].encode("utf-8", "replace"), session if isinstance(session, str) else None)
        return []
