"""`mcpspy demo` prints a timeline into a pipe, opens the TUI on a terminal, and leaves no process running."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import types

import pytest

from mcpspy import cli
from mcpspy.capture.listing import captures
from mcpspy.capture.reader import Capture
from tests import limits
from tests.cli.conftest import refusal
from tests.each import each
from tests.optional import open_terminal
from tests.relay.harness import LIMIT, running, until

COMMAND = [sys.executable, "-m", "mcpspy", "demo"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The capture directory. It does not exist yet."""
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", str(tmp_path / "captures"))
    return tmp_path / "captures"


@pytest.fixture
def demo(monkeypatch, capfd):
    """Run `mcpspy demo` in this process and return its exit status, stdout and stderr."""

    def run():
        monkeypatch.setattr(sys, "argv", ["mcpspy", "demo"])
        return cli.main(), *capfd.readouterr()

    return run


@pytest.fixture
def terminal(monkeypatch):
    """Make stdin and stdout look like a terminal, and replace the TUI by a function that gets the paths."""

    def install(watch):
        app = types.ModuleType("mcpspy.tui.app")
        app.run = watch
        monkeypatch.setitem(sys.modules, "mcpspy.tui.app", app)
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.delenv("ACCESSIBLE", raising=False)
        monkeypatch.setattr("mcpspy.cli.output.prepare_streams", lambda: None)  # it would replace these streams
        for stream in (sys.stdin, sys.stdout):
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)

    return install


@pytest.fixture
def started(monkeypatch):
    """The processes that the command starts."""
    found = []

    class Popen(subprocess.Popen):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            found.append(self)

    monkeypatch.setattr(subprocess, "Popen", Popen)
    return found


@pytest.fixture
def interruptible():
    """Make started processes obey SIGINT, even if the tests themselves were started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def paths(folder):
    return [listed.capture.path for listed in captures(str(folder))]


def test_in_a_pipe_the_whole_session_is_printed_and_each_demo_is_a_private_capture(folder, demo):
    """tests/demo/test_client.py has the rows of the session."""
    status, out, err = demo()
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    for part in (
        "weather · stdio · ",
        '← tools/call get_forecast city="Oslo" … id 5 ok ',
        "← invalid: not JSON (error at character 0): Fetching forecast for Oslo",
        "← sampling/createMessage user: What shall I wear in Oslo? … id 1",
        "· end: the server exited with code 0",
    ):
        assert any(all(piece in line for piece in part.split("…")) for line in lines), part
    [path] = paths(folder)
    assert out.endswith(f"\n\n'mcpspy show {path}' prints this capture again; 'mcpspy' shows all captures\n")
    assert "\x1b" not in out
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert os.listdir(folder) == [os.path.basename(path)]
    assert Capture(path).header.name == "weather"
    demo()
    assert len(paths(folder)) == 2


@each("place", ["/proc", "/dev/null", "/dev/null/captures"])
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other such places")
def test_a_directory_that_cannot_be_written_is_one_line_and_nothing_is_started(demo, monkeypatch, started, place):
    monkeypatch.setenv("MCPSPY_CAPTURE_DIR", place)
    err = refusal(demo())
    assert err.startswith(f"mcpspy: cannot write a capture to {place}: ")
    assert "$MCPSPY_CAPTURE_DIR" in err
    assert not started


def test_a_directory_that_vanishes_is_one_line(folder, demo, monkeypatch):
    """It disappears after the command has checked it and before the capture starts."""
    from mcpspy.capture.location import file_name
    from mcpspy.cli import demo as module

    def name(*arguments):
        shutil.rmtree(folder)
        return file_name(*arguments)

    monkeypatch.setattr(module, "file_name", name)
    err = refusal(demo())
    assert err.startswith(f"mcpspy: cannot write a capture to {folder}")


def test_a_client_that_fails_is_one_line_after_the_timeline(folder, demo, monkeypatch):
    """The server exits, so the session breaks off, and the exit status is 2."""
    monkeypatch.setenv("PYTHONPATH", str(folder.parent))
    (folder.parent / "sitecustomize.py").write_text(
        "import os, sys\n"
        "if sys.orig_argv[1:] == ['-m', 'mcpspy.demo.server']:\n"
        "    os.write(2, b'not today\\n')\n"
        "    os._exit(3)\n"
    )
    status, out, err = demo()
    assert status == 2
    assert "stderr: not today" in out
    assert err == "mcpspy: the session broke off: the server ended before it answered initialize\n"


# On a terminal.


def test_on_a_terminal_the_tui_opens_on_the_live_session_and_leaves_no_process(folder, demo, terminal, started):
    seen = []

    def watch(opened):
        seen.extend((opened, Capture(*opened).live, started[0].poll(), Capture(*opened).header.pid))
        return 0

    terminal(watch)
    status, out, err = demo()
    [path] = paths(folder)
    assert seen[:3] == [[path], True, None]
    assert (status, err) == (0, "")
    assert out == f"\n'mcpspy show {path}' prints this capture again; 'mcpspy' shows all captures\n"
    [client] = started
    assert client.returncode is not None
    assert not running(seen[3])
    assert not Capture(path).live


def test_for_a_screen_reader_the_session_is_printed(folder, demo, terminal, monkeypatch):
    terminal(lambda _: pytest.fail("the TUI starts"))
    monkeypatch.setenv("ACCESSIBLE", "1")
    status, out, _ = demo()
    assert status == 0
    assert "the server exited with code 0" in out


def test_who_stays_sees_the_session_end_by_itself(folder, demo, terminal, started, monkeypatch):
    monkeypatch.setattr("mcpspy.cli.demo.PACE", 0.01)

    def watch(_):
        return started[0].wait(LIMIT)

    terminal(watch)
    assert demo()[0] == 0
    end = list(Capture(paths(folder)[0]).records())[-1]
    assert (end.code, end.signal) == (0, None)


def test_a_tui_that_fails_leaves_no_process(folder, demo, terminal, started):
    def watch(_):
        raise ZeroDivisionError

    terminal(watch)
    status, _, stderr = demo()
    assert (status, stderr.count("\n")) == (2, 1)
    assert "ZeroDivisionError" in stderr
    assert started[0].returncode is not None
    assert not Capture(paths(folder)[0]).live


# As a process.


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("group", [False, True])
@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_is_quiet_and_leaves_no_process(folder, group):
    """Ctrl-C signals the whole process group; a supervisor signals only the process that it started."""
    with limits.Popen(
        COMMAND,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        path = until(lambda: paths(folder), "the capture")[0]
        pid = Capture(path).header.pid
        (os.killpg if group else os.kill)(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out, err) == (130, b"", b"")
    assert not running(pid)
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)


def test_a_reader_that_leaves_is_no_mistake(folder):
    reader, writer = os.pipe()
    os.close(reader)
    run = subprocess.run(COMMAND, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=LIMIT)
    os.close(writer)
    assert (run.returncode, run.stderr) == (141, b"")


def test_a_terminal_that_cannot_be_typed_into_is_printed_to(folder):
    """The TUI does not start, as no key could end it. The output is coloured unless NO_COLOR is set or TERM is dumb."""
    pytest.importorskip("pty")
    usual = os.environ | {"TERM": "xterm"}
    for environ, coloured in ((usual, True), (usual | {"NO_COLOR": "1"}, False), (usual | {"TERM": "dumb"}, False)):
        ours, theirs = open_terminal()
        with limits.Popen(COMMAND, stdin=subprocess.DEVNULL, stdout=theirs, env=environ) as process:
            os.close(theirs)
            out = b""
            while chunk := read(ours):
                out += chunk
            assert process.wait(LIMIT) == 0
        os.close(ours)
        assert b"the server exited with code 0" in out
        assert (b"\x1b[31m" in out) is coloured


def read(fd):
    try:
        return limits.read(fd, 65536)
    except OSError:  # EIO: the last process on the terminal has exited
        return b""
