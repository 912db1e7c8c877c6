"""Arize Phoenix accepts the spans of every golden capture and shows each of them once (field).

tests/cli/test_otel.py tests the same with the collector of the tests.
"""

import os
import sys
from datetime import UTC, datetime
from signal import SIGKILL
from subprocess import PIPE
from threading import Event
from urllib.request import Request, urlopen

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.telemetry.captured import CapturedTelemetry
from mcpspy.telemetry.spans import ExchangeSpan, start_of
from mcpspy.timeline import final_rows
from tests import backends, limits
from tests.telemetry.collector import Collector
from tests.timelines import CAPTURES
from tests.transcript import capture

pytestmark = [pytest.mark.field, pytest.mark.timeout(backends.SECONDS)]
PATHS = sorted(str(path) for path in CAPTURES.glob("*.jsonl"))


@pytest.fixture
def phoenix(tmp_path):
    with backends.phoenix(tmp_path) as found:
        yield found


class Forwarder(Collector):
    """Forwards spans to a backend. After `last` batches, it kills the client before the client receives the answer."""

    def __init__(self, backend, last):
        super().__init__()
        self.backend, self.last = backend, last
        self.batches = 0
        self.client, self.started = None, Event()

    def take(self, request):
        super().take(request)
        content = {"Content-Type": "application/x-protobuf"}
        passed_on = Request(f"{self.backend}/v1/traces", request.SerializeToString(), content)  # noqa: S310 (our own)
        with urlopen(passed_on, timeout=60):  # noqa: S310
            self.batches += 1
        if self.batches == self.last:
            assert self.started.wait(60)
            self.client.kill()
            self.client.wait()


def otel(home, endpoint, *words, **variables):
    """Start `mcpspy otel` with its checkpoints in `home`."""
    command = [sys.executable, "-m", "mcpspy", "otel", *map(str, words), "--endpoint", endpoint]
    return limits.Popen(command, env=os.environ | {"HOME": str(home)} | variables, stdout=PIPE, stderr=PIPE, text=True)


def sent(*arguments, **variables):
    """Run `mcpspy otel` and return its output."""
    with otel(*arguments, **variables) as process:
        out, err = process.communicate()
        assert process.returncode == 0, err
        return out


def settled(phoenix, tmp_path, wanted):
    """Wait until Phoenix has stored the wanted spans and one span that is sent after them; return the earlier spans."""
    backends.until(lambda: phoenix.spans().keys() >= wanted)
    last = capture(tmp_path / f"{len(os.listdir(tmp_path))}.jsonl", "> 1 ping\n< 1 = {}")
    sent(tmp_path / "last", phoenix.url, last)
    ((place, _),) = expected(last).items()
    backends.until(lambda: place in phoenix.spans())
    found = phoenix.spans()
    del found[place]
    return found


def expected(path):
    """Return the spans of a capture by trace and span id, each as Phoenix shows it."""
    header = Capture(path).header
    telemetry = CapturedTelemetry(header, str, lambda _: {})
    spans = [*telemetry.feed(Capture(path).records()), *telemetry.end()]
    return {
        (span.context.trace.hex(), span.context.span.hex()): {
            "name": span.name,
            "parent_id": span.parent.span.hex() if span.parent else None,
            "start_time": moment(start_of(header) + span.start),
            "end_time": moment(start_of(header) + span.end),
            "status_code": "UNSET" if span.error is None else "ERROR",
            "status_message": span.error or "",
            "attributes": span.attributes,
            "events": [(event.name, moment(start_of(header) + event.t), event.attributes) for event in span.events],
        }
        for span in spans
        if isinstance(span, ExchangeSpan)
    }


def moment(nanoseconds):
    """Return a time as Phoenix computes it: with a float, so the last digit may differ."""
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC)


def shown(span, like):
    """Return a span of Phoenix without the fields that Phoenix adds."""
    found = {name: span[name] for name in like}
    for name in ("start_time", "end_time"):
        found[name] = datetime.fromisoformat(span[name])
    found["attributes"] = {name: value for name, value in span["attributes"].items() if name in like["attributes"]}
    found["events"] = [
        (event["name"], datetime.fromisoformat(event["timestamp"]), event["attributes"]) for event in span["events"]
    ]
    return found


def test_each_exchange_is_one_span_after_a_kill_in_the_middle_and_two_runs(phoenix, tmp_path):
    """T-03, T-04: a batch that was accepted but not saved in the checkpoint is sent again."""
    wanted = {place: span for path in PATHS for place, span in expected(path).items()}
    with Forwarder(phoenix.url, last=len(PATHS) // 2) as forwarder:
        quiet = {"OTEL_LOGS_EXPORTER": "none"}
        with otel(tmp_path, forwarder.url, CAPTURES, **quiet) as forwarder.client:
            forwarder.started.set()
            assert forwarder.client.wait() == -SIGKILL
        before = len(forwarder.spans)
        assert 0 < before < len(wanted)
        assert sent(tmp_path, forwarder.url, CAPTURES, **quiet).startswith("sent ")
        assert sent(tmp_path, forwarder.url, CAPTURES, **quiet) == "sent 0 spans and 0 log records\n"
        counts = forwarder.counts()
    assert len(counts) == len(wanted) < sum(counts.values())
    found = settled(phoenix, tmp_path, wanted.keys())
    assert found.keys() == wanted.keys()
    assert {place: shown(span, wanted[place]) for place, span in found.items()} == wanted
    for path in PATHS:
        rows = final_rows(Capture(path).records, live=False)
        requests = sorted((row.n, row.method) for row in rows if row.kind == "request")
        about = (found[place]["attributes"] for place in expected(path))
        assert sorted((it["mcpspy.frame"], it["mcp.method.name"]) for it in about) == requests


def test_a_span_that_comes_again_changes_nothing(phoenix, tmp_path):
    """Not even if it then has more attributes."""
    wanted = {place for path in PATHS for place in expected(path)}
    assert sent(tmp_path / "a", phoenix.url, CAPTURES).startswith(f"sent {len(wanted)} spans")
    before = settled(phoenix, tmp_path, wanted)
    assert sent(tmp_path / "b", phoenix.url, CAPTURES, "--content").startswith(f"sent {len(wanted)} spans")
    after = settled(phoenix, tmp_path, wanted)
    assert before.items() <= after.items()
    assert len(after) == len(before) + 1  # the extra span of the earlier `settled`
