"""A collector on loopback that parses requests with the official protocol buffers and counts spans."""

import gzip
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

REQUESTS = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
}


class Collector:
    """Listens on a free port while it is used as a context manager, and answers with `status`."""

    def __init__(self, port=0):
        self.status = 200
        self.largest = None  # limit of a request, in bytes
        self.answer = b""  # body and headers of each response
        self.headers = {}
        self.without = {}  # by path: the status with which it refuses a request
        self.spans, self.logs, self.metrics = [], [], {}
        self.resources = []
        self.came = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                request = REQUESTS[self.path].FromString(body)
                status = collector.without.get(self.path, collector.status)
                if collector.largest is not None and len(body) > collector.largest:
                    status = 413
                with collector.came:
                    if status == 200:
                        collector.take(request)
                    collector.came.notify_all()
                self.send_response(status)
                for name, value in ({"content-length": str(len(collector.answer))} | collector.headers).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(collector.answer)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def take(self, request):
        for name, value in request.ListFields():
            for resource in value:
                about = attributes(resource.resource.attributes)
                self.resources.append(about)
                if name.name == "resource_spans":
                    self.spans += [span for scope in resource.scope_spans for span in scope.spans]
                elif name.name == "resource_logs":
                    self.logs += [log for scope in resource.scope_logs for log in scope.log_records]
                else:
                    metrics = [metric for scope in resource.scope_metrics for metric in scope.metrics]
                    self.metrics |= {metric.name: metric for metric in metrics}

    def counts(self):
        """Return how often each span arrived."""
        return Counter(span.span_id for span in self.spans)

    def until(self, true, seconds=30):
        """Wait until a condition on the received telemetry is true."""
        with self.came:
            assert self.came.wait_for(true, seconds), (len(self.spans), len(self.logs))


def attributes(pairs):
    """Return attributes as a dictionary."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
