"""Both sides of the session in `mem0.txt`, over HTTP+SSE: `mem0.py` is the server, `mem0.py URL` the client.

The server prints its port. Each side exits with an error if it receives a message that is not in the script.
"""

import http.client
import itertools
import os
import queue
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

SESSION = b"0f3a9c51d2b84e67a1c09f6e5d7b8a42"
ENDPOINT = b"event: endpoint\r\ndata: /messages/?session_id=%b\r\n\r\n" % SESSION
PING = b": ping - 2025-03-12 08:16:23.071429+00:00\r\n\r\n"
STREAM = (
    b"HTTP/1.1 200 OK\r\ndate: Wed, 12 Mar 2025 08:16:08 GMT\r\nserver: uvicorn\r\ncache-control: no-store\r\n"
    b"connection: keep-alive\r\nx-accel-buffering: no\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nserver: uvicorn\r\ncontent-length: 8\r\n\r\nAccepted"
REFUSED = b"HTTP/1.1 405 Method Not Allowed\r\nserver: uvicorn\r\nallow: GET, HEAD\r\ncontent-length: 0\r\n\r\n"


def exchanges():
    """Yield the client's messages, each with the server's answer or None, as bytes."""
    with open(os.path.join(os.path.dirname(os.path.realpath(__file__)), "mem0.txt"), "rb") as script:
        lines = [line.rstrip(b"\n").partition(b" ")[::2] for line in script if line[:1] in (b">", b"<")]
    for (mark, said), (after, answer) in itertools.pairwise([*lines, (b">", b"")]):
        if mark == b">":
            yield said, answer if after == b"<" else None


def message(answer):
    """Return an answer as an SSE event."""
    return b"event: message\r\ndata: %b\r\n\r\n" % answer


class Handler(BaseHTTPRequestHandler):
    """The server, for one session after the other."""

    protocol_version = "HTTP/1.1"
    events = left = None  # of the session: events to send, rest of the script

    def do_GET(self):
        Handler.left = exchanges()
        Handler.events = events = queue.SimpleQueue()
        self.wfile.write(STREAM)
        event = ENDPOINT
        while True:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            event = events.get()

    def do_POST(self):
        heard = self.rfile.read(int(self.headers["content-length"]))
        if not self.path.startswith("/messages/"):  # a client's probe for Streamable HTTP
            self.wfile.write(REFUSED)
            return
        expected, answer = next(self.left)
        if heard != expected:
            os.write(2, b"heard %b instead of %b\n" % (heard, expected))
            os._exit(1)
        self.wfile.write(ACCEPTED)
        if answer:
            self.events.put(PING)
            self.events.put(message(answer))

    def log_request(self, *_):
        pass


def serve():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


def dial(url):
    """Run the client against the server at `url`."""
    there = urlsplit(url)
    listener, poster = (http.client.HTTPConnection(there.hostname, there.port) for _ in range(2))
    listener.request("GET", there.path, headers={"Accept": "text/event-stream", "Cache-Control": "no-cache"})
    stream = listener.getresponse()
    told = heard(stream)
    endpoint = next(told)
    for said, answer in exchanges():
        poster.request("POST", endpoint, said, {"Content-Type": "application/json"})
        response = poster.getresponse()
        response.read()
        if response.status != 202:
            sys.exit(f"{said} was answered by {response.status}")
        if answer and (event := next(told)) != answer.decode():
            sys.exit(f"heard {event} instead of {answer.decode()}")


def heard(stream):
    """Yield the data of a stream's events."""
    for line in stream:
        if line.startswith(b"data: "):
            yield line.removeprefix(b"data: ").decode().rstrip("\r\n")


if __name__ == "__main__":
    dial(sys.argv[1]) if sys.argv[1:] else serve()
