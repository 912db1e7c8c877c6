"""Which program is the client, past shells and launchers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.process.ancestry import client_command, start_of
from tests import limits
from tests.limits import LIMIT
from tests.relay.harness import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="read from /proc, which only Linux has")
CHILD = "import os; from mcpspy.process.ancestry import client_command; print(client_command(os.getppid()))"


@pytest.fixture
def programs(tmp_path):
    """Return a directory with Python under other names, and two scripts that only start their arguments."""
    for name in ("python3", "node", "uv", "agent"):
        (tmp_path / name).symlink_to(sys.executable)
    (tmp_path / "start.py").write_text("import subprocess, sys\nsubprocess.run(sys.argv[1:])\n")
    (tmp_path / "npx-cli.js").write_text("import subprocess, sys\nsubprocess.run(sys.argv[1:])\n")
    return tmp_path


def found(*command, **options):
    """Return the client that a child of `command` finds."""
    run = subprocess.run([*command], capture_output=True, text=True, check=True, timeout=LIMIT, **options)
    return run.stdout.strip()


def test_a_program_that_starts_the_relay_itself_is_the_client(programs):
    agent = [str(programs / "agent"), str(programs / "start.py")]
    child = [sys.executable, "-c", CHILD]
    assert found(*agent, *child) == str([*agent, *child])


@pytest.mark.parametrize(
    "launcher",
    [("sh", "-c", '"$@"; true', "sh"), ("uv", "start.py"), ("node", "npx-cli.js"), ("bash", "-c", '"$@"; :', "x")],
)
def test_a_launcher_is_not_the_client(programs, launcher):
    """The client is above it: here, a program with a launcher as its argument."""
    program, *rest = launcher
    path = programs / program
    words = [
        str(path) if path.exists() else program,
        *(str(programs / it) if it.endswith((".py", ".js")) else it for it in rest),
    ]
    agent = [str(programs / "agent"), str(programs / "start.py"), *words]
    child = [sys.executable, "-c", CHILD]
    assert found(*agent, *child) == str([*agent, *child])


def test_a_shell_that_a_person_types_into_is_the_client():
    assert found("sh", input=f"{sys.executable} -c '{CHILD}'; true\n") == "['sh']"


def test_a_title_is_split_into_words():
    """A program that has set its title has one text instead of words: here, its only word."""
    with limits.Popen(["agent --serve"], executable="cat", stdin=subprocess.PIPE) as process:
        until(lambda: client_command(process.pid))  # the system gives the words a moment after the program has begun
        assert client_command(process.pid) == ["agent", "--serve"]


def test_an_orphan_and_a_process_that_is_gone_have_no_client():
    assert client_command(1) == client_command(0) == client_command(2**22 + 1) == []
    assert start_of(2**22 + 1) is None
    assert str(start_of(os.getpid())) in Path("/proc/self/stat").read_text().split()


def test_a_word_that_is_not_read_to_its_end_is_left_out(programs):
    words = [str(programs / "agent"), str(programs / "start.py"), sys.executable, "-c", CHILD, "x" * 5000]
    assert found(*words) == str(words[:5])
