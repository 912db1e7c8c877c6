"""The verdicts on a frame. The `by` of each one except `Pass` names who decided it, as in the capture: `gate NAME`.

Frames in a verdict have no delimiter; the relay that writes them adds it. Times are nanoseconds since the capture
started.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from mcpspy.gate.messages import Key

    AtOnce: TypeAlias = "Pass | Send | Drop | Reply | CloseStream | Refuse | Exit"
    """A verdict that needs no waiting."""
    Verdict: TypeAlias = "AtOnce | Hold"


class Pass:
    """Forward the frame unchanged."""

    __slots__ = ("cancels", "overtakes", "undecided")

    def __init__(self, *, overtakes: bool = False, cancels: "Key | None" = None, undecided: bool = False) -> None:
        self.overtakes = overtakes
        """Whether it is forwarded before held frames."""
        self.cancels = cancels
        """The id of the request that a cancellation names."""
        self.undecided = undecided
        """Whether the frame is too long for a decision."""


class Send:
    """Forward these frames instead, in order."""

    __slots__ = ("by", "frames")

    def __init__(self, frames: tuple[bytes, ...], by: str) -> None:
        self.frames = frames
        self.by = by


class Drop:
    """Forward nothing."""

    __slots__ = ("by",)

    def __init__(self, by: str) -> None:
        self.by = by


class Reply:
    """Forward nothing, and send `frame`, a JSON-RPC response, back to the sender."""

    __slots__ = ("by", "frame")

    def __init__(self, frame: bytes, by: str) -> None:
        self.frame = frame
        self.by = by


class CloseStream:
    """Forward nothing, and end the stream that the frame belongs to."""

    __slots__ = ("by",)

    def __init__(self, by: str) -> None:
        self.by = by


class Refuse:
    """Forward nothing, and answer the HTTP request of the frame with a status."""

    __slots__ = ("by", "status")

    def __init__(self, status: int, by: str) -> None:
        self.status = status
        self.by = by


class Exit:
    """Forward nothing, and kill the server; the relay ends with this exit status."""

    __slots__ = ("by", "code")

    def __init__(self, code: int, by: str) -> None:
        self.code = code
        self.by = by


class Hold:
    """Wait until the time `until`, unless the frame is released earlier; then apply the verdict `then`."""

    __slots__ = ("by", "how", "reorder", "then", "until")

    def __init__(self, until: int, by: str, how: str, then: "AtOnce", *, reorder: bool = False) -> None:
        self.until = until
        self.by = by
        self.how = how
        """The `how` of its release record at the time `until`: `expired` or `delayed`."""
        self.then = then
        self.reorder = reorder
        """Whether frames behind it are released before it."""


PASS = Pass()
UNDECIDED = Pass(undecided=True)
