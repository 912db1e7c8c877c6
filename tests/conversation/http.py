"""HTTP sessions as records, so that a test reads like the session."""

import json
from itertools import count

from mcpspy.capture.records import Close, Frame, Open
from mcpspy.conversation.conversation import Conversation

JSON, SSE = "application/json", "text/event-stream"


class Exchange:
    """Writes the records of one capture in the order of the calls; each record is a millisecond after the last."""

    def __init__(self):
        self.records = []
        self._channels = count(1)
        self._t = 0

    def ask(self, message=None, *, method="POST", target="/mcp", peer="127.0.0.1:5000", **headers):
        """Add a request with or without a body; return its channel."""
        ch = next(self._channels)
        fields = {"accept": f"{JSON}, {SSE}", "content-type": JSON} if message is not None else {"accept": SSE}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        given = [[*pair] for pair in fields.items() if pair[1] is not None]
        head = {"method": method, "target": target, "version": "1.1", "headers": given}
        self._add(Open, ch, sender="client", role="request", framing="body", peer=peer, head=head)
        if message is not None:
            self._frame(ch, message)
        self._add(Close, ch, how="eof")
        return ch

    def answer(self, asked, message=None, *, status=200, kind=JSON, end=True, **headers):
        """Add a response to the request on channel `asked`, with or without a body; return its channel."""
        ch = next(self._channels)
        fields = {"content-type": kind} if kind else {}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = {"status": status, "reason": "", "headers": [[*pair] for pair in fields.items()]}
        framing = "sse" if kind == SSE else "body"
        self._add(Open, ch, sender="server", role="response", framing=framing, answers=asked, head=head)
        if message is not None:
            self._frame(ch, message)
        if end:
            self._add(Close, ch, how="eof")
        return ch

    def unanswered(self, asked):
        """Add the record of a missing response to the request on channel `asked`, whose client left early."""
        ch = next(self._channels)
        self._add(Open, ch, sender="server", role="response", framing="body", answers=asked)
        return ch

    def event(self, ch, message=None, raw=None):
        """Add an SSE event on an open stream."""
        self._frame(ch, raw if raw is not None else b"event: message\ndata: " + _bytes(message) + b"\n")

    def close(self, ch, how="eof", reason=None):
        self._add(Close, ch, how=how, reason=reason)

    def wait(self, t):
        """Advance the clock to `t` nanoseconds after the start."""
        self._t = max(self._t, t)

    def websocket(self, peer="127.0.0.1:6000"):
        """Add an upgrade; return the channels of the client and of the server."""
        asked = self.ask(method="GET", target="/ws", peer=peer, upgrade="websocket")
        self.answer(asked, status=101, kind=None)
        both = []
        for sender in ("client", "server"):
            both.append(next(self._channels))
            self._add(Open, both[-1], sender=sender, role="ws", framing="message", answers=asked)
        return both

    def say(self, ch, message, op=None):
        """Add a WebSocket message."""
        self._frame(ch, message, op=op)

    def events(self):
        conversation = Conversation()
        return [event for record in self.records for event in conversation.feed(record)]

    def _frame(self, ch, message, **more):
        self._add(Frame, ch, raw=_bytes(message), **more)

    def _add(self, kind, ch, **fields):
        self._t += 1_000_000
        self.records.append(kind(n=len(self.records) + 2, ch=ch, t=self._t, **fields))


def _bytes(message):
    return message if isinstance(message, bytes) else json.dumps(message).encode()


def request(number, method, **params):
    return {"jsonrpc": "2.0", "id": number, "method": method} | ({"params": params} if params else {})


def result(number, **members):
    return {"jsonrpc": "2.0", "id": number, "result": members}
