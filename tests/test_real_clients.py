"""Real clients, without mcpspy and through it. `scripts/clients` has the scenarios and the comparison."""

import json
import os
import pwd
import sys
from pathlib import Path

import pytest

from tests import limits
from tests.peers import prepare

SCRIPTS = Path(__file__).parent.parent / "scripts"
sys.path.append(str(SCRIPTS))
import client_facts  # noqa: E402 (the line above makes it importable)
import client_rows  # noqa: E402
import real_clients  # noqa: E402

ROWS = {client.name: client for client in client_rows.CLIENTS}
SCENARIOS = {scenario.name: scenario for scenario in real_clients.SCENARIOS}


@pytest.fixture
def played(tmp_path, monkeypatch):
    def play(name, command, scenario, way):
        monkeypatch.setenv("TMPDIR", str(tmp_path))
        start = real_clients.Start(ROWS[name], command, SCENARIOS[scenario], way, tmp_path / way)
        return start.run(), start.captures

    return play


@pytest.mark.needs(".peers/node")
@pytest.mark.parametrize(("way", "reference"), [("wrap", "bare"), ("proxy", "http")])
def test_mcporter_sees_the_same_through_mcpspy(played, way, reference):
    """The scenario is a tool call and the end of the server."""
    bare, _ = played("mcporter", [prepare.mcporter()], "call", reference)
    through, captures = played("mcporter", [prepare.mcporter()], "call", way)
    assert "echo: hello" in bare["output"]
    assert client_facts.compared([bare], [through]) == "equal"
    (capture,) = captures
    command = [sys.executable, "-m", "mcpspy", "check", "--format", "json", str(capture)]
    done = limits.run(command, capture_output=True, check=True)
    assert not json.loads(done.stdout)["captures"][0]["findings"]


@pytest.mark.field
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", ROWS)
def test_a_real_client_sees_the_same_through_mcpspy(name):
    """It runs all scenarios. The first run installs the clients into the user's cache."""
    home = pwd.getpwuid(os.getuid()).pw_dir  # $HOME is the home of the tests
    command = [sys.executable, str(SCRIPTS / "clients"), "--check", "--only", name]
    done = limits.run(
        command, capture_output=True, text=True, timeout=1100, env=os.environ | {"HOME": home}, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_driver_belongs_to_a_client():
    """A forgotten file in `clients_data` would never run."""
    files = {path.name for path in client_rows.DATA.iterdir() if path.suffix in (".py", ".mjs")}
    assert {client.driver for client in ROWS.values() if client.driver} == files


def server(*events):
    return [{"pid": 1, "t": t, "event": event} for t, event in events]


def start(**facts):
    whole = {
        "way": "bare",
        "scenario": "shutdown",
        "offered": [],
        "results": [],
        "turns": [],
        "output": "",
        "status": 0,
    }
    return whole | {"servers": [], "signals": []} | facts


def test_durations_and_stacks_are_no_difference():
    outputs = ("closed\n    at onexit (a.js:1:2)\nWall time: 0.0019 seconds\nhi", "closed\nWall time: 12.5 seconds\nhi")
    one, other = (start(output=output) for output in outputs)
    assert client_facts.compared([one], [other]) == "equal"


def test_another_result_is_a_difference():
    assert client_facts.compared([start(output="a")], [start(output="b")]).startswith("different: results")


def test_metadata_of_a_message_are_compared_by_name():
    def receiving(token):
        message = {"method": "tools/list", "id": 1, "params": {"_meta": {"progressToken": token}}}
        return start(servers=[[{"pid": 1, "t": 0, "event": "< tools/list", "message": message}, *server((1, "end"))]])

    assert client_facts.compared([receiving("a")], [receiving("b")]) == "equal"


@pytest.mark.parametrize(("way", "equal"), [("bare", False), ("http", True)])
def test_requests_at_the_same_time_arrive_in_any_order_over_http(way, equal):
    events = [{"pid": 1, "t": 0, "event": "<", "message": {"method": name}} for name in ("tools/list", "prompts/list")]
    one, other = (start(way=way, servers=[[*its, *server((1, "end"))]]) for its in (events, events[::-1]))
    assert (client_facts.compared([one], [other]) == "equal") is equal


@pytest.mark.parametrize(
    ("events", "equal"),
    [
        ([(1, "eof"), (1.01, "signal SIGTERM"), (3.1, "alive")], True),
        ([(1, "signal SIGTERM"), (1.2, "eof"), (3, "alive")], False),
        ([(1, "eof"), (1, "signal SIGTERM"), (2.99, "signal SIGHUP"), (3, "alive")], True),
        ([(1, "signal SIGTERM"), (1.01, "eof"), (3, "cleaned"), (3, "end")], False),
    ],
)
def test_the_order_of_an_end_is_compared(events, equal):
    bare = start(servers=[server((1, "signal SIGTERM"), (1.02, "eof"), (2.9, "alive"))])
    assert (client_facts.compared([bare], [start(servers=[server(*events)])]) == "equal") is equal


def test_what_ends_at_the_first_sign_is_not_compared_by_it():
    one, other = (
        start(scenario="call", servers=[server((1, event), (1, "end"))]) for event in ("eof", "signal SIGTERM")
    )
    assert client_facts.compared([one], [other]) == "equal"


@pytest.mark.parametrize(
    ("events", "turns", "told"),
    [
        ([(31, "eof")], [], "30 s"),
        ([], [2.5], "goes on without it after 1.5 s"),
        ([(80, "signal SIGINT")], [], "more than 75 s"),
    ],
)
def test_the_patience_of_a_client(events, turns, told):
    one = start(servers=[server((1, "< initialize"), *events)], turns=turns, signals=[{"t": 80, "event": "SIGINT"}])
    assert client_facts.patience(one, "< initialize", 75) == told


def test_the_page_has_a_line_for_each_client_and_what_is_different():
    message = {
        "params": {"protocolVersion": "2025-11-25", "clientInfo": {"name": "a", "version": "1"}, "capabilities": {}}
    }
    bare = start(servers=[[{"pid": 1, "t": 1, "event": "< initialize", "message": message}, *server((2, "end"))]])
    wrapped = start(way="wrap", install="done", undone=True)
    known = client_facts.facts({"call": {"bare": [bare], "wrap": [wrapped]}})
    ran = {
        "outcomes": {"call": {"wrap": "equal", "proxy": "different: results"}},
        "different": {"call proxy": "so it is"},
    }
    findings = {"error framing/not-json, noise wrap": 1, "error framing/not-json, noise proxy": 2}
    clients = [
        {"name": "one", "package": "one@1", "date": "2026-01-01", "facts": known, "findings": findings, "problems": []}
        | ran,
        {
            "name": "two",
            "package": "two@2",
            "date": None,
            "facts": {},
            "findings": {},
            "outcomes": {},
            "different": {},
            "problems": [],
        },
    ]
    page = client_facts.page(clients)
    for line in (
        "| one | one@1 | 2025-11-25 `a` 1 |",
        "| two | two@2 | not run |",
        "| one | 1 of 2; call proxy: so it is | done, exact |",
        "| one | error framing/not-json (noise) |",
    ):
        assert line in page
