"""The content of the receiver's file: how often and how late each span arrived, and when the receiver was stopped."""

import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

SECOND = 1_000_000_000


@dataclass(slots=True)
class Taken:
    """The received spans. Times are nanoseconds since the epoch. `read` reads the new lines of the file."""

    path: str
    times: Counter[str] = field(default_factory=Counter)
    """Id of a span -> number of times that it arrived."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """When each span arrived, and when its exchange ended."""
    listens: list[int] = field(default_factory=list)
    """When the receiver started, stopped, and started again."""
    bytes: int = 0
    """Size of the requests as sent."""
    _read: int = 0

    def read(self) -> None:
        """Read the new lines."""
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
        """Wait for `count` spans. Stop waiting if no new span arrives for `seconds`.

        `look` is called repeatedly meanwhile.
        """
        seen, deadline = -1, 0.0
        while len(self.times) < count and (len(self.times) > seen or time.monotonic() < deadline):
            if len(self.times) > seen:
                seen, deadline = len(self.times), time.monotonic() + seconds
            time.sleep(0.1)
            look()
            self.read()

    def lags(self, since: int, until: int) -> list[int]:
        """Return for each exchange that ended in a period how much later its span arrived."""
        return [came - end for came, end in self.spans if since <= end < until]

    def count(self, since: int, until: int) -> int:
        """Return how many spans arrived in a period."""
        return sum(since <= came <= until for came, _ in self.spans)

    def caught_up(self) -> tuple[int, int]:
        """Return when the first and the last delayed span arrived after the receiver was started again."""
        back = self.listens[2]
        late = [came for came, end in self.spans if came >= back and end < back]
        return min(late), max(late)
