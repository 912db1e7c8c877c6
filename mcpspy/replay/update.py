"""The capture that `replay --update` writes: the recorded one, in which the new session replaces what differs.

A review of the file should show what the server changed, and nothing else. So a message that the comparison finds equal
keeps its line, and a message that differs gets a new line in the place and with the time of the old one. What a replay
does not compare (stderr, latencies, heads) stays as recorded. Values that the server issues in each session (cursors,
ids of tasks) stay too, because later requests return them.

Not every difference fits into the recorded file: another number of responses, a gate that acted, a batch. The result is
compared with the new session before it replaces the capture. If there is a difference left, the whole new session
replaces the capture.
"""

import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from mcpspy.capture.format import base64_text
from mcpspy.capture.parts import JoinedFiles
from mcpspy.capture.records import Frame, Open
from mcpspy.capture.scan import parse_line, raw_of
from mcpspy.conversation.model import Message
from mcpspy.errors import CaptureError
from mcpspy.json_values import member
from mcpspy.recording.copy import record_line, write_copy
from mcpspy.replay.issued_values import reissued, rewritten
from mcpspy.replay.run import Replayed
from mcpspy.replay.script import Script, Turn, accept, script_of
from mcpspy.replay.sessions import FINE, Compared, compare, pair
from mcpspy.replay.tolerance import Rules
from mcpspy.wire.jsonrpc import Notification, Request

_CHUNK = 1 << 20  # bytes read at once
_PIECE = 1 << 16  # the longest frame that is written in one record, in bytes
_PLAIN = frozenset(("kind", "ch", "t", "raw", "b64", "more"))
"""The members of a frame that nobody changed or held."""


def update(replayed: Replayed, compared: Sequence[Compared], rules: Rules, capture: str) -> bool:
    """Replace a capture by the new session. Return whether the lines of what did not change were kept.

    Raises CaptureError if it cannot be replaced.
    """
    with tempfile.TemporaryDirectory(prefix="mcpspy-") as folder:
        path = os.path.join(folder, "updated.jsonl")
        try:
            write_copy(_Update(replayed, compared).lines(capture), path)
            kept = _is_equal(script_of(path), replayed.observed, rules)
        except (_Unfit, CaptureError):
            kept = False
        accept(path if kept else replayed.path, capture)
    return kept


def _is_equal(updated: Script, observed: Script, rules: Rules) -> bool:
    found = compare(updated, observed, pair(updated, observed, rules), rules)
    return not updated.lost and all(it.outcome in FINE for it in found)


class _Unfit(Exception):
    """A difference that does not fit into the recorded file."""


@dataclass(slots=True)
class _Edits:
    """What changes in the recorded file, by the line of a frame: the last one, if it has several."""

    replaced: dict[int, bytes] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    added: dict[int, list[bytes]] = field(default_factory=dict)
    """Messages of the server that follow a frame."""


class _Update:
    """Finds the lines of the updated capture."""

    def __init__(self, replayed: Replayed, compared: Sequence[Compared]) -> None:
        self._turns = {old.cause.n: (old, new) for old, new in replayed.pairs if old and new}
        self._old = {message.n: message for message in replayed.recorded.messages}
        self._new = {message.n: message for message in replayed.observed.messages}
        self._servers = {it.ch for it in self._old.values() if it.sender == "server"}
        self._edits = _Edits()
        self._following = self._places(compared)
        for it in compared:
            if it.outcome not in FINE:
                self._apply(it)

    def _places(self, compared: Sequence[Compared]) -> dict[int, int]:
        """Return for each line of the new session the recorded line after which an additional message belongs."""
        partner = {it.observed: it.request for it in compared if it.observed and it.request}
        for old, new in self._turns.values():
            together = [
                (old.cause, new.cause),
                (old.response, new.response),
                *zip(old.linked, new.linked, strict=False),
            ]
            partner |= {other.n: one.n for one, other in together if one and other}
        place, found = 0, {}
        for n in self._new:
            place = partner.get(n) or place
            found[n] = place
        return found

    def _apply(self, it: Compared) -> None:
        if it.reason:
            raise _Unfit
        old, new = self._old.get(it.request or 0), self._new.get(it.observed or 0)
        if it.request in self._turns:
            self._exchange(it, *self._turns[it.request])
        elif any(message and message.sender == "client" for message in (old, new)):
            raise _Unfit
        else:
            self._message(old, new)

    def _exchange(self, it: Compared, old: Turn, new: Turn) -> None:
        paths = [difference.path for difference in it.differences]
        if any(path[:1] != ("notifications",) for path in paths):
            if not old.response or not new.response:
                raise _Unfit
            self._replace(old.response, new.response)
        for place in sorted({int(path[1]) for path in paths if path[:1] == ("notifications",)}):
            one, other = (turn.linked[place] if place < len(turn.linked) else None for turn in (old, new))
            self._message(one, other)

    def _message(self, old: Message | None, new: Message | None) -> None:
        """Replace, drop or add a message of the server that is no response."""
        if old and new:
            self._replace(old, new)
        elif old and isinstance(old.body, Notification):
            self._edits.dropped.add(old.n)
        elif new and isinstance(new.body, Notification) and self._following[new.n] and len(self._servers) == 1:
            self._edits.added.setdefault(self._following[new.n], []).append(new.frame.raw)
        else:
            raise _Unfit

    def _replace(self, old: Message, new: Message) -> None:
        """Put a new message in the place of a recorded one; the values that the server issued stay as recorded."""
        if any(message.frame.raw.lstrip()[:1] == b"[" or message.frame.omitted for message in (old, new)):
            raise _Unfit
        inputs = [member(message.body.value, "result", "inputRequests") for message in (old, new)]
        if any(isinstance(it, dict) for it in inputs) and list(inputs[0] or ()) != list(inputs[1] or ()):
            raise _Unfit  # their names are issued values
        changes: dict[Any, Any] = dict(reissued(old.body.value, new.body.value))
        if isinstance(old.body, Request):
            changes["id",] = old.body.id
        self._edits.replaced[old.n] = rewritten(new, changes) if changes else new.frame.raw

    def lines(self, capture: str) -> Iterator[bytes]:
        """Yield the lines of the updated capture."""
        edits = self._edits
        lines = _lines(capture)
        yield lines[0]
        pieces: dict[int, list[bytes]] = {}
        framings: dict[int, str] = {}
        sizes = {self._old[n].ch: len(raw) for n, raw in edits.replaced.items()}
        server = min(self._servers)
        for n, line in enumerate(lines[1:], 2):
            frame, more = parse_line(n, line)
            if isinstance(frame, Open):
                framings[frame.ch] = frame.framing
                is_body = frame.framing == "body" and frame.ch in sizes
                yield _with_length(line, sizes[frame.ch]) if is_body else line
                continue
            if not isinstance(frame, Frame):
                yield line
                continue
            pieces.setdefault(frame.ch, []).append(line)
            if more:
                continue
            known = pieces.pop(frame.ch)
            if n in edits.replaced:
                raw = edits.replaced[n]
                yield from _frame_lines(known, frame, _event(known, raw) if framings[frame.ch] == "sse" else raw)
            elif n not in edits.dropped:
                yield from known
            for raw in edits.added.get(n, ()):
                yield from _frame_lines([], replace(frame, ch=server), raw)
        for left in pieces.values():
            yield from left


def _lines(capture: str) -> list[bytes]:
    with JoinedFiles(capture) as file:
        content = b"".join(iter(lambda: file.read(_CHUNK), b""))
    *lines, rest = content.split(b"\n")
    if rest:
        raise _Unfit
    return [line + b"\n" for line in lines]


def _with_length(line: bytes, size: int) -> bytes:
    """Return the record that opens the body of an HTTP response, with another length in its head."""
    fields = orjson.loads(line)
    for header in fields.get("head", {}).get("headers", ()):
        if header[0].lower() == "content-encoding" or "sent" in fields:
            raise _Unfit
        if header[0].lower() == "content-length":
            header[1] = str(size)
    return record_line(fields)


def _event(known: Sequence[bytes], data: bytes) -> bytes:
    """Return the event that is recorded in some lines, with other data."""
    fields = b"".join(map(raw_of, known)).splitlines(keepends=True)
    places = [place for place, it in enumerate(fields) if it.startswith(b"data:")]
    if len(places) != 1:
        raise _Unfit
    before = fields[places[0]]
    ending = before[len(before.rstrip(b"\r\n")) :]
    fields[places[0]] = b"data: " + data.replace(b"\n", b" ") + ending
    return b"".join(fields)


def _frame_lines(known: Sequence[bytes], frame: Frame, raw: bytes) -> Iterator[bytes]:
    """Yield the records of a frame that has other bytes and the rest of a recorded one, whose lines are `known`."""
    if frame.cut or any(orjson.loads(line).keys() - _PLAIN for line in known):
        raise _Unfit
    for piece, more in _pieces(raw):
        record: dict[str, object] = {"kind": "frame", "ch": frame.ch, "t": frame.t}
        try:
            record["raw"] = piece.decode()
        except UnicodeDecodeError:
            record["b64"] = base64_text(piece)
        yield record_line(record | ({"more": True} if more else {}))


def _pieces(raw: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield the pieces of a frame, each with whether more follow. No piece ends within a character."""
    while len(raw) > _PIECE:
        end = next((it for it in range(_PIECE, _PIECE - 4, -1) if raw[it] & 0xC0 != 0x80), _PIECE)
        yield raw[:end], True
        raw = raw[end:]
    yield raw, False
