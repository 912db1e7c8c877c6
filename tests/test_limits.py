"""No test waits for ever, whichever signals were ignored when the tests were started."""

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import limits

HERE = Path(__file__).parent
PROGRAMS = HERE / "peers"  # are run on their own
OWN = {HERE / "limits.py", HERE / "peers" / "prepare.py"}


def without_a_limit(source):
    """Yield the lines that may wait for ever: processes, reads and threads without a time limit."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        called, given = ast.unparse(node.func), {keyword.arg for keyword in node.keywords}
        if (
            called in ("subprocess.Popen", "os.read", "subprocess.getoutput")
            or (
                called in ("subprocess.run", "subprocess.check_output", "subprocess.check_call")
                and "timeout" not in given
            )
            or (called in ("threading.Thread", "Thread") and "daemon" not in given)
        ):
            yield f"{node.lineno}: {called}"


def test_whatever_waits_for_a_process_has_a_limit():
    found = {
        str(path.relative_to(HERE)): faults
        for path in HERE.rglob("*.py")
        if path not in OWN and (PROGRAMS not in path.parents or path.name == "serving.py")
        if (faults := list(without_a_limit(path.read_text())))
    }
    assert found == {}


@pytest.mark.parametrize("line", ["subprocess.Popen([])", "subprocess.run([])", "os.read(0, 1)", "Thread(target=f)"])
def test_what_has_none_is_found(line):
    assert list(without_a_limit(line)) == [f"1: {line.partition('(')[0]}"]


@pytest.mark.parametrize("options", [{}, {"text": True}, {"bufsize": 0}])
@pytest.mark.parametrize("read", ["read", "readline"])
def test_a_read_from_a_process_that_says_nothing_fails(monkeypatch, options, read):
    monkeypatch.setattr(limits, "within", lambda call, *arguments: WITHIN(call, *arguments, seconds=0.01))
    monkeypatch.setattr(limits, "read", lambda fd, size: READ(fd, size, 0.01))
    with limits.Popen([sys.executable, "-c", "input()"], stdin=-1, stdout=-1, **options) as process:
        with pytest.raises(AssertionError, match=r"0\.01 s"):
            getattr(process.stdout, read)()
        process.kill()


WITHIN, READ = limits.within, limits.read


def test_what_a_process_says_is_read_whole():
    program = "print('one'); print('two')"
    for options in ({}, {"bufsize": 0}):
        with limits.Popen([sys.executable, "-c", program], stdout=-1, **options) as process:
            assert (process.stdout.readline(), process.stdout.read(2), process.stdout.read()) == (
                b"one\n",
                b"tw",
                b"o\n",
            )


def test_what_came_with_a_line_is_not_lost():
    with limits.Popen([sys.executable, "-c", "print('one'); print('two')"], stdout=-1, bufsize=0) as process:
        assert process.stdout.readline() == b"one\n"
        assert process.communicate() == (b"two\n", None)


def test_a_process_is_killed_by_the_failure_of_its_block():
    with pytest.raises(ZeroDivisionError), limits.Popen([sys.executable, "-c", "input()"], stdin=-1) as process:
        raise ZeroDivisionError
    assert process.returncode == -signal.SIGKILL


def test_an_error_within_a_limit_is_that_of_the_call():
    with pytest.raises(ZeroDivisionError):
        limits.within(divmod, 1, 0)


HOW = """
import os, signal, subprocess, sys
def test():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())
    child = "import signal; print(*(int(signal.getsignal(n) == signal.SIG_IGN) for n in (1, 2, 3)))"
    assert subprocess.run([sys.executable, "-c", child], capture_output=True, timeout=60).stdout == b"0 0 0\\n"
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_the_tests_heed_signals_that_they_were_started_to_ignore(tmp_path, workers):
    """The signals are ignored under `nohup` and in the background of a script. Started processes obey them too."""
    (tmp_path / "test_how.py").write_text(HOW)
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "tests.conftest", "-p", "no:cacheprovider"]
    program = (
        "import os, signal, sys\nfor number in (1, 2, 3): signal.signal(number, signal.SIG_IGN)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {15})\nos.execv(sys.argv[1], sys.argv[1:])"
    )
    done = limits.run(
        [sys.executable, "-c", program, *command, "--rootdir", tmp_path, "-c", os.devnull, tmp_path],
        cwd=HERE.parent, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_a_thread_that_a_test_leaves_does_not_keep_the_tests_from_ending(tmp_path):
    (tmp_path / "test_left.py").write_text(
        "import threading\nfrom tests import conftest\nconftest.LEFT = 0.01\n"
        "def test(): threading.Thread(target=threading.Event().wait, name='forgotten').start()\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    done = limits.run(
        [*command, "--rootdir", tmp_path, "-c", os.devnull, tmp_path],
        cwd=HERE.parent, capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_XDIST_WORKER"},
    )  # fmt: skip
    assert (done.returncode, "1 passed" in done.stdout) == (1, True)
    assert "a test has left the thread forgotten" in done.stderr
