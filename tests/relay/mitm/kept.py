"""An origin whose capture is in a directory of the test, and flows for it."""

from mcpspy.recording.recording import Recording
from mcpspy.relay.mitm.flow import Flow, Origin
from tests.capture.test_reader import decode

CALL = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
JSON = [(b"Content-Type", b"application/json")]
EVENTS = [(b"Content-Type", b"text/event-stream")]


class Kept:
    """An origin, and the captures that its flows create."""

    def __init__(self, folder):
        self.folder = folder
        self.said = []
        self.origin = Origin("https://h", self.begin)

    def begin(self, url, clock):
        recording = Recording(self.said.append, clock)
        recording.begin("mitm", "h", url=url, folder=str(self.folder))
        return recording

    def flow(self, *headers, method="POST", target="/mcp"):
        head = {"method": method, "target": target, "version": "1.1"}
        flow = Flow(self.origin, head, list(headers), "127.0.0.1:1", self.said.append)
        flow.open_request()
        return flow

    def records(self, kind=object):
        found = [record for path in self.folder.glob("*.jsonl") for record in decode(path.read_bytes())]
        return [record for record in found if isinstance(record, kind)]


def pass_through(flow, body, headers, *chunks, status=200):
    """Feed a flow one request and its response, up to the end."""
    now = flow.origin.now
    if body:
        flow.request.feed(body, now())
    flow.request_ended(now())
    answer = flow.respond(now(), status, "OK", headers)
    for chunk in chunks:
        answer.feed(chunk, now())
    flow.response_ended(now(), switch=False)
    assert flow.over
