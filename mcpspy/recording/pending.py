"""Keep the records of one exchange until it is recognised as MCP, then write them into the capture.

A relay that intercepts sees everything that a client sends to a host. Only the content shows what of it is MCP: a
header of the protocol, or a JSON-RPC message. Until then records are kept here; the bytes are forwarded already. If an
exchange has sent `LIMIT` bytes without such a sign, it is not MCP, and its records are discarded.
"""

from typing import TYPE_CHECKING, Any

from mcpspy.wire.http_head import SIGN_OF_MCP

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpspy.recording.recording import Recording, Sink

LIMIT = 1 << 18
"""The most bytes of one exchange that are kept until it is recognised."""
_RECORD = 64  # bytes that are counted for each frame in addition to its content
_SIGN = 64  # bytes that are kept of a piece, because a sign of MCP may be split between two pieces


class Pending:
    """Keeps records in place of a capture's writer; `recording` returns the capture's recording when it is needed.

    Channels of the exchange are numbered from 1. In the capture they get numbers that no other exchange has.
    """

    def __init__(self, recording: "Callable[[], Recording]", path: str) -> None:
        self.path = path
        """The name of the capture in messages for the user; a description until the capture exists."""
        self._recording = recording
        self._kept: list[tuple[Any, ...]] | None = []  # None once the exchange is accepted or discarded
        self._size = 0
        self._tails: dict[int, bytes] = {}  # by channel: the end of a piece, if the next piece is missing
        self._capture: Recording | None = None
        self._numbers: dict[int, int] = {}

    def accept(self) -> None:
        """Accept the exchange as MCP: write the kept records, and write further ones at once."""
        if self._kept is None:
            return
        kept, self._kept = self._kept, None
        self._capture = self._recording()
        self.path = self._capture.path or self.path
        for method, *arguments in kept:
            method(self, *arguments)

    def discard(self) -> None:
        """Discard kept and further records, because the exchange is not MCP; no effect once it is accepted."""
        self._kept = None

    @property
    def discarded(self) -> bool:
        """Whether its records are not written any more."""
        return self._kept is None and self._sink is None

    def open(self, ch: int, t: int, sender: str, role: str, framing: str, rest: dict[str, Any] | None = None) -> None:
        """Record that a channel opens; this and the following methods are those of a writer."""
        if self._kept is not None:
            self._kept.append((Pending.open, ch, t, sender, role, framing, rest))
        elif self._sink and self._capture:
            self._numbers[ch] = self._capture.number()
            if rest and "answers" in rest:
                rest = rest | {"answers": self._numbers[rest["answers"]]}
            self._sink.open(self._numbers[ch], t, sender, role, framing, rest)

    def frame(self, ch: int, t: int, raw: bytes, more: bool, cut: bool, rest: dict[str, Any] | None = None) -> None:
        """Record a frame, which may be the sign that the exchange is MCP."""
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
        """Record a channel that opens and closes, with at most one frame."""
        self.open(ch, t, sender, role, "body", rest)
        if raw:
            self.frame(ch, t, raw, False, False)
        self.close(ch, t, "eof")

    def release(self, t: int, held: int, how: str, rest: dict[str, Any]) -> None:
        """Record the decision on a held frame; the gate numbers held frames, so the number is valid in the capture."""
        if self._kept is not None:
            self._keep(len(str(rest)), Pending.release, t, held, how, rest)
        elif self._sink:
            self._sink.release(t, held, how, rest)

    def gates(self, t: int, gates: list[dict[str, Any]], by: str) -> None:
        """Record the gates that are in force from now on."""
        if self._kept is not None:
            self._keep(len(str(gates)), Pending.gates, t, gates, by)
        elif self._sink:
            self._sink.gates(t, gates, by)

    def close(self, ch: int, t: int, how: str, rest: dict[str, Any] | None = None) -> None:
        """Record that a channel closes."""
        if self._kept is not None:
            self._kept.append((Pending.close, ch, t, how, rest))
        elif self._sink:
            self._sink.close(self._numbers[ch], t, how, rest)

    def _keep(self, size: int, *call: Any) -> None:
        """Keep a record whose content has that size; discard the exchange if there are too many bytes."""
        self._size += size + _RECORD
        if self._size > LIMIT:
            self.discard()
        elif self._kept is not None:
            self._kept.append(call)

    @property
    def _sink(self) -> "Sink | None":
        return self._capture.sink if self._capture else None
