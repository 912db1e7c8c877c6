"""The facts about a frame in addition to its bytes: its sender, its channel and its session."""

from mcpspy.gate.messages import Envelope, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from mcpspy.gate.in_flight import InFlight


class Facts:
    """The facts of one direction of one session; a frame is decoded once for all gates."""

    __slots__ = ("_in_flight", "_read", "escaped", "frame", "framing", "lower", "requester", "sender", "session")

    def __init__(self, sender: str, framing: str, session: "Hashable", in_flight: "InFlight") -> None:
        self.sender = sender
        """`client` or `server`."""
        self.framing = framing
        """`lines`, `sse`, `body` or `message`."""
        self.session = session
        """Identifies the session, for example by its id; None on stdio."""
        self.requester = "server" if sender == "client" else "client"
        """The sender of the requests that the responses of this direction answer."""
        self._in_flight = in_flight
        self.lower = b""
        """The frame in lower case, to search words in it without regard to case."""
        self.escaped = False
        """Whether the frame may contain ASCII letters as escapes, so that a search for words is not possible."""
        self.frame = b""
        """The frame itself."""
        self._read: tuple[Envelope, ...] | None = None

    def begin(self, frame: bytes) -> None:
        """Begin with another frame."""
        self.frame, self._read = frame, None
        self.lower = frame.lower()
        self.escaped = _ESCAPE in frame

    def end(self) -> None:
        """Discard the frame."""
        self.frame = self.lower = b""
        self._read = None

    @property
    def decoded(self) -> bool:
        """Whether the messages were decoded."""
        return self._read is not None

    @property
    def messages(self) -> tuple[Envelope, ...]:
        """The messages of the frame."""
        if self._read is None:
            self._read = read(self.frame, self.framing)
        return self._read

    @property
    def may_answer(self) -> bool:
        """Whether the frame may have a response to a request that is kept."""
        if not self._in_flight.any(self.session, self.requester):
            return False
        return self.escaped or b'"result"' in self.frame or b'"error"' in self.frame

    def about(self, message: Envelope) -> tuple[str | None, str | None]:
        """Return method and name of a message; for a response, those of its request."""
        if message.answers:
            return self._in_flight.find(self.session, self.requester, message.id)
        return message.method, message.name


_ESCAPE = b"\\u00"  # begins the escape of a letter below U+0100
