"""The records of a capture with the client's frames as the server received them from a gate.

A script normally contains the client's frames as mcpspy received them, without the acts of a gate. Here the frames are
those that were forwarded: changed frames as they were sent, without the dropped ones, with those that a gate sent in
the client's place, and held frames at the time of their release. Requests of a viewer are left out. So is what `wrap
--reload` sent to a server that replaced another: the ids stay those that the client knows.
"""

from collections.abc import Iterable
from dataclasses import replace

from mcpspy.capture.format import RELOAD, VIEWER
from mcpspy.capture.records import Frame, Open, Record, Release
from mcpspy.conversation.gate_acts import is_gate


def as_forwarded(records: Iterable[Record]) -> list[Record]:
    """Return the records in the order of their times. Some times differ from the recorded ones."""
    found = list(records)
    channels = {it.ch for it in found if isinstance(it, Open) and it.sender == "client"}
    releases = {it.held: it for it in found if isinstance(it, Release)}
    forwarded: list[Record] = []
    for record in found:
        if isinstance(record, Frame) and is_gate(record.by):
            if record.by == VIEWER or (record.by == RELOAD and (record.dropped or record.sender == "mcpspy")):
                continue
            if record.ch in channels and not (record.by == RELOAD and record.sent is not None):
                frame = _as_forwarded(record, releases)
                forwarded += [frame] if frame else []
                continue
        forwarded.append(record)
    return sorted(forwarded, key=lambda record: record.t)


def _as_forwarded(frame: Frame, releases: dict[int, Release]) -> Frame | None:
    """Return a frame of the client's channel as the server received it; None if it was not forwarded."""
    told: Frame | Release | None = frame if frame.held is None else releases.get(frame.held)
    if told is None or told.dropped:
        return None
    raw = frame.raw if told.sent is None else told.sent
    return replace(frame, t=told.t, raw=raw, sender=None, sent=None, by=None, held=None)
