"""The workflow of a server author, with real peers: missing calls are recorded, then no server is needed."""

import json

import pytest

from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import each, run
from tests.replay.test_peers import MCPSPY, SESSIONS, bare, peers, report, same

KNOWN = [["add", {"a": n, "b": 2}] for n in range(7)]
NEW = [["add", {"a": 40, "b": 2}], ["echo", {"text": "new"}], ["fail", {}]]
TEN = [*KNOWN[:3], NEW[0], *KNOWN[3:6], *NEW[1:], KNOWN[6]]
PAIRS = [("python1", "node"), ("node", "python1"), ("python2", "python2")]  # client, server


@pytest.mark.parametrize(("sdk", "server"), each(PAIRS, PAIRS[:1]))
def test_three_calls_of_ten_are_recorded_and_the_next_run_needs_no_server(sdk, server, tmp_path, mcpspy):
    require_peers(sdk, server)
    command = prepare.server(server)
    capture = tmp_path / "c.jsonl"

    def said(calls, *argv):
        done = run([*prepare.answers(sdk, json.dumps(calls)), *argv])
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), done.stderr

    said(KNOWN, *MCPSPY, "wrap", "-o", capture, "--", *command)
    before = capture.read_bytes()
    found, told = said(TEN, *MCPSPY, "mock", capture, "--record-missing", "--", *command)
    assert f"{capture} lacked tools/call add, tools/call echo, tools/call fail; it has 3 requests more now" in told
    assert capture.read_bytes().startswith(before)
    assert [it.name for it in tmp_path.iterdir()] == ["c.jsonl"]
    assert said(TEN, *MCPSPY, "mock", capture) == (found, "")
    assert said(TEN, *command)[0] == found
    assert mcpspy("check", capture)[0] == 0
    same(mcpspy("replay", capture, "--format", "json", "--", *command))


ALL = {name for name in SESSIONS if not name.startswith("probe")}


@pytest.mark.parametrize("name", each({name: SESSIONS[name] for name in ALL}, {"full-python1-2025-06-18"}))
def test_all_that_a_server_can_do_passes_and_is_recorded(name, tmp_path, mcpspy):
    """Sampling, elicitation, roots, progress, cancellation, subscriptions, tasks; the capture does not exist before."""
    server, client = peers(name)
    capture = tmp_path / "c.jsonl"
    assert report(*client, "--", *MCPSPY, "mock", capture, "--record-missing", "--", *server) == bare(name)
    assert report(*client, "--", *MCPSPY, "mock", capture) == bare(name)
    same(mcpspy("replay", capture, "--format", "json", "--", *server))
