"""The gates of a session: what its capture shows of them, and what this viewer does to them.

A relay records the gates in force, what a gate did to a frame, and how a held frame was released. So the capture is the
only source that a viewer needs. `note` takes records in the order of the file, because a person waits for held frames
and sorting by time would delay them. `learn` takes messages, which refer to their request and their session; this shows
how long the client still waits. A session without active gates costs nothing: only records made by a gate are kept.

A viewer writes the gates that it sets, and its orders for held frames, into the live directory of the capture, and
reads the effects from the capture (`SessionControl`). Removed gates are forgotten. When the viewer quits, its gates are
removed and the frames that they hold are continued.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from mcpspy.capture.format import VIEWER
from mcpspy.capture.live import LiveViewer
from mcpspy.capture.records import End, Frame, Gates, Header, Record, Release
from mcpspy.conversation.model import Message, Session
from mcpspy.errors import CaptureError, UsageError
from mcpspy.json_values import member
from mcpspy.spec.client_limits import time_outs_of
from mcpspy.text import printable
from mcpspy.wire.jsonrpc import Error, Request, Result

GATE = "gate "
"""The prefix of `by` in a frame that a gate acted on."""
_CLIENTS = 256  # maximum number of sessions whose client is kept
_INFO = "io.modelcontextprotocol/clientInfo"
_INTRODUCES = ("initialize", "server/discover")


class HeldFrame(NamedTuple):
    """A held frame. Times are nanoseconds since the capture started."""

    number: int
    """The number by which the relay identifies it."""
    n: int
    """Its line number."""
    t: int
    """The time since which it is held."""
    gate: str
    """The name of the gate."""
    limit: int | None = None
    """When it is continued automatically; None if unknown."""
    awaited: bool = False
    """Whether the client waits for it, or for the answer to it."""
    gives_up: int | None = None
    """When the client times out; None if unknown."""

    def shifted(self, offset: int) -> "HeldFrame":
        """Return the same frame with its times shifted by an offset."""
        limit, gives_up = (None if t is None else t + offset for t in (self.limit, self.gives_up))
        return self._replace(t=self.t + offset, limit=limit, gives_up=gives_up)


class HeldTime(NamedTuple):
    """How long a frame has been held, in whole seconds."""

    seconds: int
    awaited: bool
    left: int | None
    """Seconds until the client times out; None if unknown."""


def held_time(held: HeldFrame, now: int) -> HeldTime:
    """Return how long a frame has been held, and how long the client still waits."""
    left = None if held.gives_up is None else max(held.gives_up - now, 0) // 10**9
    return HeldTime(max(now - held.t, 0) // 10**9, held.awaited, left)


class GatesInCapture:
    """The gates of one capture. Pass each record to `note` and each message to `learn`."""

    def __init__(self) -> None:
        self.acted: Counter[str] = Counter()
        """Gate name -> number of frames it acted on."""
        self.latest: dict[str, int] = {}
        """Gate name -> line number of the latest frame it acted on."""
        self.held: dict[int, HeldFrame] = {}
        """Line number -> frame that is held now, the oldest first."""
        self.answers: dict[str, int] = {}
        """Id of a request sent by a viewer -> line number of its response."""
        self._in_force: dict[str, tuple[dict[str, Any], ...]] = {}  # by origin: `file` or `viewer`
        self._lines: dict[int, int] = {}  # number of a held frame -> its line
        self._clients: dict[Session, str] = {}

    @property
    def in_force(self) -> list[tuple[dict[str, Any], str]]:
        """The compiled gates in force, each with its origin (`file` or `viewer`), once per name."""
        found = {str(gate.get("name")): (gate, by) for by in (VIEWER, "file") for gate in self._in_force.get(by, ())}
        return sorted(found.values(), key=lambda entry: entry[1])

    def note(self, record: Record) -> None:
        """Take a record; call it in the order of the file."""
        if isinstance(record, Frame):
            if record.by and record.by.startswith(GATE) and record.sender != "mcpspy":
                self._acted(record, record.by.removeprefix(GATE))
        elif isinstance(record, Release):
            self.held.pop(self._lines.pop(record.held, 0), None)
        elif isinstance(record, Gates):
            self._in_force[record.by] = record.gates
        elif isinstance(record, End):
            self.held.clear()
            self._in_force.clear()

    def _acted(self, frame: Frame, gate: str) -> None:
        self.acted[gate] += 1
        self.latest[gate] = frame.n
        if frame.held is not None:
            self._lines[frame.held] = frame.n
            times = [frame.t + time for each, _ in self.in_force if each.get("name") == gate for time in _waits(each)]
            self.held[frame.n] = HeldFrame(frame.held, frame.n, frame.t, gate, max(times, default=None))

    def learn(self, message: Message) -> None:
        """Take a message whose records were noted: it may introduce a client, be held, or answer a viewer."""
        body, frame = message.body, message.frame
        if isinstance(body, Request) and body.method in _INTRODUCES:
            if len(self._clients) >= _CLIENTS:
                del self._clients[next(iter(self._clients))]
            self._clients[message.session] = _client(message) or ""
        if frame.by is None:
            return
        if frame.by == VIEWER and frame.dropped and isinstance(body, Result | Error) and body.id:
            self.answers[body.id.token] = message.n
        held = self.held.get(message.n)
        if held and message.part == 0:
            self.held[message.n] = self._awaited(held, message)

    def _awaited(self, held: HeldFrame, message: Message) -> HeldFrame:
        """Return a held frame, completed with the waiting time of its client."""
        exchange = message.exchange
        if exchange is None or exchange.request.sender != "client":
            return held
        client = _client(exchange.request) or self._clients.get(message.session, "")
        return held._replace(awaited=True, gives_up=_gives_up(client, exchange.method, exchange.request))


def _waits(gate: dict[str, Any]) -> Iterator[int]:
    """Yield the longest time for which a gate can hold or delay a frame, in nanoseconds; nothing if it does neither."""
    action = gate.get("action")
    times = [action.get(key, 0) for key in ("hold", "delay")] if isinstance(action, dict) else []
    if times and all(isinstance(time, int) for time in times) and any(times):
        yield sum(times)


def _client(request: Message) -> str | None:
    """Return the client name in a request."""
    value = request.body.value if isinstance(request.body, Request) else None
    name = member(value, "params", "clientInfo", "name") or member(value, "params", "_meta", _INFO, "name")
    return name if isinstance(name, str) else None


def _gives_up(client: str, method: str, request: Message) -> int | None:
    """Return when a client times out on its request.

    For a stdio server, the time for `initialize` counts from the start of the server.
    """
    row = time_outs_of(client) if client else None
    if row and method == "tools/call" and row.call is not None:
        return request.t + round(row.call * 1e9)
    if row and method == "initialize" and row.begin is not None:
        return (request.t if request.http else 0) + round(row.begin * 1e9)
    return None


def breakpoint_text(method: str, name: str, sender: str) -> str:
    """Return the filter for frames with this method and name: `method:tools/call name:get_forecast from:client`."""
    terms = {"method": method, "name": name, "from": sender if sender in ("client", "server") else ""}
    return " ".join(f"{key}:{_value(text)}" for key, text in terms.items() if text)


def _value(text: str) -> str:
    """Return a text as the value of a filter term, quoted if necessary. A `?` stands for what cannot be shown."""
    if printable(text, len(text)) != text:
        return "".join(
            letter if letter.isascii() and (letter.isalnum() or letter in "-_./:$") else "?" for letter in text
        )
    plain = all(letter.isalnum() or letter in "-_./:$" for letter in text)
    if plain:
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def when_text(when: dict[str, Any]) -> str:
    """Return what a gate matches, for display, written as a filter as far as possible."""
    return " ".join(f"{key}:{_term(value)}" for key, value in when.items()) or "every frame"


def _term(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(it, str | dict) for it in value):
        return ",".join(map(_term, value))
    if isinstance(value, dict) and list(value) == ["is"]:
        return _value(str(value["is"]))
    return _value(value) if isinstance(value, str) and not {"*", "?"} & set(value) else _json(value)


def action_text(action: dict[str, Any]) -> str:
    """Return what a gate does, for display: `hold 60 s`, `delay 2 s, drop`."""
    return ", ".join(f"{key} {_ACTIONS.get(key, _json)(value)}".strip() for key, value in action.items())


def _json(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is True else json.dumps(value, ensure_ascii=False)


def _time(value: Any) -> str:
    return f"{value / 1e9:g} s" if isinstance(value, int) else _json(value)


_ACTIONS: dict[str, Callable[[Any], str]] = {"hold": _time, "delay": _time}
"""How the values of some actions are shown; the others are shown as JSON."""


HOLD = 60_000_000_000
"""How long a breakpoint holds a frame unless it is released earlier, in nanoseconds."""
_NAME = 40  # maximum length of a breakpoint name, in characters


@dataclass(slots=True)
class SetGate:
    """A gate set by this viewer."""

    name: str
    text: str
    """The filter as typed."""
    when: dict[str, Any]
    """The compiled filter."""
    on: bool = True

    def compiled(self) -> dict[str, Any]:
        """Return the gate in the form that the relay reads."""
        return {"name": self.name, "when": self.when, "action": {"hold": HOLD}}


class SessionControl:
    """Controls one session. Methods raise CaptureError if the live directory cannot be used."""

    def __init__(self, path: str, header: Header, seen: GatesInCapture, lives: Callable[[], bool]) -> None:
        """`lives` returns whether the relay of the capture at `path` is still running."""
        self.gates: list[SetGate] = []
        """The gates of this viewer, on or off."""
        self._path, self._header, self._seen, self._lives = path, header, seen, lives
        self._viewer: LiveViewer | None = None
        self._names: set[str] = set()  # names of all gates that were set here, also of removed ones

    @property
    def used(self) -> bool:
        """Whether this viewer has changed the session."""
        return self._viewer is not None

    def refusal(self) -> str | None:
        """Return why the session cannot be controlled, in one line; None if it can be."""
        header = self._header
        if header.imported:
            return f"{header.name} was imported from {header.imported.form}: only a running session can be controlled"
        if not self._lives():
            return f"{header.name} has ended: only a running session can be controlled"
        if not header.control:
            return f"{header.name} cannot be controlled: it runs with --no-control, or in an earlier mcpspy"
        return None

    def has_set(self, name: str) -> bool:
        """Return whether a gate with that name was set here, even if it was removed since."""
        return name in self._names

    def add(self, text: str, when: dict[str, Any]) -> SetGate:
        """Set a breakpoint for the frames that match a filter, given as text and compiled. Raises UsageError."""
        if any(gate.text == text for gate in self.gates):
            raise UsageError("there is such a breakpoint already")
        gate = SetGate(self._free(_subject(when) or text), text, when)
        self._set([*self.gates, gate])
        self._names.add(gate.name)
        return gate

    def _free(self, subject: str) -> str:
        """Return a name that no gate of the session uses yet."""
        start = f"break {subject}"[:_NAME]
        taken = {str(gate.get("name")) for gate, _ in self._seen.in_force} | self._names | set(self._seen.acted)
        number = next(number for number in range(1, len(taken) + 2) if _numbered(start, number) not in taken)
        return _numbered(start, number)

    def toggle(self, gate: SetGate) -> None:
        """Switch a gate off, or on again."""
        gate.on = not gate.on
        try:
            self._set(self.gates)
        except CaptureError:
            gate.on = not gate.on
            raise

    def remove(self, gate: SetGate) -> None:
        """Remove a gate."""
        self._set([it for it in self.gates if it is not gate])

    def _set(self, gates: list[SetGate]) -> None:
        self._live().set_gates([gate.compiled() for gate in gates if gate.on])
        self.gates = gates

    def release(self, held: HeldFrame, how: str, frame: str | None = None) -> None:
        """Release a held frame: continued, edited (`frame` is the new one), dropped, or answered (`frame` is it)."""
        self._live().release(held.number, how, frame)

    def send(self, frame: str, session: str | None) -> None:
        """Send a request of the viewer in the session with that id."""
        self._live().send(frame, session)

    def _live(self) -> LiveViewer:
        refused = self.refusal()
        if refused:
            raise CaptureError(refused)
        if self._viewer is None:
            self._viewer = LiveViewer(self._path, self._header.id)
        return self._viewer

    def close(self) -> None:
        """Release everything that the gates of this viewer hold, and remove them."""
        if self._viewer is None:
            return
        with suppress(CaptureError):  # the session has ended
            for held in self._seen.held.values():
                if held.gate in self._names and self._lives():
                    self._viewer.release(held.number, "continued")
        self._viewer.close()
        self._viewer, self.gates = None, []


def _subject(when: dict[str, Any]) -> str:
    """Return the subject of a gate in one word: the name or the method that it matches."""
    for key in ("name", "method"):
        wanted = when.get(key)
        if isinstance(wanted, list) and wanted:
            wanted = wanted[0]
        literal = wanted.get("is") if isinstance(wanted, dict) else wanted
        if isinstance(literal, str):
            return literal
    return ""


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name} {number}"
