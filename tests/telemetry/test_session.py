"""The reasons why a collector did not accept telemetry, in one sentence each."""

import socket
from contextlib import closing

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from mcpspy.telemetry.followed import Batch
from mcpspy.telemetry.logs import LogEntry
from mcpspy.telemetry.sender import Sender
from mcpspy.telemetry.session import CollectorSession, NotTaken
from tests.ports import free
from tests.telemetry.collector import Collector
from tests.telemetry.test_sender import RESOURCE, SPAN, STARTED

BATCH = Batch([SPAN], [], [])


@pytest.fixture
def collector():
    with Collector() as found:
        yield found


def failure(url, told=None):
    """Send a batch and return the reason of the failure."""
    report = [].append if told is None else told.append
    with closing(Sender(url, report, metrics=False)) as sender:
        return sender.send(BATCH, RESOURCE, STARTED)


@pytest.mark.parametrize(
    ("status", "reason"), [(400, "Bad Request"), (401, "Unauthorized"), (500, "Internal Server Error")]
)
def test_a_status_of_failure(collector, status, reason):
    collector.status = status
    assert failure(collector.url) == f"the collector answers with status {status} ({reason})"


def test_a_status_after_which_to_try_again_later_than_the_time_out(collector):
    collector.status, collector.headers = 429, {"retry-after": "3600"}
    assert failure(collector.url) == "the collector answers with status 429 (Too Many Requests)"


def test_a_redirection_and_a_web_page_are_no_success(collector):
    collector.status, collector.headers = 302, {"location": "/login"}
    assert "a redirection (status 302)" in failure(collector.url)
    collector.status, collector.answer, collector.headers = 200, b"<html>", {"content-type": "text/html; charset=utf-8"}
    assert failure(collector.url).startswith("the response is a web page")


def test_nobody_or_somebody_else_listens():
    assert failure(f"http://127.0.0.1:{free()}") == "the collector cannot be reached: Connection refused"
    assert "is not a valid URL" in failure("localhost:4318")
    assert "is not a valid URL" in failure("ftp://localhost")
    with Collector() as plain:
        assert "cannot be reached over TLS" in failure(plain.url.replace("http:", "https:"))


def test_a_server_that_accepts_and_never_answers(monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.2")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "does not answer in time" in failure(url)
        with pytest.raises(NotTaken, match="in time"):
            CollectorSession(print).request("POST", url, timeout=0.1)


def test_what_a_collector_rejects_is_reported_once_and_not_sent_again(collector):
    answer = ExportTraceServiceResponse()
    answer.partial_success.rejected_spans, answer.partial_success.error_message = 1, "too \x1b[31mold"
    collector.answer, collector.headers = answer.SerializeToString(), {"content-type": "application/x-protobuf"}
    told = []
    with closing(Sender(collector.url, told.append, metrics=False)) as sender:
        for _ in range(2):
            assert sender.send(Batch([SPAN], [LogEntry(7, "slow", "mcp.log")], []), RESOURCE, STARTED) is None
    assert len(told) == 2  # one for spans, one for logs
    assert told[0].startswith("the collector rejected 1 of what was sent: too ")
    assert "\x1b" not in told[0]


def test_an_answer_that_is_no_protocol_buffer_is_a_success(collector):
    collector.answer, collector.headers = b"\xff\xff", {"content-type": "application/x-protobuf"}
    assert failure(collector.url) is None
