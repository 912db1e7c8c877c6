import os
import signal
import sys
import threading

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame
from mcpspy.errors import CaptureError, SpawnError
from mcpspy.transport import link, streams
from mcpspy.transport.link import Ended, Link, signals_restored
from tests.limits import LIMIT
from tests.relay.harness import python, running, to_us, until


def start(tmp_path, source):
    return Link(list(python(source)), "weather", str(tmp_path / "new.jsonl"), pytest.fail, 0)


def end(session):
    """Close a session as the driver does: while the main thread waits for the server."""
    closing = threading.Thread(target=session.close, daemon=True)
    closing.start()
    session.wait()
    closing.join(LIMIT)


def heard(session):
    return session.heard.get(timeout=LIMIT)


@pytest.fixture(autouse=True)
def _as_before():
    """Restore the signal settings that starting children changes, for later tests."""
    with signals_restored():
        yield


def test_what_passes_is_recorded_with_the_end(tmp_path):
    session = start(tmp_path, "import sys; print(input().upper()); print('aside', file=sys.stderr); sys.exit(3)")
    session.send(b"hello")
    session.wait()
    assert [heard(session), heard(session)] == [b"HELLO", Ended("exited with code 3")]
    records = list(Capture(session.path).records())
    frames = {record.ch: record for record in records if isinstance(record, Frame)}
    assert {ch: frame.raw for ch, frame in frames.items()} == {1: b"hello", 2: b"HELLO", 3: b"aside"}
    assert frames[1].t <= frames[2].t
    assert {record.ch for record in records if isinstance(record, Close)} == {1, 2, 3}
    assert (records[-1].code, Capture(session.path).live) == (3, False)
    header = Capture(session.path).header
    assert (header.name, header.transport, header.argv[0]) == ("weather", "stdio", sys.executable)


def test_an_exit_that_another_thread_is_told_of_is_noticed(tmp_path, monkeypatch):
    """If mcpspy is part of another program, such as pytest, other threads do not block SIGCHLD."""
    over = threading.Event()
    threading.Thread(target=over.wait, daemon=True).start()
    real, looks = os.waitpid, []

    def waitpid(pid, options):
        if looks:
            return real(pid, options)
        looks.append(pid)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # the process exits just after the first waitpid
        return 0, 0

    monkeypatch.setattr(link, "CLOSED", LIMIT)
    session = start(tmp_path, "import sys; sys.exit(3)")
    monkeypatch.setattr(os, "waitpid", waitpid)
    session.wait()
    over.set()
    assert heard(session) == Ended("exited with code 3")


def test_the_end_of_what_is_said_ends_the_server(tmp_path):
    session = start(tmp_path, "import sys; sys.stdin.read()")
    end(session)
    assert heard(session) == Ended("exited with code 0")


@pytest.mark.parametrize(("disposition", "how"), [("SIG_DFL", "SIGTERM"), ("SIG_IGN", "SIGKILL")])
def test_a_server_that_does_not_end_is_ended(tmp_path, monkeypatch, disposition, how):
    monkeypatch.setattr(link, "PATIENCE", 0.1)
    deaf = f"import signal; signal.signal(signal.SIGTERM, signal.{disposition}); print('ready', flush=True)"
    session = start(tmp_path, f"{deaf}\nwhile True: signal.pause()")
    assert heard(session) == b"ready"
    end(session)
    assert heard(session) == Ended(f"was killed by signal {getattr(signal, how)}")
    assert isinstance(list(Capture(session.path).records())[-1], End)


@pytest.mark.parametrize("fd", [1, 2], ids=["stdout", "stderr"])
def test_a_server_that_talks_without_end_is_heard_no_more(tmp_path, monkeypatch, fd):
    monkeypatch.setattr(streams, "ROOM", 1 << 20)
    session = start(tmp_path, f"import os\nwhile True: os.write({fd}, b'x' * 999 + b'\\n')")
    while isinstance(it := heard(session), bytes):
        pass
    assert it == Ended("said far more than in the capture")
    end(session)
    assert os.path.getsize(session.path) < 3 << 20


def test_a_server_that_closes_its_stdout_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "CLOSED", 0.1)
    monkeypatch.setattr(link, "PATIENCE", 0.1)
    session = start(tmp_path, "import os, signal; os.close(1); signal.pause()")
    assert heard(session) == Ended("closed its stdout")
    end(session)


def test_what_the_server_started_ends_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "PATIENCE", 0.1)
    child = "signal.signal(signal.SIGTERM, signal.SIG_IGN); print(os.getpid(), flush=True); signal.pause()"
    session = start(tmp_path, f"import os, signal\nif os.fork(): os.wait()\nelse: {child}")
    pid = int(heard(session))
    end(session)
    until(lambda: not running(pid), "the end of what the server started")


def test_a_signal_to_us_ends_the_server(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "PATIENCE", 0.1)
    session = start(tmp_path, "import signal; print('ready', flush=True); signal.pause()")
    assert heard(session) == b"ready"
    player = threading.Thread(target=lambda: (to_us(signal.SIGINT), heard(session), session.close()), daemon=True)
    player.start()
    session.wait()
    player.join(LIMIT)
    assert session.interrupted


def test_a_second_signal_does_not_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "PATIENCE", 1000)
    session = start(tmp_path, "import signal; print('ready', flush=True); signal.pause()")
    assert heard(session) == b"ready"

    def play():
        for _ in range(2):
            to_us(signal.SIGTERM)
            heard(session)

    player = threading.Thread(target=play, daemon=True)
    player.start()
    session.wait()
    player.join(LIMIT)
    assert heard(session) == Ended(f"was killed by signal {signal.SIGKILL}")


def test_a_server_that_does_not_read_stops_nobody(tmp_path, monkeypatch):
    monkeypatch.setattr(link, "PATIENCE", 0.1)
    session = start(tmp_path, "import time; print('ready', flush=True); time.sleep(60)")
    session.send(b"x" * 1_000_000)
    assert heard(session) == b"ready"
    end(session)
    assert heard(session) == Ended(f"was killed by signal {signal.SIGTERM}")


def test_what_is_not_found_is_said(tmp_path):
    with pytest.raises(SpawnError, match="not found"):
        Link(["/nowhere/server"], "weather", str(tmp_path / "new.jsonl"), pytest.fail, 0)
    assert not os.listdir(tmp_path), "an older file of that name would still be there"


def test_a_capture_that_cannot_be_written_is_said_and_leaves_no_server(tmp_path):
    marker = tmp_path / "pid"
    source = f"import os, signal; open({str(marker)!r}, 'w').write(str(os.getpid())); signal.pause()"
    with pytest.raises(CaptureError, match=r"cannot write a capture to .*No such file or directory$"):
        Link(list(python(source)), "weather", str(tmp_path / "nowhere" / "new.jsonl"), pytest.fail, 0)
    if marker.exists():
        assert not running(int(marker.read_text()))


def test_signals_are_as_before_afterwards(tmp_path):
    before = signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, [])
    with signals_restored():
        session = start(tmp_path, "print('ready')")
        session.wait()
    assert (signal.getsignal(signal.SIGINT), signal.pthread_sigmask(signal.SIG_BLOCK, [])) == before
