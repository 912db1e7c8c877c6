"""The gate of one capture over HTTP: the gates of a file, and the gates and requests of viewers while a session runs.

Each route of `proxy`, and each server behind `mitm`, has one. As long as no gate is in force, the relay calls only
`look`, so bytes are forwarded as they arrive. Responses to requests of viewers are dropped before any other gate gets
them, because the client did not send the request.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mcpspy.capture.format import OWN_ID, VIEWER
from mcpspy.capture.live import LiveFolder
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import LIMIT, Drop, Gate
from mcpspy.gate.messages import read
from mcpspy.relay.control import HOLDING, Control

if TYPE_CHECKING:
    from mcpspy.gate.compiled import Answerers
    from mcpspy.gate.gate import Facts, Verdict
    from mcpspy.gate.messages import Key
    from mcpspy.recording.recording import Recording

_AWAITED = 100  # the most requests of viewers that wait for a response


class LiveGate(Gate):
    """`gates` are the compiled gates of a file; with `control`, viewers may add others after `begin` was called."""

    def __init__(
        self,
        gates: Sequence[dict[str, Any]],
        answerers: "Answerers",
        report: Callable[[str], None],
        *,
        control: bool = False,
    ) -> None:
        """`report` gets a sentence for the user. Raises ValueError if a gate is invalid."""
        super().__init__([DeclaredGate(gate, answerers) for gate in gates], report)
        self.in_force = bool(gates)
        """Whether frames must be decided on."""
        self._file = list(gates)
        self._live: list[dict[str, Any]] = []
        self._say = report
        self._controllable = control
        self._control: Control | None = None
        self._folder: LiveFolder | None = None
        self._watching: asyncio.Task[None] | None = None
        self._awaited: dict[Key, None] = {}  # the ids of requests of viewers

    def begin(self, recording: "Recording", send: Callable[[bytes, str | None], None] | None = None) -> None:
        """Begin with the capture: record the gates of the file, and check for viewers from now on.

        `send` gets a request of a viewer and the session that it is for, or None.
        """
        now = recording.clock.now
        if self._file:
            recording.gates(now(), self._file, "file")
        if self._controllable and recording.live_path:
            self._folder = LiveFolder(recording.live_path)
            set_live = partial(self._set, recording)
            self._control = Control(self._folder, self, self._say, set_live, send or self._refuse)

    def end(self) -> None:
        """Remove the live directory."""
        self._control = None
        if self._watching:
            self._watching.cancel()
        if self._folder:
            self._folder.remove()

    @property
    def controlled(self) -> bool:
        """Whether a viewer may set gates now."""
        return self._control is not None

    def watch(self, now: Callable[[], int]) -> None:
        """Check for decisions of viewers at short intervals until no frame is held."""
        if self._control and (self._watching is None or self._watching.done()):
            self._watching = asyncio.get_running_loop().create_task(self._watch(now))

    async def _watch(self, now: Callable[[], int]) -> None:
        while self.holders:
            await asyncio.sleep(HOLDING / 1e9)
            self.look(now())

    def look(self, t: int) -> bool:
        """Apply changes made by viewers, and return whether frames must be decided on. Never raises."""
        if self._control:
            self._control.look(t)
        return self.in_force

    def decide(self, frame: bytes, facts: "Facts", t: int) -> "Verdict":
        """Return the verdict on a frame that was read at `t`; never raises."""
        self.look(t)
        if self._awaited and self._is_awaited(frame, facts):
            return Drop(VIEWER)
        return super().decide(frame, facts, t)

    def await_answer(self, key: "Key") -> None:
        """Drop the response to the viewer's request with that id, on whichever stream it comes."""
        if len(self._awaited) >= _AWAITED:
            del self._awaited[next(iter(self._awaited))]
        self._awaited[key] = None
        self._update()

    def forget(self, key: "Key") -> None:
        """Stop waiting for the response to the viewer's request with that id."""
        self._awaited.pop(key, None)
        self._update()

    def _is_awaited(self, frame: bytes, facts: "Facts") -> bool:
        if facts.sender != "server" or len(frame) > LIMIT or OWN_ID.encode() not in frame:
            return False
        messages = read(frame, facts.framing)
        if len(messages) != 1 or not messages[0].answers or messages[0].id not in self._awaited:
            return False
        self.forget(messages[0].id)
        return True

    def _refuse(self, _frame: bytes, _session: str | None) -> None:
        self._say("this relay cannot send requests of viewers")

    def _set(self, recording: "Recording", gates: list[dict[str, Any]]) -> None:
        """Put these gates of viewers into force."""
        self._live = gates
        self._update()
        recording.gates(recording.clock.now(), gates, VIEWER)

    def _update(self) -> None:
        self.in_force = bool(self._file or self._live or self._awaited)
