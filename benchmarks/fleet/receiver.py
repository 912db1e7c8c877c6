"""A collector that counts: a separate program that listens on a port and writes what it received to a file.

    python receiver.py PORT FILE        PORT 0: any free port; the port is printed

It writes one line of JSON for each request with spans: time of receipt, size, and id and end of each span. The line is
written before the request is answered. SIGTERM ends the program between two requests, so each request in the file has
been answered.
"""

import gzip
import json
import os
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACES = "/v1/traces"


def main() -> None:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # in all threads, so that `sigwait` receives it
    port, path = int(sys.argv[1]), sys.argv[2]
    answering = threading.Lock()
    with open(path, "a", encoding="utf-8") as notes:

        def note(**fields: object) -> None:
            notes.write(json.dumps({"t": time.time_ns()} | fields) + "\n")
            notes.flush()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers["content-length"]))
                with answering:
                    if self.path == TRACES:
                        note(size=len(sent), spans=_spans(self._decoded(sent)))
                    self.send_response(200)
                    self.send_header("content-length", "0")
                    self.end_headers()

            def _decoded(self, sent: bytes) -> bytes:
                return gzip.decompress(sent) if self.headers.get("content-encoding") == "gzip" else sent

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        note(listens=True)
        print(server.server_port, flush=True)
        signal.sigwait([signal.SIGTERM])
        with answering:
            note(listens=False)
            os._exit(0)


def _spans(body: bytes) -> list[tuple[str, int]]:
    """Return id and end, in nanoseconds since the epoch, of each span in a request."""
    request = ExportTraceServiceRequest.FromString(body)
    return [
        (span.span_id.hex(), span.end_time_unix_nano)
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


if __name__ == "__main__":
    main()
