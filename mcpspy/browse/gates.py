"""The gates of a session, read from its capture: which are in force, how often each acted, which frames are held now.

A relay records the gates in force, what a gate did to a frame, and how a held frame was released. So the capture is the
only source that a viewer needs. `note` takes records in the order of the file, because a person waits for held frames
and sorting by time would delay them. `learn` takes messages, which refer to their request and their session; this shows
how long the client still waits.

A session without active gates costs nothing here: only records made by a gate are kept.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from mcpspy.capture.format import VIEWER
from mcpspy.capture.records import End, Frame, Gates, Record, Release
from mcpspy.conversation.model import Message, Session
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
