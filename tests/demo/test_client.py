"""The scripted client: through the real `wrap` it plays all that the demo promises, and leaves no process running."""

import io
import json
import os
import signal
import subprocess
import sys

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End
from mcpspy.demo.client import WeatherClient
from mcpspy.timeline import final_rows
from tests import limits
from tests.demo.official import validate
from tests.relay.harness import LIMIT, running, until

COMMAND = [sys.executable, "-m", "mcpspy.demo.client"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """The rows of a whole session."""
    path = tmp_path_factory.mktemp("demo") / "a.jsonl"
    subprocess.run([*COMMAND, "-o", path], check=True, capture_output=True, timeout=LIMIT)
    capture = Capture(str(path))
    assert (capture.header.name, capture.live) == ("weather", False)
    return list(final_rows(capture.records, live=False))


def test_each_request_has_its_outcome(rows):
    requests = [row for row in rows if row.kind == "request"]
    assert [(row.sender, row.method, row.name, row.status) for row in requests] == [
        ("client", "initialize", None, "ok"),
        ("client", "tools/list", None, "ok"),
        ("client", "resources/list", None, "ok"),
        ("client", "prompts/list", None, "ok"),
        ("client", "tools/call", "get_forecast", "ok"),
        ("client", "tools/call", "watch_wind", "ok"),
        ("client", "tools/call", "get_forecast", "tool-error"),
        ("client", "tools/call", "get_forecast", "error"),
        ("client", "tools/call", "what_to_wear", "ok"),
        ("server", "sampling/createMessage", None, "ok"),
    ]
    assert {row.revision for row in requests} == {"2025-11-25"}


def test_the_slow_call_is_slow_enough_to_be_seen(rows):
    [slow] = [row for row in rows if row.kind == "request" and row.name == "watch_wind"]
    assert slow.latency >= 400_000_000


def test_there_are_notifications_stderr_a_stray_line_and_an_orderly_end(rows):
    assert [row.method for row in rows if row.kind == "notification"] == [
        "notifications/initialized",
        *["notifications/progress"] * 4,
        "notifications/message",
    ]
    assert [row.raw.decode() for row in rows if row.kind == "invalid"] == ["Fetching forecast for Oslo…"]
    assert [row.text for row in rows if row.kind == "stderr"] == [
        "weather: ready, with 3 cities",
        "weather: no such city: Atlantis",
    ]
    assert [row.text for row in rows if row.kind == "end"] == ["the server exited with code 0"]
    assert not [row for row in rows if row.kind == "gap"]


def test_what_both_say_is_as_the_official_schema_says(rows):
    messages = [row for row in rows if row.value is not None]
    assert len(messages) == 26
    for row in messages:
        validate(row.value, row.method)


def test_the_wrong_call_is_wrong_by_the_advertised_schema(rows):
    [refused] = [row.value["error"] for row in rows if row.kind == "error"]
    assert refused["code"] == -32602
    assert "get_forecast" in refused["message"]


def test_paced_it_takes_its_time(tmp_path):
    """With a pace, the slow call is slower."""
    path = str(tmp_path / "a.jsonl")
    subprocess.run([*COMMAND, "-o", path, "--pace", "0.01"], check=True, capture_output=True, timeout=LIMIT)
    rows = list(final_rows(Capture(path).records, live=False))
    requests = [row for row in rows if row.kind == "request" and row.sender == "client"]
    assert next(row for row in requests if row.name == "watch_wind").latency >= 1_200_000_000
    answered = [row.t + row.latency for row in requests]
    assert all(after.t - before >= 9_000_000 for before, after in zip(answered, requests[1:], strict=False))


def test_it_hands_other_options_to_wrap(tmp_path):
    subprocess.run([*COMMAND, "--capture-dir", tmp_path], check=True, capture_output=True, timeout=LIMIT)
    [name] = os.listdir(tmp_path)
    assert "-weather-" in name


# Lines that are not part of the script.


def answers(*lines):
    """Return a client whose server sends these lines, and the buffer that the client writes to."""
    written = io.BytesIO()
    return WeatherClient(written, io.BytesIO(b"".join(line + b"\n" for line in lines)), pace=0), written


def test_it_passes_over_what_is_no_answer_to_its_request():
    client, written = answers(
        b"hello", b"\xff", b"5", b'{"id":9,"result":{}}', b'{"method":"m"}', b'{"id":1,"result":5}'
    )
    assert client.request("ping") == {"id": 1, "result": 5}
    assert len(written.getvalue().splitlines()) == 1


@pytest.mark.parametrize(("method", "outcome"), [("ping", "result"), ("roots/list", "error")])
def test_it_answers_what_the_server_asks_meanwhile(method, outcome):
    question = json.dumps({"id": "a", "method": method}).encode()
    client, written = answers(question, b'{"id":1,"result":{}}')
    client.request("ping")
    answer = json.loads(written.getvalue().splitlines()[1])
    assert answer["id"] == "a"
    assert outcome in answer


def test_a_server_that_ends_too_early_is_named():
    client, _ = answers(b'{"id":9,"result":{}}')
    with pytest.raises(EOFError, match="before it answered tools/list"):
        client.request("tools/list")


# Ending.


@pytest.fixture
def interruptible():
    """Make started processes obey SIGINT, even if the tests themselves were started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.usefixtures("interruptible")
def test_interrupted_it_takes_the_server_with_it(tmp_path, number, status):
    path = tmp_path / "a.jsonl"
    command = [*COMMAND, "-o", path, "--pace", "0.2"]
    with limits.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as client:
        until(lambda: path.exists() and b"initialize" in path.read_bytes(), "the session")
        [wrap] = children(client.pid)
        server, *_ = children(wrap)  # the other child detects signals to the process group
        client.send_signal(number)
        assert client.wait(LIMIT) == status
        assert b"Traceback" not in client.stderr.read()
    assert not running(wrap)
    assert not running(server)
    capture = Capture(str(path))
    assert not capture.live
    assert isinstance(list(capture.records())[-1], End)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_that_dies_is_one_line_and_exit_status_1(tmp_path):
    path = tmp_path / "a.jsonl"
    command = [*COMMAND, "-o", path, "--pace", "0.2"]
    with limits.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as client:
        until(lambda: path.exists() and b"initialize" in path.read_bytes(), "the session")
        [wrap] = children(client.pid)
        os.kill(wrap, signal.SIGKILL)
        assert client.wait(LIMIT) == 1
        assert client.stderr.read().splitlines()[-1].startswith(b"the session broke off: ")


def children(pid):
    """Return the pids of a process's children."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [int(child) for child in file.read().split()]
