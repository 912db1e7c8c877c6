"""What is sent to a collector, and in one sentence why it did not accept it."""

import socket
from contextlib import closing
from dataclasses import replace
from socket import gethostname

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from mcpspy.telemetry.captured import BUCKETS, BYTES, OPERATIONS, LogEntry, Measure
from mcpspy.telemetry.followed import Batch
from mcpspy.telemetry.sender import CollectorSession, NotTaken, Sender
from mcpspy.telemetry.spans import ExchangeSpan, SpanEvent, TraceContext
from tests.network.scripted_proxy import forwarding
from tests.ports import free
from tests.telemetry.collector import Collector, attributes

STARTED = 1_764_000_000_000_000_000
CONTEXT, PARENT, LINK = (TraceContext(bytes([n]) * 16, bytes([n]) * 8) for n in (1, 2, 3))
SPAN = ExchangeSpan(
    5, 0, CONTEXT, "tools/call a", 10, 30, {"mcp.method.name": "tools/call", "server.port": 80}, PARENT, LINK,
    [SpanEvent("progress", 20, {"mcpspy.progress": 0.5})], "no such city",
)  # fmt: skip
RESOURCE = {"mcpspy.server": "weather"}


@pytest.fixture
def collector():
    with Collector() as found:
        yield found


def send(collector, batch, *, metrics=False):
    with closing(Sender(collector.url, print, metrics=metrics)) as sender:
        taken = sender.send(batch, RESOURCE, STARTED) is None
        sender.measure(batch, RESOURCE)
    return taken


def test_a_span_arrives_as_it_is(collector):
    assert send(collector, Batch([SPAN], [], []))
    (span,) = collector.spans
    assert (span.name, span.kind) == ("tools/call a", span.SPAN_KIND_CLIENT)
    assert (span.trace_id, span.span_id, span.parent_span_id) == (CONTEXT.trace, CONTEXT.span, PARENT.span)
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (STARTED + 10, STARTED + 30)
    assert attributes(span.attributes) == SPAN.attributes
    assert (span.status.code, span.status.message) == (span.status.STATUS_CODE_ERROR, "no such city")
    assert [(link.trace_id, link.span_id) for link in span.links] == [(LINK.trace, LINK.span)]
    (event,) = span.events
    assert (event.name, event.time_unix_nano, attributes(event.attributes)) == (
        "progress", STARTED + 20, {"mcpspy.progress": 0.5},
    )  # fmt: skip
    assert collector.resources[0]["mcpspy.server"] == "weather"
    assert collector.resources[0]["service.name"] == "mcpspy"


def test_a_span_without_a_failure_has_no_status(collector):
    ok = ExchangeSpan(5, 0, CONTEXT, "ping", 10, 30, {})
    assert send(collector, Batch([ok], [], []))
    (span,) = collector.spans
    assert (span.status.code, span.parent_span_id, len(span.links)) == (span.status.STATUS_CODE_UNSET, b"", 0)


def test_a_log_entry_arrives_with_its_span(collector):
    entry = LogEntry(7, "slow", "mcp.log", 13, "warning", CONTEXT, {"mcpspy.frame": 5})
    assert send(collector, Batch([], [entry, LogEntry(8, "up", "mcpspy.stderr")], []))
    log, plain = collector.logs
    assert (log.body.string_value, log.severity_number, log.severity_text) == ("slow", 13, "warning")
    assert (log.trace_id, log.span_id, log.event_name) == (CONTEXT.trace, CONTEXT.span, "mcp.log")
    assert log.time_unix_nano == STARTED + 7
    assert attributes(log.attributes) == {"mcpspy.frame": 5}
    assert (plain.trace_id, plain.severity_number) == (b"", 0)


def test_measures_are_histograms_with_the_buckets_of_the_conventions_and_counters(collector):
    measures = [Measure(OPERATIONS[0], 0.3, {"mcp.method.name": "ping"}), Measure(BYTES, 40), Measure(BYTES, 2)]
    assert send(collector, Batch([], [], measures), metrics=True)
    (point,) = collector.metrics[OPERATIONS[0]].histogram.data_points
    assert (tuple(point.explicit_bounds), point.count, point.sum) == (BUCKETS, 1, 0.3)
    assert attributes(point.attributes) == {"mcp.method.name": "ping", "mcpspy.server": "weather"}
    assert collector.metrics[OPERATIONS[0]].unit == "s"
    (total,) = collector.metrics[BYTES].sum.data_points
    assert (total.as_int or total.as_double) == 42


def test_a_batch_that_the_collector_refuses_is_not_taken(collector):
    collector.status = 400
    assert not send(collector, Batch([SPAN], [], []))
    assert not send(collector, Batch([], [LogEntry(7, "slow", "mcp.log")], []))
    assert not collector.spans


def test_a_collector_that_has_no_place_for_logs_gets_the_spans_alone(collector):
    """Phoenix answers with 405."""
    told = []
    collector.without = {"/v1/logs": 405}
    batch = Batch([SPAN], [LogEntry(7, "slow", "mcp.log")], [])
    with closing(Sender(collector.url, told.append, metrics=False)) as sender:
        assert sender.send(batch, RESOURCE, STARTED) is None
        assert sender.send(Batch([], [LogEntry(8, "slow", "mcp.log")], []), RESOURCE, STARTED) is None
    assert len(collector.spans) == 1
    assert told == ["the collector accepts no logs (status 405); only spans are sent"]


def test_spans_that_were_taken_are_not_sent_again_for_the_sake_of_logs(collector):
    """T-04."""
    collector.without = {"/v1/logs": 400}
    batch = Batch([SPAN], [LogEntry(7, "slow", "mcp.log")], [])
    with closing(Sender(collector.url, print, metrics=False)) as sender:
        assert sender.send(batch, RESOURCE, STARTED) == "the collector answers with status 400 (Bad Request)"
        collector.without = {}
        assert sender.send(batch, RESOURCE, STARTED) is None
    assert (len(collector.spans), len(collector.logs)) == (1, 1)


def test_logs_can_be_turned_off_as_the_sdk_has_it(collector, monkeypatch):
    monkeypatch.setenv("OTEL_LOGS_EXPORTER", "none")
    assert send(collector, Batch([SPAN], [LogEntry(7, "slow", "mcp.log")], []))
    assert (len(collector.spans), len(collector.logs)) == (1, 0)


def test_whatever_a_peer_sends_can_be_sent(collector):
    """Lone surrogates and large numbers must not block later telemetry."""
    odd = {"gen_ai.tool.name": "a\ud800", "mcpspy.frame": 1 << 70}
    events = [SpanEvent("progress", 20, {"mcpspy.progress": 10**400, "mcpspy.progress.message": "\udfff"})]
    span = ExchangeSpan(5, 0, CONTEXT, "tools/call a\ud800", 10, 30, odd, None, None, events, "\ud800")
    entry = LogEntry(7, "\ud800", "mcp.log", attributes={"mcp.logger": "\udfff"})
    measure = Measure(OPERATIONS[0], 0.3, {"gen_ai.tool.name": "\ud800"})
    assert send(collector, Batch([span], [entry], [measure]), metrics=True)
    assert (len(collector.spans), len(collector.logs), len(collector.metrics)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("name", "value"), [("OTEL_SERVICE_NAME", "fleet"), ("OTEL_RESOURCE_ATTRIBUTES", "service.name=fleet,team=a")]
)
def test_the_service_can_be_named_as_the_sdk_has_it(collector, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert send(collector, Batch([SPAN], [], []))
    assert collector.resources[0]["service.name"] == "fleet"


def test_a_request_that_is_too_large_goes_in_portions(collector):
    told, spans = [], [replace(SPAN, context=TraceContext(bytes([n]) * 16, bytes([n]) * 8)) for n in range(1, 10)]
    spans[4].attributes = {"large": "x" * 5000}
    collector.largest = 3000
    with closing(Sender(collector.url, told.append, metrics=False)) as sender:
        assert sender.send(Batch(spans, [], []), RESOURCE, STARTED) is None
    assert sorted(span.span_id[0] for span in collector.spans) == [1, 2, 3, 4, 6, 7, 8, 9]
    assert told == ["one span or log record was left out: the collector rejects it as too large"]


def test_times_that_no_field_holds_are_the_nearest_that_it_does(collector):
    late = replace(SPAN, start=-(10**30), end=10**30, events=[SpanEvent("progress", 10**30, {})])
    assert send(collector, Batch([late], [LogEntry(10**30, "slow", "mcp.log")], []))
    assert (collector.spans[0].start_time_unix_nano, collector.spans[0].end_time_unix_nano) == (0, (1 << 63) - 1)


def test_a_tracestate_goes_on(collector):
    assert send(collector, Batch([replace(SPAN, context=replace(CONTEXT, state="a=1,b=2"))], [], []))
    assert collector.spans[0].trace_state == "a=1,b=2"


def test_the_resource_names_the_host_unless_the_user_does(collector, monkeypatch):
    assert send(collector, Batch([SPAN], [], []))
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "host.name=build-7,service.instance.id=x")
    assert send(collector, Batch([SPAN], [], []))
    assert collector.resources[0]["host.name"] == gethostname()
    assert (collector.resources[1]["host.name"], collector.resources[1]["service.instance.id"]) == ("build-7", "x")


BATCH = Batch([SPAN], [], [])


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


def test_a_collector_is_reached_through_the_proxy_of_the_variables(collector, monkeypatch):
    """Also with a login that is not in ISO 8859-1, and never for a collector on this machine."""
    url = collector.url.replace("127.0.0.1", "collector.test")
    port = int(collector.url.rpartition(":")[2])
    with forwarding(port, login="bob:p@ß €") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//bob:p%40%C3%9F%20%E2%82%AC@"))
        assert failure(url) is None
        assert b"POST http://collector.test:" in proxy.heads[0]
        assert failure(collector.url) is None
        assert len(proxy.heads) == 1
        for name, scheme in (("HTTP_PROXY", "http:"), ("HTTPS_PROXY", "https:")):
            monkeypatch.setenv(name, proxy.url)
            assert failure(url.replace("http:", scheme)).startswith(
                f"the collector cannot be reached through the proxy {proxy.url} ({name}): it requires a user and a"
            )
    monkeypatch.setenv("HTTP_PROXY", "http://bob:hunter2@127.0.0.1:1")
    assert failure(url) == (
        "the collector cannot be reached through the proxy http://127.0.0.1:1 (HTTP_PROXY): connection refused; correct"
        " HTTP_PROXY, or put collector.test into no_proxy to reach it directly"
    )
    monkeypatch.setenv("HTTP_PROXY", "socks5://bob:hunter2@127.0.0.1:1")
    assert failure(url).startswith("HTTP_PROXY is a SOCKS proxy")


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
