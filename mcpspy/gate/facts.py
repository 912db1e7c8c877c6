"""What is known of a frame besides its bytes: who sent it, on what channel, in which session."""

from mcpspy.gate.messages import Envelope, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable

    from mcpspy.gate.in_flight import InFlight


class Facts:
    """One direction of one session; decodes a frame once for all who ask."""

    __slots__ = ("_in_flight", "_read", "escaped", "frame", "framing", "lower", "requester", "sender", "session")

    def __init__(self, sender: str, framing: str, session: "Hashable", in_flight: "InFlight") -> None:
        self.sender = sender
        """`client` or `server`."""
        self.framing = framing
        """`lines`, `sse`, `body` or `message`."""
        self.session = session
        """What tells sessions apart, such as the session id; None on stdio."""
        self.requester = "server" if sender == "client" else "client"
        """Whose requests the responses of this direction answer."""
        self._in_flight = in_flight
        self.lower = b""
        """The frame in lower case: words are looked for in it whatever their case."""
        self.escaped = False
        """Whether ASCII letters may stand in the frame as escapes, so that no word can be looked for."""
        self.frame = b""
        """The frame itself."""
        self._read: tuple[Envelope, ...] | None = None

    def begin(self, frame: bytes) -> None:
        """Turn to another frame."""
        self.frame, self._read = frame, None
        self.lower = frame.lower()
        self.escaped = _ESCAPE in frame

    def end(self) -> None:
        """Keep nothing of the frame."""
        self.frame = self.lower = b""
        self._read = None

    @property
    def decoded(self) -> bool:
        """Whether somebody has asked for the messages."""
        return self._read is not None

    @property
    def messages(self) -> tuple[Envelope, ...]:
        """The messages of the frame."""
        if self._read is None:
            self._read = read(self.frame, self.framing)
        return self._read

    @property
    def may_answer(self) -> bool:
        """Whether the frame may hold a response to a request that is kept."""
        if not self._in_flight.any(self.session, self.requester):
            return False
        return self.escaped or b'"result"' in self.frame or b'"error"' in self.frame

    def about(self, message: Envelope) -> tuple[str | None, str | None]:
        """Method and name of a message; those of a response are its request's."""
        if message.answers:
            return self._in_flight.find(self.session, self.requester, message.id)
        return message.method, message.name


_ESCAPE = b"\\u00"  # of a letter below U+0100
