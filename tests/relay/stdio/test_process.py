"""Neither peer can notice `wrap` between them: S-02, S-04, S-05, S-07, S-12. Signals: `test_signals`."""

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests import limits
from tests.relay.harness import LIMIT, PROBE, python, running, until

SLEEPER = "import signal; signal.pause()"


def test_the_server_sees_the_process_that_it_would_see_without_us(wrap, tmp_path):
    """Case 7; S-02, S-12: environment, cwd, umask, signals, descriptors, limits, in a filtered environment."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path.cwd()),
        "MCPSPY_CAPTURE_DIR": "x",
    }
    direct = json.loads(limits.run(python(PROBE), env=environ, cwd="/", capture_output=True, check=True).stdout)
    wrapped = wrap(*python(PROBE), env=environ, cwd="/", start_new_session=False)
    out, err, code = wrapped.finish()
    through = json.loads(out)
    assert (err, code) == (b"", 0)
    assert "MCPSPY_CAPTURE_DIR=x" in direct["environ"]
    direct["environ"].remove("MCPSPY_CAPTURE_DIR=x")
    assert through == direct
    assert not any(entry.startswith("LC_CTYPE") for entry in through["environ"])


def test_a_tool_runner_leaves_no_trace_in_the_servers_environment(wrap, tmp_path):
    """S-12: `uvx mcpspy wrap -- python server.py` must run the user's python."""
    environ = {"PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "UV": "/somewhere/uv", "HOME": str(tmp_path)}
    environ["PYTHONPATH"] = str(Path.cwd())
    out, _, _ = wrap("env", env=environ).finish()
    assert b"PATH=/usr/bin:/bin\n" in out
    assert b"\nUV=" not in b"\n" + out
    del environ["UV"]
    out, _, _ = wrap("env", env=environ).finish()
    assert f"PATH={environ['PATH']}\n".encode() in out


@pytest.mark.parametrize("code", [1, 255, "SIGTERM", "SIGKILL", "SIGSEGV", "SIGINT", "SIGPIPE"])
def test_the_exit_status_or_death_by_signal_is_the_servers(wrap, code):
    """S-05: also for signals that Python ignores, and without a core dump of `wrap`."""
    number = code if isinstance(code, int) else -int(getattr(signal, code))
    wrapped = wrap("sh", "-c", f"exit {number}" if number > 0 else f"kill {number} $$")
    assert wrapped.finish() == (b"", b"", number)
    assert not list(wrapped.path.parent.glob("core*"))


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        ("no-such-command", 127, b"cannot start 'no-such-command': not found on PATH ("),
        ("no\x9b\u202e\x1b]0;t\x07", 127, b"cannot start 'no"),
        ("./no/such/file", 127, b"cannot start './no/such/file': not found"),
        ("/etc/passwd", 126, b"cannot start '/etc/passwd': Permission denied"),
        ("/", 126, b"cannot start '/': Permission denied"),
    ],
)
def test_a_command_that_cannot_start_is_named_in_one_line(wrap, command, code, words):
    """S-05, S-14."""
    wrapped = wrap(command)
    out, err, status = wrapped.finish()
    assert (out, status, err.count(b"\n")) == (b"", code, 1)
    assert err.startswith(b"mcpspy: " + words)
    assert err.removesuffix(b"\n").decode().isprintable()


def test_a_script_without_a_first_line_runs_as_under_execvp(wrap, tmp_path):
    """S-02: Node starts servers with execvp, which runs such scripts with sh."""
    script = tmp_path / "server"
    script.write_text("echo from sh $1\n")
    script.chmod(0o755)
    assert wrap(str(script), "x y").finish()[0] == b"from sh x y\n"


def test_a_grandchild_that_keeps_the_pipes_does_not_keep_us(wrap):
    """Case 1; S-04, S-05: the server exits with status 7 at EOF, and its child keeps stdout open for ever."""
    source = """
import os, signal
if os.fork() == 0:
    os.close(0); signal.pause()
os.write(1, b"x" * 50_000)
while os.read(0, 1): pass
os.write(1, b"last words")
os._exit(7)
"""
    wrapped = wrap(*python(source))
    out, err, code = wrapped.finish()  # usually takes 0.1 s; a wrapper that waits for the pipe never returns
    assert (out, err, code) == (b"x" * 50_000 + b"last words", b"", 7)


def test_a_grandchild_that_goes_on_writing_does_not_keep_us(wrap):
    """S-04: with small writes, so that the pipe is never idle, and with large ones, so that it is never empty."""
    for source in ("os.write(1, b'.'); time.sleep(0.01)", "os.write(1, b'.' * 65536)"):
        wrapped = wrap(*python(f"import os, time\nif os.fork(): os._exit(7)\nwhile True: {source}"))
        out, _, code = wrapped.finish()
        assert code == 7
        assert set(out) == {ord(".")}


def test_what_the_server_left_in_the_pipe_reaches_a_slow_client_whole(wrap):
    """S-04: a write to the client is never cut short."""
    wrapped = wrap(*python("import os\nfor _ in range(3): os.write(1, b'x' * 60_000)\nos._exit(3)"))
    child = wrapped.child()
    wrapped.stdout.read(1)
    until(lambda: not running(child))
    time.sleep(0.6)  # longer than the wrapper would wait for an idle pipe
    out, err, code = wrapped.finish()
    assert (len(out), err, code) == (179_999, b"", 3)


def test_a_signal_that_we_were_started_to_ignore_stays_ignored(wrap):
    """S-02: as under nohup."""
    wrapped = wrap(
        "sh", "-c", "kill -HUP $PPID; kill -HUP $$; echo alive", preexec_fn=lambda: signal.signal(1, signal.SIG_IGN)
    )
    assert wrapped.finish() == (b"alive\n", b"", 0)


def test_sigchld_ignored_by_the_client_does_not_lose_the_exit_status(wrap):
    """S-05."""
    wrapped = wrap("sh", "-c", "exit 7", preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    assert wrapped.finish()[2] == 7


@pytest.mark.parametrize("deaf", [False, True])
def test_nothing_of_ours_outlives_us(wrap, deaf):
    """Case 2; S-07: SIGKILL of the wrapper, with a server that ignores EOF and TERM, and with one that does not."""
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN)" if deaf else "pass"
    wrapped = wrap(*python(f"import os, signal\n{ignore}\nos.write(1, b'r')\nwhile True: signal.pause()"))
    assert wrapped.stdout.read(1) == b"r"
    until(wrapped.recording, "the capture")
    pids = wrapped.child(), wrapped.witness()
    wrapped.kill()
    until(lambda: not any(map(running, pids)), "the end of the server and the witness")
    until(lambda: not wrapped.capture.live, "the release of the lock")


def test_a_grandchild_sees_the_end_of_stdin_when_we_are_killed(wrap, tmp_path):
    """S-07: descendants of the server see the same as without `wrap`."""
    mark = tmp_path / "mark"
    script = f"""
import os
if os.fork(): os.waitpid(-1, 0)
os.write(1, b"r"); os.read(0, 1); open({str(mark)!r}, "w")
"""
    wrapped = wrap(*python(script))
    assert wrapped.stdout.read(1) == b"r"
    wrapped.kill()
    until(mark.exists, "the grandchild's end of stdin")


WITHOUT_CTYPES = "import sys\nsys.modules['_ctypes'] = None\nfrom mcpspy.cli import main\nmain()"


@pytest.mark.parametrize("end", ["killed", "exits"])
def test_the_watchdog_stands_in_where_the_kernel_cannot_help(wrap, end):
    """S-07, as on macOS."""
    last = "signal.pause()" if end == "killed" else "os._exit(7)"
    source = f"import os, signal\nos.write(1, b'%d\\n' % os.getpid())\nos.read(0, 1)\n{last}"
    wrapped = wrap(*python(source), program=("-c", WITHOUT_CTYPES))
    server = int(wrapped.readline())
    children = Path(f"/proc/{wrapped.pid}/task/{wrapped.pid}/children")
    until(lambda: len(children.read_text().split()) == 3, "the watchdog and the witness of signals")
    helpers = set(children.read_text().split()) - {str(server)}
    wrapped.stdin.write(b"x")
    if end == "killed":
        wrapped.kill()
        until(lambda: not running(server), "the end of the server")
    else:
        assert wrapped.wait(LIMIT) == 7
    until(lambda: not any(running(int(helper)) for helper in helpers), "the end of the watchdog and the witness")


@pytest.mark.parametrize("words", [["-o", "PATH"], ["-o", "PATH", "--no-control"], ["--output=PATH", "--"]])
def test_the_separator_before_the_command_may_be_missing(tmp_path, words):
    """V-03: the MCP Inspector with `--cli` removes each `--` from the command that it starts."""
    path = tmp_path / "c.jsonl"
    options = [word.replace("PATH", str(path)) for word in words]
    command = ["printf", "%s|", "--name", "--", "a"]
    ran = limits.run([sys.executable, "-m", "mcpspy", "wrap", *options, *command], capture_output=True, check=True)
    assert (ran.stdout, ran.stderr, path.exists()) == (b"--name|--|a|", b"", True)
