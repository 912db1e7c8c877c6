"""Proof that a capture holds every frame, byte by byte. It has its own reader, to reveal faults of the real one."""

import binascii
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.relay.processes import Broken

Piece = tuple[int, bytes, bool]
"""Channel, bytes, and whether the frame continues."""


def pieces(path: str) -> Iterator[Piece]:
    """Yield channel, bytes and whether the frame continues, for every frame record. The capture must be complete."""
    kind = ""
    with open(path, "rb") as file:
        if "mcpspy" not in json.loads(file.readline()):
            raise Broken("the capture has no header")
        for line in file:
            record = json.loads(line)
            kind = record["kind"]
            if kind == "gap":
                raise Broken(f"the capture lost {record['lost']} records")
            if kind == "frame":
                raw = record["raw"].encode() if "raw" in record else binascii.a2b_base64(record["b64"])
                yield record["ch"], raw, record.get("more", False)
    if kind != "end":
        raise Broken("the capture has no end")


@dataclass(frozen=True, slots=True)
class Log:
    """The recording of a program, and how to read it."""

    path: str
    read: Callable[[str], Iterator[Piece]] = pieces

    def pieces(self) -> Iterator[Piece]:
        """Yield the recorded pieces in order."""
        return self.read(self.path)


def verify(log: Log, expected: dict[int, Iterator[bytes]]) -> None:
    """Compare the frames of each channel, in order, with the lines that passed, each with its newline."""
    begun: dict[int, list[bytes]] = {ch: [] for ch in expected}
    counts = dict.fromkeys(expected, 0)
    for ch, raw, more in log.pieces():
        if ch not in expected:
            raise Broken(f"the capture has a frame of channel {ch}, where nothing passed")
        begun[ch].append(raw)
        if more:
            continue
        if next(expected[ch], None) != b"".join([*begun[ch], b"\n"]):
            raise Broken(f"frame {counts[ch] + 1} of channel {ch} in the capture is not what passed")
        begun[ch].clear()
        counts[ch] += 1
    for ch, lines in expected.items():
        if begun[ch] or next(lines, None) is not None:
            raise Broken(f"the capture of channel {ch} ends after {counts[ch]} frames")
