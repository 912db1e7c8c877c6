"""`mcpspy wrap` imports, compiles and opens nothing while frames pass (V-02)."""

import os
import signal
import threading

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gates, Signal
from mcpspy.recording.recording import Channel, Recording
from mcpspy.relay.stdio.pump import Pump
from tests import limits
from tests.relay import late
from tests.relay.harness import LIMIT, python, until
from tests.relay.viewer import viewing
from tests.transcript import begin

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
CALL = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}'
LINES = [
    *(b"x" * size for size in (1, 200, 4095, 4096, 65536, (1 << 20) + 1, 9 << 20)),
    PING,
    b"[" + PING + b"," + CALL + b"]",
    b'{"text":"\xff\xfe"}',
    b'{"id":1,"method',
    b'{"text":"\\ud800"}',
    b"",
]
GATES = """
[[gate]]
when = 'method:ping from:client'
chance = 0.5
delay = '1ms'
"""
ECHO = python("import os\nwhile chunk := os.read(0, 65536): os.write(2, b'e\\n' * 9), os.write(1, chunk)")
DIES = python("import os, signal\nos.read(0, 1)\nsignal.raise_signal(9)")


@pytest.fixture
def observed(wrap, tmp_path):
    """Start `wrap` and return it, with a function that returns the events that must not be."""

    def start(*command, options=(), **popen):
        log, path = tmp_path / "events", tmp_path / "capture.jsonl"
        wrapped = wrap(*command, options=("-o", str(path), *options), program=late.program(log, path.name), **popen)
        wrapped.path = path
        return wrapped, lambda: late.unwanted(log, tmp_path)

    return start


def talk(wrapped, lines):
    """Send each line, wait for its echo, and end the session."""
    until(wrapped.recording)
    for line in lines:
        sender = threading.Thread(target=wrapped.stdin.write, args=(line + b"\n",), daemon=True)
        sender.start()
        left = len(line) + 1
        while left > 0:
            left -= len(limits.read(wrapped.stdout.fileno(), left))
        sender.join(LIMIT)
    wrapped.communicate(timeout=LIMIT)


@pytest.mark.parametrize(
    "options", [(), ("--check",), ("--no-control",), ("--max-capture", "1MB"), ("--gate", "gates.toml")], ids=str
)
def test_no_frame_causes_an_import(observed, tmp_path, options):
    """V-02: frames of every size, in both directions, and text on stderr."""
    (tmp_path / "gates.toml").write_text(GATES)
    gated = "--gate" in options
    wrapped, unwanted = observed(*ECHO, options=options, cwd=tmp_path)
    talk(wrapped, [line for line in LINES * 2 if line != CALL or not gated])
    frames = [it for it in wrapped.capture.records(1 << 62) if isinstance(it, Frame)]
    assert any(it.ch == 3 for it in frames)
    assert any(it.by for it in frames) is gated
    assert unwanted() == []


def test_a_viewer_causes_no_import(observed):
    """V-02: its gate comes into force in the thread that relays."""
    wrapped, unwanted = observed("cat")
    until(wrapped.recording)
    with viewing(wrapped.path) as viewer:
        viewer.gate({"drop": True}, method="ping")
        until(viewer.in_force)
        assert wrapped.ask(PING + b"\n" + CALL) == CALL
    wrapped.communicate(timeout=LIMIT)
    assert any(isinstance(it, Gates) for it in wrapped.capture.records(1 << 62))
    assert unwanted() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_causes_no_import(observed, number):
    """V-02: the witness is asked, and the end may be by the same signal."""
    wrapped, unwanted = observed("cat")
    until(wrapped.recording)
    wrapped.witness()
    assert wrapped.ask(PING) == PING
    wrapped.send_signal(number)
    wrapped.communicate(timeout=LIMIT)
    assert any(isinstance(it, Signal) for it in wrapped.capture.records(1 << 62))
    assert unwanted() == []


def test_the_death_of_the_server_causes_no_import(observed):
    """V-02."""
    wrapped, unwanted = observed(*DIES)
    until(wrapped.recording)
    wrapped.communicate(PING, timeout=LIMIT)
    assert wrapped.returncode == -signal.SIGKILL
    assert unwanted() == []


def test_a_descriptor_that_does_not_block_causes_no_import(observed):
    """V-02: Node makes pipes like this."""
    source, client = os.pipe()
    os.set_blocking(source, False)
    wrapped, unwanted = observed("cat", stdin=source)
    os.close(source)
    until(wrapped.recording)
    os.write(client, PING + b"\n")
    assert wrapped.readline() == PING
    os.close(client)
    wrapped.wait(LIMIT)
    assert unwanted() == []


def test_frames_pass_while_the_recording_is_being_imported(tmp_path):
    """V-02: a pump forwards more than one chunk before there is a capture, and records all of them in order."""
    (source, client), (server, sink) = os.pipe(), os.pipe()
    pump = Pump(source, sink, 0)
    woken = []

    def session():
        for line in (b"1\n", b"2\n", b"3"):
            os.write(client, line)
            assert limits.read(server, 10) == line
        recording = Recording(print, sink=begin(tmp_path / "capture.jsonl"))
        pump.begin(Channel(recording, 0, "client", "stdin"), lambda: woken.append(1))
        os.write(client, b"4\n")
        assert limits.read(server, 10) == b"4\n"
        os.close(client)

    thread = threading.Thread(target=session, daemon=True)
    thread.start()
    limits.within(pump.run)
    thread.join(LIMIT)
    frames = [it.raw for it in Capture(str(tmp_path / "capture.jsonl")).records() if isinstance(it, Frame)]
    assert (frames, woken) == ([b"1", b"2", b"34"], [1])
    os.close(server)
