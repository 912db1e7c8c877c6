"""SDK clients stay connected while their server is edited: every call gets its response, or the reason."""

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from mcpspy.report.checked import check
from tests.limits import run
from tests.optional import require_peers
from tests.peers import prepare
from tests.relay.harness import until
from tests.relay.reload.reloading import SERVER

PEERS = Path(prepare.HERE)
CLIENTS = {
    "python1": lambda: [prepare.python("python1"), str(PEERS / "edits.py")],
    "python2": lambda: [prepare.python("python2"), str(PEERS / "edits.py")],
    "node": lambda: ["node", str(PEERS / "node" / "edits.mjs")],
}


def edit(tmp_path, count, client, server):
    """Edit a server `count` times, and check the report of the client, and that no process is left."""
    require_peers(client, server)
    file = tmp_path / ("server.mjs" if server == "node" else "server.py")
    if server == "plain":
        file.write_text(SERVER)
        command = [sys.executable, "-I", "-S", str(file)]
    elif server == "node":
        shutil.copy(PEERS / "node" / "edited.mjs", file)
        command = ["node", str(file)]
    else:
        shutil.copy(PEERS / "python1" / "edited.py", file)
        command = [prepare.python("python1"), str(file)]
    capture = tmp_path / "capture.jsonl"
    wrap = [sys.executable, "-m", "mcpspy", "wrap", "-o", str(capture), "--reload", str(file), "--", *command]
    environ = os.environ | {"PEERS": str(PEERS / "node")}
    done = run([*CLIENTS[client](), str(count), str(file), *wrap], capture_output=True, env=environ, timeout=170)
    assert done.returncode == 0, done.stderr.decode()
    until(lambda: not left(file), "the end of every server")
    assert [(it.rule, it.message) for it in check(str(capture)).findings] == []
    told = json.loads(done.stdout)
    assert told["versions"] == [f"version {number}" for number in range(2, count + 2)]
    assert len(told["refused"]) == count
    assert all(f"reloaded because {file} changed; call again" in error for error in told["refused"])
    assert "the server does not run: it ended with exit status 1" in told["broken"]
    assert "SyntaxError" in told["broken"]


def left(file):
    """Return the processes whose command line has the server's file."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [process] if os.fsencode(file) in process.read_bytes() else []
        except OSError:
            continue
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_three_edits_and_a_syntax_error(tmp_path, client):
    edit(tmp_path, 3, client, "plain")


@pytest.mark.field
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("server", ["python1", "node"])
def test_twenty_edits_and_a_syntax_error_with_servers_of_the_sdks(tmp_path, client, server):
    edit(tmp_path, 20, client, server)
