"""`mcpspy otel` as a process, with a collector on loopback."""

import os
import signal
import sys

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.timeline import final_rows
from tests.cli.conftest import refusal
from tests.peers import warm
from tests.ports import free
from tests.telemetry.collector import Collector, attributes
from tests.timelines import CAPTURES
from tests.transcript import begin, capture, finish, record

CALL = """
> {{"id":{0},"method":"tools/call","params":{{"name":"a","arguments":{{"key":"hunter2xyz"}}}}}}
< {{"id":{0},"result":{{}}}}
"""


@pytest.fixture
def collector():
    with Collector() as found:
        yield found


@pytest.fixture
def start(tmp_path, collector):
    """Start the command with a separate home."""
    running = []

    def begin_process(*words, endpoint=collector.url, **variables):
        environ = os.environ | {"HOME": str(tmp_path), "OTEL_METRIC_EXPORT_INTERVAL": "100"} | variables
        running.append(warm.start("otel", *words, "--endpoint", endpoint, environ=environ))
        return running[-1]

    yield begin_process
    for process in running:
        with process:
            process.kill()


def requests(folder):
    """Return the number of requests in the captures of a directory."""
    paths = [os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".jsonl")]
    rows = (row for path in paths for row in final_rows(lambda p=path: Capture(p).records(), live=False))
    return sum(row.kind == "request" for row in rows)


def test_each_exchange_of_the_golden_captures_is_one_span_after_two_runs(start, collector):
    """T-04."""
    for _ in range(2):
        process = start(CAPTURES)
        out, err = process.communicate()
        assert (process.returncode, err) == (0, "")
    assert out == "sent 0 spans and 0 log records\n"
    assert len(collector.spans) == len(collector.counts()) == requests(CAPTURES)


def test_a_kill_in_the_middle_loses_no_span_and_none_comes_under_another_id(start, collector, tmp_path):
    """T-03, T-04: a span that was sent but not yet noted is sent again with the same id."""
    path = tmp_path / "a.jsonl"
    writer = begin(path)
    record(writer, "\n".join(CALL.format(n) for n in range(2000)))
    process = start(path, "--follow")
    collector.until(lambda: collector.spans)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finish(writer)
    assert start(path).wait() == 0
    assert len(collector.counts()) == 2000
    again = sum(collector.counts().values()) - 2000
    assert 0 <= again <= 512


def test_it_follows_live_captures_and_new_ones_and_sends_metrics(start, collector, tmp_path):
    folder = tmp_path / "captures"
    folder.mkdir()
    first = begin(folder / "a.jsonl")
    process = start(folder, "--follow")
    record(first, CALL.format(1))
    collector.until(lambda: len(collector.spans) == 1)
    second = begin(folder / "b.jsonl")
    record(second, CALL.format(2))
    collector.until(lambda: len(collector.spans) == 2)
    collector.until(lambda: "mcp.client.operation.duration" in collector.metrics)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert out.startswith("sent 2 spans")
    finish(first)
    finish(second)


def test_a_collector_that_comes_later_gets_all(start, collector, tmp_path):
    """T-05."""
    collector.status = 400
    process = start(capture(tmp_path / "a.jsonl", CALL.format(1)), "--follow")
    assert process.stderr.readline().endswith(
        "the collector answers with status 400 (Bad Request); trying again until the collector accepts telemetry\n"
    )
    collector.status = 200
    collector.until(lambda: len(collector.spans) == 1)
    process.send_signal(signal.SIGINT)
    assert process.wait() == 0


@pytest.mark.parametrize("content", [False, True])
def test_arguments_are_sent_only_with_content_and_without_secrets(start, collector, tmp_path, content):
    process = start(capture(tmp_path / "a.jsonl", CALL.format(1)), *(["--content"] if content else []))
    assert process.wait() == 0
    (span,) = collector.spans
    found = attributes(span.attributes)
    assert ("gen_ai.tool.call.arguments" in found) == content
    assert "hunter2xyz" not in str(collector.spans)


def test_nothing_that_a_peer_sends_as_content_leaves_without_content(start, collector, tmp_path):
    """Neither attributes nor findings about arguments hold content. Secrets are never sent, even with `--content`."""
    text = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}}]}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","arguments":{"n":"c0ntent"}}}
        < {"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"c0ntent"}]}}
        > {"jsonrpc":"2.0","id":4,"method":"prompts/get","params":{"name":"p","arguments":{"password":"hunter2xyz"}}}
        < {"jsonrpc":"2.0","id":4,"error":{"code":1,"message":"password=hunter2xyz is wrong"}}
        > {"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"http://h/?token=hunter2xyz"}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":{"password":"hunter2xyz"}}}
        ! password=hunter2xyz
    """
    path = capture(tmp_path / "a.jsonl", text)
    assert start(path).wait() == 0
    sent = f"{collector.spans} {collector.logs} {collector.resources}"
    assert len(collector.spans) == 5
    assert "tools/arguments" in sent
    assert "c0ntent" not in sent
    assert "hunter2xyz" not in sent
    with Collector() as other:
        assert start(path, "--content", endpoint=other.url).wait() == 0
    sent = f"{other.spans} {other.logs}"
    assert "c0ntent" in sent
    assert "hunter2xyz" not in sent


def test_an_absent_collector_is_one_line(start, tmp_path):
    path = capture(tmp_path / "a.jsonl", CALL.format(1))
    nobody = f"http://127.0.0.1:{free()}"
    process = start(path, endpoint=nobody, OTEL_EXPORTER_OTLP_TIMEOUT="1")
    out, err = process.communicate()
    assert (process.returncode, out, err.count("\n")) == (2, "", 1)
    assert f"mcpspy: {nobody}: the collector cannot be reached: Connection refused" in err


def test_an_endpoint_is_shown_without_its_password(start, tmp_path):
    path = capture(tmp_path / "a.jsonl", CALL.format(1))
    process = start(path, endpoint=f"http://user:hunter2xyz@127.0.0.1:{free()}")
    _, err = process.communicate()
    assert process.returncode == 2
    assert "hunter2xyz" not in err


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("OTEL_SDK_DISABLED", "true", "OTEL_SDK_DISABLED is true"),
        ("OTEL_TRACES_EXPORTER", "none", "unset OTEL_TRACES_EXPORTER"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "sends http/protobuf only"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "sends http/protobuf only"),
    ],
)
def test_a_variable_that_makes_it_pointless_is_one_line(mcpspy, monkeypatch, tmp_path, name, value, told):
    monkeypatch.setenv(name, value)
    status, out, err = mcpspy("otel", capture(tmp_path / "a.jsonl", CALL.format(1)))
    assert (status, out, err.count("\n"), told in err) == (2, "", 1, True)


def test_what_cannot_be_read_is_one_line_each_and_the_others_go_on(start, collector, tmp_path):
    folder = tmp_path / "captures"
    folder.mkdir()
    capture(folder / "a.jsonl", CALL.format(1))
    (folder / "b.jsonl").write_text('{"mcpspy":99}\n')
    (folder / "c.jsonl").write_text("hello\n")
    live = begin(folder / "d.jsonl")
    record(live, CALL.format(1))
    process = start(folder)
    _, err = process.communicate()
    assert (process.returncode, err.count("\n"), len(collector.spans)) == (0, 3, 1)
    assert "1 capture still live; --follow sends what comes later" in err
    finish(live)


def test_no_capture_and_a_wrong_name_are_one_line(start, tmp_path):
    (tmp_path / "empty").mkdir()
    for name, told in (("empty", "there is no capture"), ("missing.jsonl", "no such file")):
        process = start(tmp_path / name)
        out, err = process.communicate()
        assert (process.returncode, out, err.count("\n"), told in err) == (2, "", 1, True)


def test_a_missing_extra_is_one_line_with_the_command(mcpspy, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    for name in [it for it in sys.modules if it.startswith(("opentelemetry.", "mcpspy.telemetry", "mcpspy.cli.otel"))]:
        monkeypatch.delitem(sys.modules, name)
    assert "pip install 'mcpspy[otel]'" in refusal(mcpspy("otel", capture(tmp_path / "a.jsonl", CALL.format(1))))
