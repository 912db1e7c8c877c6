"""Captures of real sessions, served to the recorded clients and replayed to the recorded servers."""

import functools
import json
import signal
import sys

import pytest

from tests.limits import LIMIT
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import each, run, running, serving
from tests.replay.webs import served
from tests.timelines import CAPTURES

SESSIONS = {  # capture: server, client with its options, as in scripts/record-golden
    "features-node-2024-11-05": ("node", "python1 --scenario features --revision 2024-11-05"),
    "features-python2-2025-03-26": ("python2", "node --scenario features --revision 2025-03-26"),
    "full-python1-2025-06-18": ("python1", "python2 --scenario full --revision 2025-06-18"),
    "features-python1-2025-11-25": ("python1", "node --scenario features --revision 2025-11-25"),
    "features-node-2025-11-25": ("node", "python1 --scenario features --revision 2025-11-25"),
    "everything-2025-11-25": ("everything", "node --scenario everything"),
    "probe-node-2025-11-25": ("node", "python2 --scenario basic"),
    "features-python2-2026-07-28": ("python2", "python2 --scenario features"),
}
WEB_SESSIONS = {  # over HTTP: capture: server, transport, client
    "http-python1-2025-11-25": ("python1", "http", "python1 --scenario features"),
    "http-everything-2025-11-25": ("everything", "http", "node --scenario everything"),
    "http-python2-2026-07-28": ("python2", "http", "python2 --scenario features"),
    "sse-python1-2024-11-05": ("python1", "sse", "node --scenario features --revision 2024-11-05"),
    "field-sse": ("mem0", "sse", "mem0"),
}
MCPSPY = (sys.executable, "-m", "mcpspy")
USUAL = {  # every SDK, the oldest and the newest revision, a server with every feature
    "features-node-2024-11-05", "full-python1-2025-06-18", "everything-2025-11-25", "features-python2-2026-07-28",
}  # fmt: skip
OVER_HTTP = {  # the sessions on stdio that are also served and replayed over HTTP: capture: transport
    "features-python1-2025-11-25": "http",
    "features-python2-2026-07-28": "http",
    "full-python1-2025-06-18": "sse",
}


def peers(name):
    """Return the commands of the server and of the client of a capture."""
    server, client = SESSIONS[name]
    sdk, *options = client.split()
    require_peers(server, sdk)
    return prepare.everything() if server == "everything" else prepare.server(server), prepare.client(sdk, *options)


def report(*command):
    """Run a client; return its report."""
    done = run(command)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if done.stdout else None


@functools.cache
def bare(name):
    """Return the report of the client of a capture about its server, without mcpspy."""
    server, client = peers(name)
    return report(*client, "--", *server)


def same(replayed):
    """Check the result of `mcpspy replay --format json`: all is the same. Return the number of comparisons."""
    code, out, err = replayed
    assert code == 0, out + err
    totals = json.loads(out)["totals"]
    assert set(totals.values()) == {0, totals["same"]}
    return totals["same"]


@pytest.mark.parametrize("name", each(SESSIONS, USUAL))
def test_a_session_is_mocked_for_its_client_and_replayed_to_its_server(name, tmp_path, mcpspy):
    server, client = peers(name)
    capture, session = CAPTURES / f"{name}.jsonl", tmp_path / "session.jsonl"
    assert len(bare(name)["steps"]) > 5
    assert report(*client, "--", *MCPSPY, "wrap", "-o", session, "--", *MCPSPY, "mock", capture) == bare(name)
    assert mcpspy("diff", capture, session)[0] == 0
    assert same(mcpspy("replay", capture, "--format", "json", "--", *server)) > 5
    if transport := OVER_HTTP.get(name):
        with served(capture) as mock:
            assert report(*client, f"--{transport}", mock.url) == bare(name)
            assert mock.end() == (0, "")
        with serving(SESSIONS[name][0], transport) as url:
            assert same(mcpspy("replay", capture, "--format", "json", "--url", url)) > 5


def test_a_session_with_faults_is_replayed_with_them(mcpspy):
    server = [sys.executable, prepare.HERE + "/field/server.py"]
    assert same(mcpspy("replay", CAPTURES / "field-stdio.jsonl", "--format", "json", "--", *server)) == 17


def test_a_client_with_faults_is_served_with_them():
    """The client compares every line that it receives."""
    client = [sys.executable, prepare.HERE + "/field/client.py"]
    done = run([*client, "--", *MCPSPY, "mock", CAPTURES / "field-stdio.jsonl"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_another_sdk_answers_otherwise(mcpspy):
    """The tests above would fail like this if the server changed."""
    require_peers("node")
    other, _ = peers("features-python1-2025-11-25")
    capture = CAPTURES / "features-node-2025-11-25.jsonl"
    code, out, _ = mcpspy("replay", capture, "--format", "json", "--", *other)
    changed = {(it["method"], it["name"]): it for it in json.loads(out)["exchanges"] if it["differences"]}
    assert code == 1
    assert changed["resources/read", "peer://missing"]["outcome"] == "error-changed"
    assert changed["tools/call", "later"]["differences"][0]["pointer"] == "/result/task/pollInterval"


def web_client(name, url):
    """Run the client of a capture against a URL; return its report. A scripted client has none."""
    _, transport, client = WEB_SESSIONS[name]
    sdk, *options = client.split()
    return report(*(prepare.mem0(url) if sdk == "mem0" else prepare.client(sdk, *options, f"--{transport}", url)))


@pytest.mark.parametrize("name", each(WEB_SESSIONS, {"http-python2-2026-07-28", "sse-python1-2024-11-05", "field-sse"}))
def test_a_session_over_http_is_mocked_for_its_client_and_replayed_to_its_server(name, tmp_path, mcpspy):
    """The scripted client compares every message that it receives; the other clients report what they received."""
    server, transport, client = WEB_SESSIONS[name]
    require_peers(server, client.split()[0])
    capture, session = CAPTURES / f"{name}.jsonl", tmp_path / "session.jsonl"
    with served(capture) as mock:
        proxy = [*MCPSPY, "proxy", "--listen", "127.0.0.1:0", "-o", str(session), mock.url]
        with running(proxy) as process:
            mocked = web_client(name, process.stdout.readline().strip())
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 0
        assert mock.end() == (0, "")
    assert mcpspy("diff", capture, session)[0] == 0
    with serving(server, transport) as url:
        assert mocked == web_client(name, url)
    with serving(server, transport) as url:  # a new one: a session changes its lists
        assert same(mcpspy("replay", capture, "--format", "json", "--url", url)) >= 3
