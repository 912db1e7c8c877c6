"""The held frames of one direction, in order.

The rules. A frame that is held, or follows a held frame, waits. Whatever its verdict is, it is released after those
before it. A frame overtakes if its verdict allows that, and frames behind one that is held with `reorder` do not wait
for it. If a cancellation arrives for a waiting request, both are dropped. At the end all frames are released at once,
in order, and none is held any more.

Frames and times are arguments. The results are the frames to forward now, each with the verdict that the relay must
apply.
"""

from mcpspy.gate.gate import Drop, Hold, Pass, Reply, Send
from mcpspy.gate.messages import read, with_message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpspy.gate.gate import AtOnce, Verdict
    from mcpspy.gate.messages import Key

FRAMES, BYTES = 1000, 1 << 20
"""The number and size of waiting frames at which the relay stops reading."""


class GatedFrame:
    """A frame with its verdict; `cut` is as in a capture."""

    __slots__ = ("by", "cut", "held", "how", "ids", "raw", "reorder", "t", "until", "verdict")

    def __init__(self, raw: bytes, t: int, verdict: "Verdict", *, cut: bool = False) -> None:
        self.raw = raw
        self.t = t
        self.cut = cut
        self.held: int | None = None
        """The number of the frame; None if it does not wait."""
        self.how = "delayed"
        """The `how` of its release record."""
        self.by = ""
        """The gate that holds it."""
        self.until: int | None = None
        """When it is released; None: as soon as no frame waits before it."""
        self.ids: tuple[Key, ...] = ()
        """The ids of its requests; set when it waits."""
        self.reorder = False
        """Whether frames behind it are released before it."""
        if isinstance(verdict, Hold):
            self.until, self.how, self.by = verdict.until, verdict.how, verdict.by
            self.reorder = verdict.reorder
            verdict = verdict.then
        self.verdict: AtOnce = verdict


class FrameOrder:
    """The waiting frames of one direction; `numbers` are those of the gate, `framing` is that of the channel."""

    def __init__(self, numbers: "Iterator[int]", framing: str) -> None:
        self._numbers = numbers
        self._framing = framing
        self._waiting: list[GatedFrame] = []
        self._size = 0
        self._ended = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Whether so much waits that no more should be read."""
        return len(self._waiting) >= FRAMES or self._size >= BYTES

    @property
    def until(self) -> int | None:
        """The time of the next call of `expire`; None if nothing is due before another event."""
        return min((frame.until for frame in self._foremost() if frame.until is not None), default=None)

    def feed(self, frame: GatedFrame) -> list[GatedFrame]:
        """Add the next frame and return the frames to forward now; if it gets a number, it waits."""
        verdict = frame.verdict
        if isinstance(verdict, Pass) and verdict.overtakes and frame.until is None:
            waiting = self.find(verdict.cancels)
            if waiting is None:
                return [frame]
            if len(waiting.ids) == 1:
                frame.verdict = Drop(waiting.by)
                return [*self.release(waiting.held, "cancelled"), frame]
        blocker = next((waiting for waiting in self._waiting if not waiting.reorder), None)
        if self._ended or (frame.until is None and blocker is None):
            return [frame]
        frame.held = next(self._numbers)
        frame.by = frame.by or (blocker.by if blocker else "")
        frame.ids = tuple(it.id for it in read(frame.raw, self._framing) if it.kind == "request" and it.id)
        self._waiting.append(frame)
        self._size += len(frame.raw)
        return []

    def release(self, held: int | None, how: str, message: bytes | None = None) -> list[GatedFrame]:
        """Release the frame with that number, in order, and return the frames to forward now.

        `how` is `continued`, `edited` (`message` replaces its message), `answered` (`message` is a response that is
        sent back to its sender), `dropped` or `cancelled`. An unknown number is ignored. Raises ValueError if the frame
        cannot contain a message.
        """
        for frame in self._waiting:
            if frame.held == held:
                if how in ("dropped", "cancelled"):
                    frame.verdict = Drop(frame.by)
                elif how == "edited" and message is not None:
                    frame.verdict = Send((with_message(frame.raw, self._framing, message),), frame.by)
                elif how == "answered" and message is not None:
                    frame.verdict = Reply(message, frame.by)
                frame.until, frame.how = None, how
        return self._ready(None)

    def find(self, key: "Key | None") -> GatedFrame | None:
        """Return the waiting frame that has a request with that id."""
        return next((frame for frame in self._waiting if key in frame.ids), None) if key else None

    def expire(self, t: int) -> list[GatedFrame]:
        """Return the frames to forward at the time `t`."""
        return self._ready(t)

    def end(self, how: str) -> list[GatedFrame]:
        """Return all waiting frames; from now on none is held."""
        self._ended = True
        for frame in self._waiting:
            if frame.until is not None or frame.how == "delayed":  # except frames that were released already
                frame.how, frame.until = how, None
        return self._ready(None)

    def _ready(self, t: int | None) -> list[GatedFrame]:
        """Remove and return the frames that are due and not blocked by another one."""
        going: list[GatedFrame] = []
        while True:
            due = [it for it in self._foremost() if it.until is None or (t is not None and it.until <= t)]
            if not due:
                return going
            for frame in due:
                self._waiting.remove(frame)
                self._size -= len(frame.raw)
            going += due

    def _foremost(self) -> "Iterator[GatedFrame]":
        """Yield the frames that no other frame blocks: those up to the first without `reorder`."""
        for frame in self._waiting:
            yield frame
            if not frame.reorder:
                return
