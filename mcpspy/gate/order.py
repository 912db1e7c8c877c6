"""The frames of one direction that wait, in their order.

The rules. A frame that is held, or stands behind one that is, waits; whatever its verdict, it goes when those before it
have gone. Frames whose verdict says so overtake. A cancellation of a request that waits drops both. At the end all go
at once, in their order, and nothing is held any more.

Frames and times come in; what comes out is what goes now, each with the verdict that the relay has to carry out.
"""

from mcpspy.gate.messages import read
from mcpspy.gate.verdicts import Drop, Hold, Pass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpspy.gate.messages import Key
    from mcpspy.gate.verdicts import AtOnce, Verdict

FRAMES, BYTES = 1000, 1 << 20
"""How much may wait before the relay stops reading."""


class GatedFrame:
    """A frame on its way, and its verdict; `cut` as in a capture."""

    __slots__ = ("by", "cut", "held", "how", "ids", "raw", "t", "until", "verdict")

    def __init__(self, raw: bytes, t: int, verdict: "Verdict", *, cut: bool = False) -> None:
        self.raw = raw
        self.t = t
        self.cut = cut
        self.held: int | None = None
        """Its number, once it waits."""
        self.how = "delayed"
        """What its release is called."""
        self.by = ""
        """Who holds it."""
        self.until: int | None = None
        """When it may go; None: as soon as nothing waits before it."""
        self.ids: tuple[Key, ...] = ()
        """Of its requests, once it waits."""
        if isinstance(verdict, Hold):
            self.until, self.how, self.by = verdict.until, verdict.how, verdict.by
            verdict = verdict.then
        self.verdict: AtOnce = verdict


class FrameOrder:
    """What waits in one direction; `numbers` are the gate's, `framing` the channel's."""

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
        """Whether so much waits that nothing more should be read."""
        return len(self._waiting) >= FRAMES or self._size >= BYTES

    @property
    def until(self) -> int | None:
        """When `expire` has to be called; None: not before something else happens."""
        return self._waiting[0].until if self._waiting else None

    def feed(self, frame: GatedFrame) -> list[GatedFrame]:
        """Take the next frame and return what goes now; it waits itself if it has got a number."""
        verdict = frame.verdict
        if isinstance(verdict, Pass) and verdict.overtakes and frame.until is None:
            waiting = self.find(verdict.cancels)
            if waiting is None:
                return [frame]
            if len(waiting.ids) == 1:
                frame.verdict = Drop(waiting.by)
                return [*self.release(waiting.held, "cancelled", Drop(waiting.by)), frame]
        if self._ended or (frame.until is None and not self._waiting):
            return [frame]
        frame.held = next(self._numbers)
        frame.by = frame.by or self._waiting[0].by
        frame.ids = tuple(it.id for it in read(frame.raw, self._framing) if it.kind == "request" and it.id)
        self._waiting.append(frame)
        self._size += len(frame.raw)
        return []

    def release(self, held: int | None, how: str, verdict: "AtOnce | None" = None) -> list[GatedFrame]:
        """Let the frame with that number go, in its turn, with another verdict if one is given.

        `how` is `continued`, `edited`, `dropped`, `answered` or `cancelled`. A number that does not wait is ignored.
        """
        for frame in self._waiting:
            if frame.held == held:
                frame.until, frame.how, frame.verdict = None, how, verdict or frame.verdict
        return self._ready(None)

    def find(self, key: "Key | None") -> GatedFrame | None:
        """The frame that waits with a request of that id."""
        return next((frame for frame in self._waiting if key in frame.ids), None) if key else None

    def expire(self, t: int) -> list[GatedFrame]:
        """What may go at the time `t`."""
        return self._ready(t)

    def end(self, how: str) -> list[GatedFrame]:
        """Everything that waits; from now on nothing is held."""
        self._ended = True
        for frame in self._waiting:
            if frame.until is not None or frame.how == "delayed":  # not one that was released already
                frame.how, frame.until = how, None
        return self._ready(None)

    def _ready(self, t: int | None) -> list[GatedFrame]:
        going = []
        while self._waiting:
            until = self._waiting[0].until
            if until is not None and (t is None or until > t):
                break
            going.append(self._waiting.pop(0))
            self._size -= len(going[-1].raw)
        return going
