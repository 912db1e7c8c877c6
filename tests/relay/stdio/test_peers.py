"""Real SDK clients and servers behave the same with `wrap` between them, and the capture has all bytes.

There is a separate byte tap on each side of mcpspy:

    SDK client -- tap -- mcpspy wrap -- tap -- SDK server
"""

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import End, Frame
from mcpspy.timeline import final_rows
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import each, run
from tests.relay.harness import LIMIT

FIELD = Path(prepare.HERE) / "field"
SESSIONS = [
    *((client, server, "full") for client in prepare.SDKS for server in prepare.SDKS),
    ("node", "everything", "everything"),
]
USUAL = {  # has every SDK on either side, and both eras
    ("python1", "node", "full"), ("python2", "python1", "full"), ("python2", "python2", "full"),
    ("node", "everything", "everything"),
}  # fmt: skip


def session(command: list[str], client: str, scenario: str) -> dict:
    """Run a client with the server that `command` starts, and return the report of the client."""
    done = run([*prepare.client(client, "--scenario", scenario), "--", *command])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("client", "server", "scenario"), each(SESSIONS, USUAL))
def test_a_session_is_the_same_through_wrap_and_the_capture_is_what_passed(tmp_path, client, server, scenario):
    """S-01, S-02, F-02, with every SDK on either side."""
    require_peers(client, server)
    command = prepare.everything() if server == "everything" else prepare.server(server)
    capture = tmp_path / "capture.jsonl"
    wrap = [sys.executable, "-m", "mcpspy", "wrap", "-o", str(capture), "--"]
    outer, inner = tmp_path / "outer", tmp_path / "inner"
    wrapped = [*prepare.tap(outer), "--", *wrap, *prepare.tap(inner), "--", *command]
    bare = session(command, client, scenario)
    assert session(wrapped, client, scenario) == bare
    assert bare["steps"][0]["result"]["revision"] == ("2026-07-28" if client == server == "python2" else "2025-11-25")
    judge_bytes(capture, outer, inner)
    _judge_pairs(capture)


def test_a_scripted_session_with_faults_passes_as_it_is(tmp_path):
    """S-01, F-02: frames that are not JSON-RPC are recorded like all others, and both peers check what they receive."""
    capture, outer, inner = tmp_path / "capture.jsonl", tmp_path / "outer", tmp_path / "inner"
    wrap = [sys.executable, "-m", "mcpspy", "wrap", "-o", str(capture), "--"]
    command = [*prepare.tap(outer), "--", *wrap, *prepare.tap(inner), "--", sys.executable, str(FIELD / "server.py")]
    client = [sys.executable, str(FIELD / "client.py"), "--", *command]
    done = subprocess.run(client, capture_output=True, timeout=LIMIT, check=False)
    assert done.returncode == 0, done.stderr.decode()
    judge_bytes(capture, outer, inner)
    script = (FIELD / "session.txt").read_bytes().splitlines(keepends=True)
    for mark, stream in ((b"> ", "stdin"), (b"< ", "stdout"), (b"! ", "stderr")):
        said = b"".join(line[2:] for line in script if line.startswith(mark))
        assert (outer / f"{stream}.bin").read_bytes() == said


def judge_bytes(capture, outer, inner) -> None:
    """Check that both taps and the capture have the same bytes, and that the capture has an `end`."""
    for ch, stream in ((1, "stdin"), (2, "stdout"), (3, "stderr")):
        assert hashes(outer / f"{stream}.bin") == hashes(inner / f"{stream}.bin") == _recorded(capture, ch)
    assert any(isinstance(record, End) for record in Capture(str(capture)).records())


def hashes(path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _recorded(path, ch: int) -> str:
    digest = hashlib.sha256()
    for record in Capture(str(path)).records():
        if isinstance(record, Frame) and record.ch == ch:
            digest.update(record.raw + (b"" if record.cut else b"\n"))
    return digest.hexdigest()


def _judge_pairs(path) -> None:
    """Check that every response has a request, and every request a response, except cancelled ones and a `listen`."""
    rows = list(final_rows(Capture(str(path)).records, live=False))
    assert sum(row.kind == "request" for row in rows) >= 10
    for row in rows:
        assert row.kind != "invalid"
        if row.kind in ("result", "error"):
            assert row.request is not None
            assert row.latency >= 0
        elif row.kind == "request":
            assert row.revision is not None
            assert row.status in ("ok", "error", "tool-error", "cancelled")
            assert row.status == "cancelled" or row.response
