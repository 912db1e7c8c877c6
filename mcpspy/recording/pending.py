"""Keeps the records of one exchange until it is recognised as MCP, then writes them into the capture.

A relay that intercepts sees everything that a client sends to a host, and only content tells what of it is MCP: a
header that the protocol owns, or a message of JSON-RPC. Until then records are kept here; the bytes have been forwarded
already. An exchange that has sent `LIMIT` bytes without a sign is not MCP, and its records are discarded.
"""

from typing import TYPE_CHECKING, Any

from mcpspy.wire.http_head import SIGN_OF_MCP

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.recording.recording import Recording, Sink

LIMIT = 1 << 18
"""Bytes of one exchange that are kept until it is recognised."""
_RECORD = 64  # bytes that each frame counts besides its own
_SIGN = 64  # bytes kept of a piece, since a sign of MCP may be divided between two


class Pending:
    """Takes records in place of a capture's writer; `recording` gives the capture's recording when it is needed.

    Channels of the exchange are numbered from 1; in the capture they get numbers that no other exchange has.
    """

    def __init__(self, recording: "Callable[[], Recording]", path: str) -> None:
        self.path = path
        """The name of the capture in messages for the user; until it exists, a description."""
        self._recording = recording
        self._kept: list[tuple[Any, ...]] | None = []  # None once it is known what the exchange is
        self._size = 0
        self._tails: dict[int, bytes] = {}  # of frames whose next piece is to come, by channel
        self._capture: Recording | None = None
        self._numbers: dict[int, int] = {}

    def accept(self) -> None:
        """The exchange is MCP: write what was kept, and from now on each record at once."""
        if self._kept is None:
            return
        kept, self._kept = self._kept, None
        self._capture = self._recording()
        self.path = self._capture.path or self.path
        for method, *arguments in kept:
            method(self, *arguments)

    def discard(self) -> None:
        """The exchange is not MCP, unless it was released: drop its records, and those to come."""
        self._kept = None

    @property
    def discarded(self) -> bool:
        """Whether nothing of it is written any more."""
        return self._kept is None and self._sink is None

    def open(self, ch: int, t: int, sender: str, role: str, framing: str, rest: dict[str, Any] | None = None) -> None:
        """A channel begins; this and what follows are the methods of a writer."""
        if self._kept is not None:
            self._kept.append((Pending.open, ch, t, sender, role, framing, rest))
        elif self._sink and self._capture:
            self._numbers[ch] = self._capture.number()
            if rest and "answers" in rest:
                rest = rest | {"answers": self._numbers[rest["answers"]]}
            self._sink.open(self._numbers[ch], t, sender, role, framing, rest)

    def frame(self, ch: int, t: int, raw: bytes, more: bool, cut: bool, rest: dict[str, Any] | None = None) -> None:
        """A frame; it may be the sign that the exchange is MCP."""
        if self._kept is not None:
            seen = self._tails.pop(ch, b"") + raw
            if more:
                self._tails[ch] = seen[-_SIGN:]
            if SIGN_OF_MCP.search(seen):
                self.accept()
        if self._kept is not None:
            self._keep(len(raw) + (len(str(rest)) if rest else 0), Pending.frame, ch, t, raw, more, cut, rest)
        elif self._sink:
            self._sink.frame(self._numbers[ch], t, raw, more, cut, rest)

    def whole(self, ch: int, t: int, sender: str, role: str, rest: dict[str, Any], raw: bytes) -> None:
        """A channel begins and ends, with one frame or none."""
        self.open(ch, t, sender, role, "body", rest)
        if raw:
            self.frame(ch, t, raw, False, False)
        self.close(ch, t, "eof")

    def release(self, t: int, held: int, how: str, rest: dict[str, Any]) -> None:
        """What became of a held frame; held frames are numbered by the gate, alike here and in the capture."""
        if self._kept is not None:
            self._keep(len(str(rest)), Pending.release, t, held, how, rest)
        elif self._sink:
            self._sink.release(t, held, how, rest)

    def gates(self, t: int, gates: list[dict[str, Any]], by: str) -> None:
        """The gates that are in force from now on."""
        if self._kept is not None:
            self._keep(len(str(gates)), Pending.gates, t, gates, by)
        elif self._sink:
            self._sink.gates(t, gates, by)

    def close(self, ch: int, t: int, how: str, rest: dict[str, Any] | None = None) -> None:
        """A channel ends."""
        if self._kept is not None:
            self._kept.append((Pending.close, ch, t, how, rest))
        elif self._sink:
            self._sink.close(self._numbers[ch], t, how, rest)

    def _keep(self, size: int, *call: Any) -> None:
        """Keep a record whose content has that size, unless that makes too many bytes."""
        self._size += size + _RECORD
        if self._size > LIMIT:
            self.discard()
        elif self._kept is not None:
            self._kept.append(call)

    @property
    def _sink(self) -> "Sink | None":
        return self._capture.sink if self._capture else None
