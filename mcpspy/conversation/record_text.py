"""The text of a row for a record that is not a frame: the server's end, gates in force, a signal, a gap."""

import signal as signals

from mcpspy.capture.records import End, Gap, Gates, Signal


def record_text(record: Gap | Signal | Gates | End) -> str:
    """Return the text of a row for a record that is not a frame."""
    if isinstance(record, Gap):
        return f"{record.lost} lost: {record.why}"
    if isinstance(record, Signal):
        return _signal_text(record)
    return _gates_text(record) if isinstance(record, Gates) else _end_text(record)


def _signal_text(signal: Signal) -> str:
    try:
        name = signals.Signals(signal.signal).name
    except ValueError:
        name = str(signal.signal)
    if signal.to == "group":
        return f"{name} to the process group" + (", forwarded to the server" if signal.forwarded else "")
    return f"{name} to mcpspy, {'' if signal.forwarded else 'not '}forwarded to the server"


def _gates_text(gates: Gates) -> str:
    names = ", ".join(str(gate.get("name", "?")) for gate in gates.gates) or "none in force"
    return f"{names} (set by {'the gate file' if gates.by == 'file' else 'a viewer'})"


def _end_text(end: End) -> str:
    if end.signal is not None:
        return f"the server was killed by signal {end.signal}"
    if end.code is None:
        return end.why or "the recording ended"
    return end.why or f"the server exited with code {end.code}"
