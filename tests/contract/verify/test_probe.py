"""The records of the probe; a server behaves the same with and without it."""

import json
import os
import signal
import subprocess
import sys

import pytest

from mcpspy.contract.verify import probe
from tests import limits
from tests.contract.verify import PYTHON


@pytest.fixture
def started(tmp_path):
    """Return a function that starts a Python program behind a probe; it returns the process and the probe's folder."""

    def start(program, **options):
        argv = [*PYTHON, probe.__file__, str(tmp_path), sys.executable, "-c", program]
        pipe = subprocess.PIPE
        return limits.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, **options), tmp_path

    return start


def test_streams_pass_and_are_written_down(started):
    program = "import sys; text = sys.stdin.read(); print(text[::-1]); print('aside', file=sys.stderr); sys.exit(5)"
    process, folder = started(program)
    with process:
        out, err = process.communicate(b"one\xff\n"[:4] + b"\n")
    assert process.returncode == 5
    assert (folder / "stdin").read_bytes() == b"one\xff\n"
    assert (folder / "stdout").read_bytes() == out
    assert (folder / "stderr").read_bytes() == err == b"aside\n"
    assert (folder / "end").read_text() == "5"


def test_a_signal_is_written_down_and_reaches_the_server(started):
    process, folder = started("import time; print('ready', flush=True); time.sleep(60)")
    with process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait() == -signal.SIGTERM
    assert (folder / "signals").read_text() == "SIGTERM\n"
    assert (folder / "end").read_text() == str(-signal.SIGTERM)


def test_no_signal_is_lost_however_soon_it_follows_the_last(started):
    """Each signal is sent while the probe still handles the signal before it."""
    program = """if True:
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        for _ in range(300):
            print('ready', flush=True)
            signal.sigwait([signal.SIGUSR1])
    """
    process, folder = started(program)
    with process:
        for _ in range(300):
            assert process.stdout.readline() == b"ready\n"
            process.send_signal(signal.SIGUSR1)
        assert process.wait() == 0
    assert (folder / "signals").read_text() == "SIGUSR1\n" * 300


def test_the_start_is_written_down(started):
    process, folder = started(
        "import os; print(os.environ.get('GREETING'), os.environ.get('LC_CTYPE'))", env={"GREETING": "é"}
    )
    with process:
        out, _ = process.communicate()
    facts = json.loads((folder / "facts").read_text())
    assert facts["environment"] == {"GREETING": "é"}
    assert facts["directory"] == os.getcwd()
    assert list(facts["descriptors"]) == ["0", "1", "2"]
    assert facts["blocked signals"] == []
    assert facts["arguments"][-2] == "-c"
    assert out.split()[0] == "é".encode()


def test_the_server_has_only_its_three_descriptors_and_the_usual_signals(started):
    program = """if True:
        import os
        print(sorted(os.listdir('/proc/self/fd')))
        print(*[line for line in open('/proc/self/status') if line.startswith('SigIgn')])
    """
    process, _ = started(program)
    with process:
        out, _ = process.communicate()
    names, ignored = out.decode().split("\n")[:2]
    assert names == "['0', '1', '2', '3']"  # the last one belongs to listdir itself
    of_python = (1 << 12) | (1 << 24)  # SIGPIPE and SIGXFSZ
    of_glibc = 3 << 31  # its two internal signals; posix_spawn, which Python 3.13 uses, leaves them ignored
    assert int(ignored.split()[1], 16) & ~(of_python | of_glibc) == 0


@pytest.mark.parametrize(("command", "status"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_a_command_that_cannot_be_started(tmp_path, command, status):
    done = limits.run([*PYTHON, probe.__file__, str(tmp_path), command], stdin=subprocess.DEVNULL, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")
