"""Records of sessions in which a gate has acted, over stdio, Streamable HTTP and HTTP+SSE.

You pass a `Wire` the messages of the peers and the acts of a gate; it writes the records that a gated relay would
write. In `gated`, `hold` is the time in seconds at which a held frame is released, and `how` is the `how` of its
release record.
"""

import json

from mcpspy.capture.format import written
from mcpspy.capture.records import Close, End, Frame, Gates, Open, Release
from tests.transcript import begin, finish

GATE = "gate g"
SECOND = 1_000_000_000
JSON, SSE = "application/json", "text/event-stream"


class Wire:
    """The parts that all transports share: line numbers, the clock, frames and releases."""

    def __init__(self, action=None):
        self.records = []
        self._later = []  # releases that are not due yet
        self._t = 0
        self._held = 0
        self._channels = 0
        if action:
            self._add(Gates, gates=({"name": "g", "when": {}, "action": {action: True}},), by="file")
        self.begin()

    def wait(self, seconds):
        """Advance the clock to that many seconds after the start."""
        self._t = max(self._t, round(seconds * SECOND))
        self._release()

    def client(self, message, **gated):
        """Send a message from the client."""
        raise NotImplementedError

    def server(self, message, *, of=None, **gated):
        """Send a message from the server; over HTTP, in the response to the POST of the request `of`."""
        raise NotImplementedError

    def _put(self, ch, message, *, render=lambda raw: raw, sender=None, hold=None, how=None, by=GATE, **gated):
        """Add a frame; a gate acted on it if `sent` (bytes, or None: dropped) or `hold` (seconds) is given."""
        fields = {}
        if sender:
            fields = {"sender": sender, "by": by}
        sent = gated.get("sent", ...)
        told = {} if sent is ... else {"dropped": True} if sent is None else {"sent": render(as_bytes(sent))}
        if hold is not None:
            self._held += 1
            fields = {"held": self._held, "by": by}
            self._later.append(
                (round(hold * SECOND), {"held": self._held, "how": how} | told | ({"by": by} if told else {}))
            )
        elif told:
            fields = {"by": by} | told
        self._add(Frame, ch=ch, raw=render(as_bytes(message)), **fields)

    def _release(self):
        for t, fields in sorted(self._later, key=lambda it: it[0]):
            if t <= self._t:
                self._add(Release, t=t, **fields)
        self._later = [it for it in self._later if it[0] > self._t]

    def _add(self, kind, *, t=None, **fields):
        if t is None:
            self._t += 1_000_000
            self._release()
        self.records.append(kind(n=len(self.records) + 2, t=self._t if t is None else t, **fields))

    def _channel(self):
        self._channels += 1
        return self._channels


class Stdio(Wire):
    """A session under `wrap`."""

    def begin(self):
        for ch, sender, role in ((1, "client", "stdin"), (2, "server", "stdout"), (3, "server", "stderr")):
            self._add(Open, ch=ch, sender=sender, role=role, framing="lines")

    def client(self, message, **gated):
        self._put(1, message, **gated)

    def server(self, message, *, of=None, **gated):
        self._put(2, message, **gated)

    def made(self, side, message, *, by=GATE, of=None):
        """Add a frame that mcpspy itself sends in place of a side."""
        self._put(1 if side == "client" else 2, message, sender="mcpspy", by=by)

    def close(self, side):
        """Close the stream of a side, as a gate does."""
        self._add(Close, ch=1 if side == "client" else 2, how="shutdown")

    def end(self, code=0, *, gone=False):
        """End the server: by itself if `gone`, else after its client."""
        if gone:
            self._add(Close, ch=2, how="exit")
        self._add(Close, ch=1, how="exit" if gone else "eof")
        if not gone:
            self._add(Close, ch=2, how="eof")
        self._add(End, code=code)


class Streamable(Wire):
    """A session under `proxy`, with an SSE response to each POST of a request."""

    session = "s1"
    version = "2025-06-18"

    def begin(self):
        self.streams = {}  # by request id: channel of the request, channel of its response once open

    def client(self, message, **gated):
        ch = self._post(message, **gated)
        if isinstance(message, dict) and "id" in message and "method" in message:
            self.streams[message["id"]] = [ch, None]
            if "sent" in gated and gated["sent"] is None and not gated.get("answered"):
                self._accepted(ch, "mcpspy")
        else:
            self._accepted(ch, "server")

    def server(self, message, *, of=None, **gated):
        self._put(self._stream(of), message, render=event, **gated)
        if isinstance(message, dict) and message.get("id") == of and "method" not in message and not gated.get("open"):
            self._add(Close, ch=self.streams.pop(of)[1], how="eof")

    def made(self, side, message, *, by=GATE, of=None, code=200):
        if side == "client":
            self.streams[message.get("id")] = [self._post(message, sender="mcpspy", by=by), None]
        elif self.streams[of][1] is None:
            head = {"status": code, "reason": "", "headers": [["content-type", JSON]]}
            ch = self._channel()
            self._add(
                Open, ch=ch, sender="mcpspy", role="response", framing="body", answers=self.streams[of][0], head=head
            )
            self._add(Frame, ch=ch, raw=as_bytes(message), by=by)
            self._add(Close, ch=ch, how="eof")
        else:
            self._put(self.streams[of][1], message, render=event, sender="mcpspy", by=by)

    def status(self, of, code):
        """Answer the POST of a request with a status, as a gate does."""
        head = {"status": code, "reason": "", "headers": []}
        ch = self._channel()
        self._add(Open, ch=ch, sender="mcpspy", role="response", framing="body", answers=self.streams.pop(of)[0],
                  head=head, by=GATE)  # fmt: skip
        self._add(Close, ch=ch, how="eof")

    def close(self, side, of=3):
        ch = self._stream(of) if side == "server" else None
        if ch:
            self._add(Close, ch=ch, how="reset")

    def end(self, code=0, *, gone=False):
        self._add(End)

    def _post(self, message, **gated):
        ch = self._channel()
        headers = [["accept", f"{JSON}, {SSE}"], ["content-type", JSON], ["host", "h"]]
        if not (isinstance(message, dict) and message.get("method") == "initialize"):
            headers += [["mcp-session-id", self.session], ["mcp-protocol-version", self.version]]
        head = {"method": "POST", "target": "/mcp", "version": "1.1", "headers": headers}
        self._add(Open, ch=ch, sender="client", role="request", framing="body", peer="127.0.0.1:5000", head=head)
        gated.pop("answered", None)
        self._put(ch, message, **gated)
        self._add(Close, ch=ch, how="eof")
        return ch

    def _accepted(self, asked, sender):
        ch = self._channel()
        head = {"status": 202, "reason": "Accepted", "headers": []}
        self._add(Open, ch=ch, sender=sender, role="response", framing="body", answers=asked, head=head)
        self._add(Close, ch=ch, how="eof")

    def _stream(self, of):
        asked, ch = self.streams[of]
        if ch is None:
            ch = self.streams[of][1] = self._channel()
            head = {"status": 200, "reason": "OK", "headers": [["content-type", SSE], ["mcp-session-id", self.session]]}
            self._add(Open, ch=ch, sender="server", role="response", framing="sse", answers=asked, head=head)
        return ch


class LegacySse(Streamable):
    """A session under `proxy` over HTTP+SSE (2024-11-05), with one stream."""

    def begin(self):
        self.streams = {}
        asked = self._channel()
        head = {"method": "GET", "target": "/sse", "version": "1.1", "headers": [["accept", SSE], ["host", "h"]]}
        self._add(Open, ch=asked, sender="client", role="request", framing="body", peer="127.0.0.1:5000", head=head)
        self._add(Close, ch=asked, how="eof")
        self._events = self._channel()
        head = {"status": 200, "reason": "OK", "headers": [["content-type", SSE]]}
        self._add(Open, ch=self._events, sender="server", role="response", framing="sse", answers=asked, head=head)
        self._add(Frame, ch=self._events, raw=b"event: endpoint\ndata: /messages?session_id=1\n")

    def client(self, message, **gated):
        ours = "sent" in gated and gated["sent"] is None
        self._accepted(self._post(message, **gated), "mcpspy" if ours else "server")

    def server(self, message, *, of=None, **gated):
        gated.pop("open", None)
        self._put(self._events, message, render=event, **gated)

    def made(self, side, message, *, by=GATE, of=None):
        if side == "client":
            self._accepted(self._post(message, sender="mcpspy", by=by), "server")
        else:
            self._put(self._events, message, render=event, sender="mcpspy", by=by)

    def close(self, side, of=3):
        if side == "server":
            self._add(Close, ch=self._events, how="reset")

    def _post(self, message, **gated):
        ch = self._channel()
        headers = [["accept", "*/*"], ["content-type", JSON], ["host", "h"]]
        head = {"method": "POST", "target": "/messages?session_id=1", "version": "1.1", "headers": headers}
        self._add(Open, ch=ch, sender="client", role="request", framing="body", peer="127.0.0.1:5000", head=head)
        gated.pop("answered", None)
        self._put(ch, message, **gated)
        self._add(Close, ch=ch, how="eof")
        return ch


def save(wire, path):
    """Write the records of a session into a capture and return its path."""
    writer = begin(path, transport="stdio" if isinstance(wire, Stdio) else "http")
    for it in sorted(wire.records, key=lambda record: record.n):
        if isinstance(it, Open):
            rest = {"answers": it.answers, "peer": it.peer, "head": it.head, "by": it.by}
            writer.open(it.ch, it.t, it.sender, it.role, it.framing, {key: rest[key] for key in rest if rest[key]})
        elif isinstance(it, Frame):
            rest = {"from": it.sender, "by": it.by, "held": it.held}
            writer.frame(it.ch, it.t, it.raw, False, it.cut, {key: rest[key] for key in rest if rest[key]} | _sent(it))
        elif isinstance(it, Release):
            writer.release(it.t, it.held, it.how, ({"by": it.by} if it.by else {}) | _sent(it))
        elif isinstance(it, Gates):
            writer.gates(it.t, list(it.gates), it.by)
        elif isinstance(it, Close):
            writer.close(it.ch, it.t, it.how)
    finish(writer, wire.records[-1].t)
    return str(path)


def _sent(record):
    return written({"sent": record.sent} if record.dropped or record.sent is not None else {})


TRANSPORTS = {"stdio": Stdio, "http": Streamable, "sse": LegacySse}


def event(raw):
    """Return a message as an SSE event, without the blank line."""
    return b"event: message\ndata: " + raw + b"\n"


def as_bytes(message):
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def notification(method, **params):
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(number, **members):
    return {"jsonrpc": "2.0", "id": number, "result": members}


def error(number, code=-32603, message="failed"):
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
