"""What the receiver has taken, from its notes: how often each span came, how late, and when it was away."""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SECOND = 1_000_000_000


@dataclass(slots=True)
class Taken:
    """Times are nanoseconds since the epoch. `read` takes what the file has by now."""

    path: str
    times: Counter[str] = field(default_factory=Counter)
    """How often each span came, by its id."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """When each came, and when the exchange ended."""
    listens: list[int] = field(default_factory=list)
    """When it began to listen, ended, began again."""
    bytes: int = 0
    """Size of the requests, as they were sent."""
    _read: int = 0

    def read(self) -> None:
        """Take the lines that are new."""
        with open(self.path, "rb") as notes:
            notes.seek(self._read)
            for line in notes:
                if not line.endswith(b"\n"):
                    break
                self._read += len(line)
                self._note(json.loads(line))

    def _note(self, note: dict[str, Any]) -> None:
        if "listens" in note:
            self.listens.append(note["t"])
            return
        self.bytes += note["size"]
        for name, end in note["spans"]:
            self.times[name] += 1
            self.spans.append((note["t"], end))

    def until(self, count: int, seconds: float, look: Callable[[], None]) -> None:
        """Wait until so many spans are there, as long as something comes at least every so many seconds.

        `look` is called again and again meanwhile.
        """
        seen, deadline = -1, 0.0
        while len(self.times) < count and (len(self.times) > seen or time.monotonic() < deadline):
            if len(self.times) > seen:
                seen, deadline = len(self.times), time.monotonic() + seconds
            time.sleep(0.1)
            look()
            self.read()

    def lags(self, since: int, until: int) -> list[int]:
        """For exchanges that ended in a span of time: how long after that their span was taken."""
        return [came - end for came, end in self.spans if since <= end < until]

    def count(self, since: int, until: int) -> int:
        """How many spans came in a span of time."""
        return sum(since <= came <= until for came, _ in self.spans)

    def caught_up(self) -> tuple[int, int]:
        """When the first span came after the receiver was away, and the last of those that waited for it."""
        back = self.listens[2]
        late = [came for came, end in self.spans if came >= back and end < back]
        return min(late), max(late)
