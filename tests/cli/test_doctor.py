import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from mcpspy.clients import checks
from tests import limits
from tests.relay.harness import LIMIT, running, until

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


def test_five_mistakes_are_found_and_nothing_before_and_after(home, mcpspy, monkeypatch):
    """CF-11: a wrong command, a missing file, a trailing comma, a port in use, an untrusted folder."""
    path, trusted = home / ".gemini" / "settings.json", home / ".gemini" / "trustedFolders.json"
    path.parent.mkdir()
    trust = json.dumps({str(home / "work"): "TRUST_FOLDER"})
    trusted.write_text(trust)
    good = {"mcpServers": {"good": {"command": sys.executable, "args": DEMO}}}
    right = json.dumps(good)

    def doctor(text):
        path.write_text(text)
        status, out, _ = mcpspy("doctor", "gemini-cli")
        assert status == ("  problem  " in out)
        return out

    assert "no problems found" in doctor(right)
    assert "no-such-command is not on PATH" in doctor(right.replace(sys.executable, "no-such-command"))
    assert "/no/such.py" in doctor(
        json.dumps({"mcpServers": {"s": {"command": sys.executable, "args": ["/no/such.py"]}}})
    )
    assert f"line 1, column {len(right)}: a trailing comma; Gemini CLI cannot read" in doctor(right[:-1] + ",}")
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"http://127.0.0.1:{other.getsockname()[1]}/r"
        (home / ".mcpspy").mkdir(exist_ok=True)
        route = {"origin": "https://h", "paths": {}, "ports": [other.getsockname()[1]]}
        (home / ".mcpspy" / "routes.json").write_text(json.dumps({"r": route}))
        monkeypatch.setattr(checks, "routes_at", lambda _: [])
        out = doctor(json.dumps({"mcpServers": {"r": {"httpUrl": url}}}))
    assert "which does not serve the route 'r'" in out
    assert "mcpspy proxy --from gemini-cli --listen 127.0.0.1:" in out
    trusted.write_text("{}")
    assert f"Gemini CLI does not trust {home / 'work'}, and ignores its servers, the user's too" in doctor(right)
    assert "note: Gemini CLI does not trust" in mcpspy("status")[1]
    assert "does not trust" in json.loads(mcpspy("status", "--json")[1])["untrusted"]
    trusted.write_text(trust)
    assert "no problems found" in doctor(right)


def test_newer_toml_than_ours_may_be_right_for_the_client(home, mcpspy):
    """Codex reads TOML 1.1, which allows line breaks in inline tables."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("a = {\n}\n")
    out = mcpspy("doctor", "codex")[1]
    assert "fix: correct the file; if the client reads it, it is TOML 1.1, and mcpspy reads TOML 1.0" in out


def test_without_clients_only_the_captures_are_looked_at(mcpspy):
    status, out, _ = mcpspy("doctor")
    assert (status, out.count("\n"), out.endswith("no problems found\n")) == (0, 2, True)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("god", "there is no client and no server 'god'; did you mean 'good'?"),
        ("cursr", "did you mean 'cursor'?"),
        ("xyzzy", "'mcpspy status' lists"),
        ("zed", "Zed has no configuration here"),
    ],
)
def test_an_unknown_target_is_one_line(servers, mcpspy, target, hint):
    status, _, err = mcpspy("doctor", target)
    assert status == 2
    assert hint in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_on_a_terminal_long_lines_are_folded_but_not_within_what_is_to_be_copied(home, mcpspy, monkeypatch, columns):
    path = home / ".config" / "Claude" / "claude_desktop_config.json"
    path.parent.mkdir(parents=True)
    entry = {"command": "docker", "args": ["run", "--name", "a name with blanks", "img"]}
    path.write_text(json.dumps({"mcpServers": {"s": entry}}))
    plain = mcpspy("doctor", "claude-desktop")[1]
    monkeypatch.setattr("mcpspy.cli.status.line_width", lambda _: columns)
    folded = mcpspy("doctor", "claude-desktop")[1]
    assert " ".join(folded.split()) == " ".join(plain.split())
    assert '"a name with blanks"' in folded
    said = [line for line in folded.splitlines() if str(home) not in line]
    assert max(map(len, said)) <= max(columns, len('             "a name with blanks",'))
    assert all(line.startswith(" " * 13) for line in said if '"img"' in line)


def test_a_signal_leaves_no_program_that_was_asked_for_its_version(cursor, home):
    """Before a server is started, its launcher is, with processes of its own."""
    pid, launcher = home / "pid", home / "mcpspy"
    os.mkfifo(pid)
    launcher.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! >{pid}\nwait\n")
    launcher.chmod(0o700)
    cursor.write_text(json.dumps({"mcpServers": {"s": {"command": str(launcher), "args": ["wrap", "--", "true"]}}}))
    doctor = [sys.executable, "-m", "mcpspy", "doctor", "s"]
    with limits.Popen(doctor, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        left = int(pid.read_text())
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, err) == (130, b"")
    until(lambda: not running(left))
