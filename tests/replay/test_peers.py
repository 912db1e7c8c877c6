"""The captures of real sessions, served to the clients and replayed to the servers that were recorded."""

import json
import subprocess
import sys

import pytest

from tests.peers import prepare
from tests.replay.webs import listening, served
from tests.timelines import CAPTURES

LIMIT = 60  # seconds
SESSIONS = {  # the capture, its server, its client with the client's options: those of scripts/record-golden
    "features-node-2024-11-05": ("node", "python1 --scenario features --revision 2024-11-05"),
    "features-python2-2025-03-26": ("python2", "node --scenario features --revision 2025-03-26"),
    "full-python1-2025-06-18": ("python1", "python2 --scenario full --revision 2025-06-18"),
    "features-python1-2025-11-25": ("python1", "node --scenario features --revision 2025-11-25"),
    "features-node-2025-11-25": ("node", "python1 --scenario features --revision 2025-11-25"),
    "everything-2025-11-25": ("everything", "node --scenario everything"),
    "probe-node-2025-11-25": ("node", "python2 --scenario basic"),
    "features-python2-2026-07-28": ("python2", "python2 --scenario features"),
}
MCPSPY = (sys.executable, "-m", "mcpspy")
EACH = pytest.mark.parametrize("name", SESSIONS)


def peers(name):
    """The commands of the server and of the client of a capture."""
    server, client = SESSIONS[name]
    sdk, *options = client.split()
    for needed in {"node" if server == "everything" else server, sdk}:
        if not prepare.ready(needed):
            pytest.skip(f"no environment of {needed}: run tests/peers/prepare.py")
    return prepare.everything() if server == "everything" else prepare.server(server), prepare.client(sdk, *options)


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=LIMIT, check=False)


@EACH
def test_a_client_is_as_satisfied_with_the_mock_as_with_the_server(name, tmp_path):
    server, client = peers(name)
    session = tmp_path / "session.jsonl"
    wrap = (*MCPSPY, "wrap", "-o", session, "--")
    mocked = run(*client, "--", *wrap, *MCPSPY, "mock", CAPTURES / f"{name}.jsonl")
    assert mocked.returncode == 0, mocked.stderr
    document = json.loads(mocked.stdout)
    assert document == json.loads(run(*client, "--", *server).stdout)
    assert len(document["steps"]) > 5
    told = run(*MCPSPY, "diff", CAPTURES / f"{name}.jsonl", session)
    assert told.returncode == 0, told.stdout


@EACH
def test_the_server_that_was_recorded_is_still_the_same(name, tmp_path):
    server, _ = peers(name)
    done = run(*MCPSPY, "replay", CAPTURES / f"{name}.jsonl", "--format", "json", "--", *server)
    assert done.returncode == 0, done.stdout + done.stderr
    totals = json.loads(done.stdout)["totals"]
    assert totals.pop("same") > 5
    assert set(totals.values()) == {0}


def test_a_session_with_faults_is_replayed_with_them():
    server = [sys.executable, prepare.HERE + "/field/server.py"]
    done = run(*MCPSPY, "replay", CAPTURES / "field-stdio.jsonl", "--", *server)
    assert (done.returncode, done.stdout.split(": ")[1:]) == (0, ["17 comparisons", "17 same\n"])


def test_a_client_with_faults_is_served_with_them():
    """It compares every line that it hears."""
    client = [sys.executable, prepare.HERE + "/field/client.py"]
    done = run(*client, "--", *MCPSPY, "mock", CAPTURES / "field-stdio.jsonl")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_another_sdk_answers_otherwise():
    """What the test above would say if the server had changed."""
    _, _ = peers("features-node-2025-11-25")
    other, _ = peers("features-python1-2025-11-25")
    done = run(*MCPSPY, "replay", CAPTURES / "features-node-2025-11-25.jsonl", "--format", "json", "--", *other)
    assert done.returncode == 1
    changed = {(it["method"], it["name"]): it for it in json.loads(done.stdout)["exchanges"] if it["differences"]}
    assert changed["resources/read", "peer://missing"]["outcome"] == "error-changed"
    assert changed["tools/call", "later"]["differences"][0]["pointer"] == "/result/task/pollInterval"


WEBS = [  # a capture, the transport, the path of a server's endpoint
    ("features-python1-2025-11-25", "http", "/mcp"),
    ("features-python2-2026-07-28", "http", "/mcp"),
    ("full-python1-2025-06-18", "sse", "/sse"),
]


@pytest.mark.parametrize(("name", "transport", "path"), WEBS)
def test_a_client_over_http_is_as_satisfied_with_the_mock(name, transport, path):
    _, client = peers(name)
    capture = CAPTURES / f"{name}.jsonl"
    with served(capture) as mock:
        done = run(*client, f"--{transport}", mock.url)
        assert done.returncode == 0, done.stderr
        assert mock.end() == (0, "")
    assert json.loads(done.stdout) == json.loads(run(*client, "--", *MCPSPY, "mock", capture).stdout)


@pytest.mark.parametrize(("name", "transport", "path"), WEBS)
def test_a_server_over_http_answers_as_it_did_on_pipes(name, transport, path):
    server, _ = peers(name)
    with listening([*server, f"--{transport}"]) as origin:
        done = run(*MCPSPY, "replay", CAPTURES / f"{name}.jsonl", "--url", origin + path)
    assert done.returncode == 0, done.stdout + done.stderr
