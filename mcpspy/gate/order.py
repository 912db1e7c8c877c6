"""The frames of one direction that wait, in their order.

The rules. A frame that is held, or stands behind one that is, waits; whatever its verdict, it goes when those before it
have gone. Frames whose verdict says so overtake, and a frame that is held with `reorder` lets all pass that come behind
it. A cancellation of a request that waits drops both. At the end all go
at once, in their order, and nothing is held any more.

Frames and times come in; what comes out is what goes now, each with the verdict that the relay has to carry out.
"""

from mcpspy.gate.messages import read
from mcpspy.gate.splice import with_message
from mcpspy.gate.verdicts import Drop, Hold, Pass, Reply, Send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpspy.gate.messages import Key
    from mcpspy.gate.verdicts import AtOnce, Verdict

FRAMES, BYTES = 1000, 1 << 20
"""How much may wait before the relay stops reading."""


class GatedFrame:
    """A frame on its way, and its verdict; `cut` as in a capture."""

    __slots__ = ("by", "cut", "held", "how", "ids", "raw", "reorder", "t", "until", "verdict")

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
        self.reorder = False
        """Whether frames behind it go before it."""
        if isinstance(verdict, Hold):
            self.until, self.how, self.by = verdict.until, verdict.how, verdict.by
            self.reorder = verdict.reorder
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
        return min((frame.until for frame in self._foremost() if frame.until is not None), default=None)

    def feed(self, frame: GatedFrame) -> list[GatedFrame]:
        """Take the next frame and return what goes now; it waits itself if it has got a number."""
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
        """Let the frame with that number go, in its turn.

        `how` is `continued`, `edited` (`message` takes the place of its message), `answered` (`message` is a response
        that goes back to its sender), `dropped` or `cancelled`. A number that does not wait is ignored. Raises
        ValueError where the frame has no place for a message.
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
        """Take out what goes: of those that nobody holds up, the ones whose time has come."""
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
        """Those that wait for no other: up to the first that lets nothing pass."""
        for frame in self._waiting:
            yield frame
            if not frame.reorder:
                return
