"""Captures of real sessions, served to the recorded clients and replayed to the recorded servers."""

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
EACH = pytest.mark.parametrize("name", each(SESSIONS, USUAL))
EACH_WEB = pytest.mark.parametrize(
    "name", each(WEB_SESSIONS, {"http-python2-2026-07-28", "sse-python1-2024-11-05", "field-sse"})
)


def peers(name):
    """Return the commands of the server and of the client of a capture."""
    server, client = SESSIONS[name]
    sdk, *options = client.split()
    require_peers(server, sdk)
    return prepare.everything() if server == "everything" else prepare.server(server), prepare.client(sdk, *options)


def web_client(name, url):
    """Run the client of a capture against a URL; return its report."""
    _, transport, client = WEB_SESSIONS[name]
    sdk, *options = client.split()
    done = run(prepare.mem0(url) if sdk == "mem0" else prepare.client(sdk, *options, f"--{transport}", url))
    assert done.returncode == 0, done.stderr
    return done.stdout


@EACH
def test_a_client_is_as_satisfied_with_the_mock_as_with_the_server(name, tmp_path):
    server, client = peers(name)
    session = tmp_path / "session.jsonl"
    wrap = (*MCPSPY, "wrap", "-o", session, "--")
    mocked = run([*client, "--", *wrap, *MCPSPY, "mock", CAPTURES / f"{name}.jsonl"])
    assert mocked.returncode == 0, mocked.stderr
    document = json.loads(mocked.stdout)
    assert document == json.loads(run([*client, "--", *server]).stdout)
    assert len(document["steps"]) > 5
    told = run([*MCPSPY, "diff", CAPTURES / f"{name}.jsonl", session])
    assert told.returncode == 0, told.stdout


@EACH
def test_the_server_that_was_recorded_is_still_the_same(name, tmp_path):
    server, _ = peers(name)
    done = run([*MCPSPY, "replay", CAPTURES / f"{name}.jsonl", "--format", "json", "--", *server])
    assert done.returncode == 0, done.stdout + done.stderr
    totals = json.loads(done.stdout)["totals"]
    assert totals.pop("same") > 5
    assert set(totals.values()) == {0}


def test_a_session_with_faults_is_replayed_with_them():
    server = [sys.executable, prepare.HERE + "/field/server.py"]
    done = run([*MCPSPY, "replay", CAPTURES / "field-stdio.jsonl", "--", *server])
    assert (done.returncode, done.stdout.split(": ")[1:]) == (0, ["17 comparisons", "17 same\n"])


def test_a_client_with_faults_is_served_with_them():
    """The client compares every line that it receives."""
    client = [sys.executable, prepare.HERE + "/field/client.py"]
    done = run([*client, "--", *MCPSPY, "mock", CAPTURES / "field-stdio.jsonl"])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_another_sdk_answers_otherwise():
    """The tests above would fail like this if the server changed."""
    _, _ = peers("features-node-2025-11-25")
    other, _ = peers("features-python1-2025-11-25")
    done = run([*MCPSPY, "replay", CAPTURES / "features-node-2025-11-25.jsonl", "--format", "json", "--", *other])
    assert done.returncode == 1
    changed = {(it["method"], it["name"]): it for it in json.loads(done.stdout)["exchanges"] if it["differences"]}
    assert changed["resources/read", "peer://missing"]["outcome"] == "error-changed"
    assert changed["tools/call", "later"]["differences"][0]["pointer"] == "/result/task/pollInterval"


@EACH_WEB
def test_a_client_over_http_is_as_satisfied_with_the_mock_as_with_the_server(name, tmp_path):
    """The scripted client compares every message that it receives; the other clients report what they received."""
    server, transport, client = WEB_SESSIONS[name]
    require_peers(server, client.split()[0])
    session = tmp_path / "session.jsonl"
    with served(CAPTURES / f"{name}.jsonl") as mock:
        proxy = [*MCPSPY, "proxy", "--listen", "127.0.0.1:0", "-o", str(session), mock.url]
        with running(proxy) as process:
            mocked = web_client(name, process.stdout.readline().strip())
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 0
        assert mock.end() == (0, "")
    with serving(server, transport) as url:
        assert mocked == web_client(name, url)
    told = run([*MCPSPY, "diff", CAPTURES / f"{name}.jsonl", session])
    assert told.returncode == 0, told.stdout


@EACH_WEB
def test_the_server_over_http_that_was_recorded_is_still_the_same(name):
    server, transport, client = WEB_SESSIONS[name]
    require_peers(server, client.split()[0])
    with serving(server, transport) as url:
        done = run([*MCPSPY, "replay", CAPTURES / f"{name}.jsonl", "--format", "json", "--url", url])
    assert done.returncode == 0, done.stdout + done.stderr
    totals = json.loads(done.stdout)["totals"]
    assert totals.pop("same") >= 3
    assert set(totals.values()) == {0}


WEBS = [  # a capture over stdio, and a transport
    ("features-python1-2025-11-25", "http"),
    ("features-python2-2026-07-28", "http"),
    ("full-python1-2025-06-18", "sse"),
]


@pytest.mark.parametrize(("name", "transport"), each(WEBS, WEBS[1:]))
def test_a_client_over_http_is_as_satisfied_with_the_mock(name, transport):
    _, client = peers(name)
    capture = CAPTURES / f"{name}.jsonl"
    with served(capture) as mock:
        done = run([*client, f"--{transport}", mock.url])
        assert done.returncode == 0, done.stderr
        assert mock.end() == (0, "")
    assert json.loads(done.stdout) == json.loads(run([*client, "--", *MCPSPY, "mock", capture]).stdout)


@pytest.mark.parametrize(("name", "transport"), each(WEBS, WEBS[1:]))
def test_a_server_over_http_answers_as_it_did_on_pipes(name, transport):
    peers(name)
    with serving(SESSIONS[name][0], transport) as url:
        done = run([*MCPSPY, "replay", CAPTURES / f"{name}.jsonl", "--url", url])
    assert done.returncode == 0, done.stdout + done.stderr
