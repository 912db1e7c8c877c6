"""Every capture has the same kind of header and clock, whichever command records it."""

import json
import sys

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Gates
from mcpspy.recording.recording import Channel, Clock, Recording


@pytest.fixture
def reports():
    return []


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))


COMMON = {"mcpspy", "id", "started", "tool", "transport", "name"}
BEGAN = {"client_start"} if sys.platform == "linux" else set()


@pytest.mark.parametrize(
    ("transport", "arguments", "keys"),
    [
        ("stdio", {"argv": ["npx", "server"], "variables": ["PATH"]}, {"argv", "cwd", "env", "pid", "ppid"} | BEGAN),
        ("http", {"name": "a", "url": "http://h/mcp"}, {"url", "pid", "ppid"}),
        ("mitm", {"name": "a", "url": "https://h"}, {"url", "pid", "ppid"}),
        ("stdio", {"name": "a", "argv": [], "imported": {"from": "x"}}, {"argv", "cwd", "imported"}),
        ("http", {"name": "a", "url": "https://h", "imported": {"from": "x"}}, {"url", "imported"}),
    ],
    ids=["wrap or replay", "proxy", "mitm", "an imported log", "an imported HAR"],
)
def test_a_header_holds_what_its_transport_has(tmp_path, reports, transport, arguments, keys):
    recording = Recording(reports.append, Clock(0, 1_500_000_000_123_456_789))
    recording.begin(transport, output=str(tmp_path / "a"), **arguments)
    recording.end(1)
    header = json.loads((tmp_path / "a").read_bytes().splitlines()[0])
    assert set(header) == COMMON | keys | (set() if "imported" in arguments else {"proof"})
    assert header["started"] == "2017-07-14T02:40:00.123456Z", "the clock's, however late the capture is begun"
    assert reports == []


def test_no_secret_stands_in_a_header(tmp_path, reports):
    """O-02."""
    for number, arguments in enumerate(
        (
            {"argv": ["server", "--token", "hunter2"]},
            {"url": "http://h/?token=hunter2"},
            {"argv": ["server"], "client": ["agent", "--token", "hunter2"]},
        )
    ):
        path = tmp_path / str(number)
        recording = Recording(reports.append)
        recording.begin("stdio", "a", output=str(path), **arguments)
        recording.end(1)
        assert b"hunter2" not in path.read_bytes()


def test_the_name_is_that_of_the_server_unless_it_is_given(tmp_path, reports):
    for name, expected in ((None, "server"), ("mine", "mine")):
        recording = Recording(reports.append)
        recording.begin("stdio", name, output=str(tmp_path / "a"), argv=["npx", "-y", "@scope/server"])
        recording.end(1)
        assert Capture(str(tmp_path / "a")).header.name == expected


def test_a_capture_that_cannot_be_created_is_reported_once_and_nothing_is_recorded(tmp_path, reports):
    """S-16."""
    recording = Recording(reports.append)
    recording.begin("http", "a", output=str(tmp_path / "missing" / "a"))
    assert recording.path is None
    Channel(recording, 0, "client", "stdin").feed(b"{}\n", 1)
    recording.end(2)
    (report,) = reports
    assert "cannot write a capture" in report


def test_a_header_that_cannot_be_written_is_a_bug_that_traffic_survives(tmp_path, reports):
    """S-01."""
    recording = Recording(reports.append)
    recording.begin("http", "\ud800", output=str(tmp_path / "a"))
    assert recording.path is None
    (report,) = reports
    assert "traffic goes on, but is not recorded" in report


def test_the_clock_runs_from_its_start():
    clock = Clock()
    first, second = clock.now(), clock.now()
    assert 0 <= first <= second


def test_a_signal_is_recorded(tmp_path, reports):
    """C-02."""
    recording = Recording(reports.append)
    recording.begin("stdio", "a", output=str(tmp_path / "a"), argv=["a"])
    recording.signal(5, 15, "group", forwarded=False)
    recording.end(6)
    (signal, _) = Capture(str(tmp_path / "a")).records()
    assert (signal.t, signal.signal, signal.to, signal.forwarded) == (5, 15, "group", False)


def test_the_gates_in_force_are_recorded(tmp_path, reports):
    recording = Recording(reports.append)
    recording.begin("stdio", "a", output=str(tmp_path / "a"))
    recording.gates(5, [{"name": "slow", "when": {}, "action": {"delay": 1}}], "file")
    recording.end(6)
    first, _ = Capture(str(tmp_path / "a")).records()
    assert first == Gates(2, 5, ({"name": "slow", "when": {}, "action": {"delay": 1}},), "file")


@pytest.mark.parametrize("control", [False, True])
def test_a_header_says_where_control_is_possible(tmp_path, reports, control):
    recording = Recording(reports.append)
    recording.begin("stdio", "a", output=str(tmp_path / "a"), control=control)
    recording.end(6)
    assert Capture(str(tmp_path / "a")).header.control is control
    assert (b'"control"' in (tmp_path / "a").read_bytes()) is control


def test_the_live_directory_stays_the_same_in_a_capture_that_goes_on_in_other_files(tmp_path, reports):
    recording = Recording(reports.append)
    assert recording.live_path is None
    recording.begin("stdio", "a", output=str(tmp_path / "a"), limit=1000, control=True)
    channel = Channel(recording, 0, "client", "stdin")
    for number in range(20):
        channel.feed(b"x" * 200 + b"\n", number)
    capture = Capture(str(tmp_path / "a"))
    assert len(capture.paths) > 1
    assert recording.live_path == str(tmp_path / f".{capture.header.id}.live")
    assert all(Capture(path).header.control for path in capture.paths)
    recording.end(30)


def test_no_capture_has_no_live_directory(tmp_path, reports):
    recording = Recording(reports.append)
    recording.begin("stdio", "a", output=str(tmp_path / "nowhere" / "a"), control=True)
    assert recording.live_path is None
