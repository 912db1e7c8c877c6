import json
import os
import signal
import subprocess
import sys

import pytest

from tests import limits
from tests.relay.harness import LIMIT, running

DEMO = ["-m", "mcpspy.demo.server"]


@pytest.fixture
def servers(cursor):
    """Two servers: one that answers, one that dies."""
    dying = [sys.executable, "-c", "import sys; sys.exit('\\x1b[31mno key')"]
    entries = {
        "good": {"command": sys.executable, "args": DEMO},
        "dying": {"command": dying[0], "args": dying[1:]},
    }
    cursor.write_text(json.dumps({"mcpServers": entries}))
    return cursor


def test_a_good_server_has_no_problems(servers, mcpspy):
    mcpspy("install", "cursor", "good", "--yes")
    status, out, err = mcpspy("doctor", "good")
    assert (status, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0].startswith("ok captures can be written to ")
    assert lines[1:3] == [f"Cursor, user: {servers}", "good"]
    assert lines[3].startswith("ok wrapped by mcpspy ")
    assert lines[5].startswith("ok initialize was answered after ")
    assert lines[-1] == "no problems found"


def test_each_problem_comes_with_its_fix_and_exit_code_1(servers, mcpspy):
    status, out, _ = mcpspy("doctor", "cursor")
    assert status == 1
    assert "problem  it ended after " in out
    assert "stderr: \\e[31mno key" in out, "what a server writes is shown, harmless"
    assert "fix: start its command in a shell" in out
    assert out.endswith("\n1 problem\n")


def test_a_server_of_a_project_is_started_only_when_it_is_named(servers, home, mcpspy):
    project, ran = home / "work" / ".cursor" / "mcp.json", home / "ran"
    project.parent.mkdir()
    project.write_text(json.dumps({"mcpServers": {"theirs": {"command": "touch", "args": [str(ran)]}}}))
    for target in ([], ["cursor"], ["good"]):
        assert ("the configuration is the project's, so it was not started" in mcpspy("doctor", *target)[1]) == (
            target != ["good"]
        )
        assert not ran.exists()
    mcpspy("doctor", "theirs")
    assert ran.exists()


def test_a_signal_leaves_no_server(cursor, home):
    pid = home / "pid"
    os.mkfifo(pid)
    source = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(1000)"
    cursor.write_text(json.dumps({"mcpServers": {"s": {"command": sys.executable, "args": ["-c", source]}}}))
    doctor = [sys.executable, "-m", "mcpspy", "doctor", "s"]
    with limits.Popen(doctor, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        server = int(pid.read_text())
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, err) == (130, b"")
    assert not running(server)


def test_a_configuration_that_cannot_be_read_is_a_problem(servers, mcpspy):
    servers.write_text("{")
    status, out, _ = mcpspy("doctor")
    assert status == 1
    assert "line 1, column 2: expected a key in double quotes" in out


def test_without_clients_only_the_captures_are_looked_at(mcpspy):
    status, out, _ = mcpspy("doctor")
    assert (status, out.count("\n"), out.endswith("no problems found\n")) == (0, 2, True)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("god", "there is no client and no server 'god'; did you mean 'good'?"),
        ("cursr", "did you mean 'cursor'?"),
        ("xyzzy", "'mcpspy status' lists what there is"),
        ("zed", "Zed has no configuration here"),
    ],
)
def test_an_unknown_target_is_one_line(servers, mcpspy, target, hint):
    status, _, err = mcpspy("doctor", target)
    assert status == 2
    assert hint in err
    assert err.count("\n") == 1
