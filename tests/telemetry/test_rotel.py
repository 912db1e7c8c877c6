"""Rotel, a collector in Rust, accepts spans, logs and metrics of every golden capture (field).

It prints everything that it receives, as it parses it.
"""

import re
import socket
from contextlib import contextmanager
from signal import SIGTERM

import pytest

from mcpspy.telemetry.captured import BYTES, FINDINGS, OPERATIONS, SESSIONS
from tests import backends, limits
from tests.ports import free
from tests.telemetry.test_phoenix import PATHS, expected, otel
from tests.timelines import CAPTURES

pytestmark = [pytest.mark.field, pytest.mark.timeout(backends.SECONDS)]
SPAN = re.compile(
    r"^Span #\d+\n +Trace ID +: (\w+)\n +Parent ID +: (\w*)\n +ID +: (\w+)\n +Name +: (.*)\n +Kind +: (\w+)\n",
    re.MULTILINE,
)
LOG = re.compile(r"^LogRecord #\d+\n", re.MULTILINE)
METRIC = re.compile(r"^ +-> Name: (mcp.*)\n", re.MULTILINE)


@contextmanager
def rotel(log):
    """Run a collector that prints into a file; the context value is its URL."""
    port = free()
    command = [backends.installed(backends.ROTEL) / "rotel-agent", "start", "--exporter", "blackhole"]
    command += ["--otlp-http-endpoint", f"127.0.0.1:{port}", "--otlp-grpc-endpoint", f"127.0.0.1:{free()}"]
    command += [word for signal in ("traces", "logs", "metrics") for word in ("--debug-log", signal)]
    with (
        open(log, "wb") as file,
        limits.Popen([*command, "--debug-log-verbosity", "detailed"], stdout=file, stderr=file) as process,
    ):
        backends.until(lambda: process.poll() is not None or listens(port))
        yield f"http://127.0.0.1:{port}"
        process.terminate()


def listens(port):
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def test_it_takes_spans_logs_and_metrics(tmp_path):
    wanted = {
        (trace, span["parent_id"] or "", own, span["name"], "SPAN_KIND_CLIENT")
        for path in PATHS
        for (trace, own), span in expected(path).items()
    }
    log = tmp_path / "rotel.log"
    with rotel(log) as url:
        with otel(tmp_path, url, CAPTURES, "--follow") as process:
            backends.until(lambda: len(SPAN.findall(log.read_text())) >= len(wanted))
            process.send_signal(SIGTERM)
            out, err = process.communicate()
        names = {*OPERATIONS, *SESSIONS, FINDINGS, BYTES}
        backends.until(lambda: names <= set(METRIC.findall(log.read_text())))
    assert (process.returncode, err) == (0, "")
    found = SPAN.findall(log.read_text())
    assert len(found) == len(wanted)
    assert set(found) == wanted
    assert out == f"sent {len(found)} spans and {len(LOG.findall(log.read_text()))} log records\n"
    assert set(METRIC.findall(log.read_text())) == names
