import json
import sys

import pytest

from mcpspy.secrets.redactor import Redactor
from tests.cli.conftest import CONFIGURATION as TEXT
from tests.transcript import capture


def test_without_a_client_there_is_nothing(mcpspy):
    assert mcpspy("status") == (0, "no configuration of an MCP client found here\n", "")
    assert mcpspy("status", "--json") == (0, "", "")


def test_every_server_is_listed_with_its_state_and_its_captures(cursor, mcpspy, home):
    mcpspy("install", "cursor", "weather", "remote", "--yes")
    folder = home / ".mcpspy" / "captures"
    folder.mkdir()
    said = '> {"id":1,"method":"ping"}'
    path = capture(folder / "a.jsonl", said, argv=["npx", "-y", "weather"])
    capture(folder / "b.jsonl", said, argv=["npx", "-y", "another", "of the same name"])
    capture(folder / "c.jsonl", said, argv=["npx", "-y", "another"])
    capture(folder / "d.jsonl", said, transport="http", name="remote")
    capture(folder / "e.jsonl", said, transport="http", name="weather")
    status, out, err = mcpspy("status")
    assert (status, err) == (0, "")
    first, weather, notes, remote = out.splitlines()
    assert first == f"Cursor, user: {cursor}"
    assert weather.split()[:5] == ["weather", "wrapped", "1", "capture,", "the"]
    assert notes.split()[:3] == ["notes", "not", "wrapped"]
    assert "disabled in the client" in notes
    assert remote.split()[:4] == ["remote", "routed", "1", "capture,"]
    objects = [json.loads(line) for line in mcpspy("status", "--json")[1].splitlines()]
    assert [one["state"] for one in objects] == ["wrapped", "not wrapped", "routed"]
    assert list(objects[0]) == [
        "client", "scope", "path", "server", "state", "disabled", "resolves", "stale", "captures", "latest", "problem",
        "untrusted",
    ]  # fmt: skip
    assert (objects[0]["client"], objects[0]["captures"], objects[0]["latest"]) == ("cursor", 1, path)
    assert (objects[1]["disabled"], objects[2]["resolves"]) == (True, None)


def test_a_variable_in_a_command_line_may_have_been_anything(cursor, mcpspy, home):
    cursor.write_text('{"mcpServers": {"weather": {"command": "npx", "args": ["--token", "${env:K}", "PW_TOKEN=x"]}}}')
    folder = home / ".mcpspy" / "captures"
    folder.mkdir(parents=True)
    capture(folder / "a.jsonl", "", argv=["npx", *Redactor().argv(["--token", "abc", "PW_TOKEN=x"])])
    assert [json.loads(line)["captures"] for line in mcpspy("status", "--json")[1].splitlines()] == [1]


def test_each_client_has_variables_of_its_own(home, mcpspy):
    """CF-11: the client expands the variables in the command, so the text in the file is not reported as not found."""
    folder, opencode = home / ".mcpspy" / "captures", home / ".config" / "opencode"
    for one in (folder, home / ".gemini", opencode):
        one.mkdir(parents=True)
    (home / ".gemini" / "settings.json").write_text('{"mcpServers": {"a": {"command": "$NODE", "args": ["$HOME/a"]}}}')
    (opencode / "opencode.json").write_text('{"mcp": {"b": {"command": ["{env:NODE}", "{env:HOME}/b"]}}}')
    for name in "ab":
        capture(folder / f"{name}.jsonl", "", name=name, argv=["/usr/bin/node", f"/home/x/{name}"])
    listed = [json.loads(line) for line in mcpspy("status", "--json")[1].splitlines()]
    assert [(one["server"], one["captures"], one["resolves"]) for one in listed] == [("a", 1, None), ("b", 1, None)]


def test_a_value_that_is_none_in_another_configuration_hides_nothing(cursor, mcpspy, home):
    (home / ".continue").mkdir()
    (home / ".continue" / "config.yaml").write_text("d: 2026-13-45\nmcpServers:\n- name: good\n  command: x\n")
    status, out, err = mcpspy("status")
    assert (status, err) == (0, "")
    assert "weather" in out
    assert "good" in out


def test_what_is_gone_is_said(cursor, mcpspy):
    cursor.write_text(
        '{"mcpServers": {"old": {"command": "/gone/mcpspy", "args": ["wrap", "--", "' + sys.executable + '"]},'
        '"lost": {"command": "/gone/server"}, "theirs": {"command": "${env:X}/server"}, "bad": 3}}'
    )
    _, out, _ = mcpspy("status")
    assert "stale: /gone/mcpspy no longer exists" in out
    assert "/gone/server is not found" in out
    assert "it is a number or a date, not an object" in out
    old, lost, theirs, bad = [json.loads(line) for line in mcpspy("status", "--json")[1].splitlines()]
    assert (old["stale"], old["resolves"]) == ("/gone/mcpspy", True)
    assert (lost["resolves"], theirs["resolves"]) == (False, None)
    assert bad["state"] == "broken"


@pytest.mark.parametrize(
    ("entry", "resolves"),
    [
        ({"command": "./s", "cwd": "HOME"}, True),
        ({"command": "./t", "cwd": "HOME"}, False),
        ({"command": "./s"}, None),
        ({"command": "./s", "cwd": "${workspaceFolder}"}, None),
        ({"command": "~/s"}, None),
        ({"command": "HOME/s"}, True),
    ],
)
def test_a_path_is_found_where_the_server_would_be_started(cursor, home, mcpspy, entry, resolves):
    (home / "s").write_text("")
    (home / "s").chmod(0o700)
    cursor.write_text(json.dumps({"mcpServers": {"s": entry}}).replace("HOME", str(home)))
    assert json.loads(mcpspy("status", "--json")[1])["resolves"] is resolves


def test_a_mcpspy_whose_python_is_gone_is_stale(cursor, home, mcpspy):
    """This happens after an upgrade of the Python that pipx used for the environment."""
    script = home / "mcpspy"
    script.write_text("#!/gone/python3 -E\nprint()\n")
    script.chmod(0o700)
    cursor.write_text(json.dumps({"mcpServers": {"s": {"command": str(script), "args": ["wrap", "--", "true"]}}}))
    reason = f"{script} needs /gone/python3, which no longer exists"
    assert f"stale: {reason}" in mcpspy("status")[1]
    assert json.loads(mcpspy("status", "--json")[1])["stale"] == str(script)
    assert f"problem  it is wrapped by {reason}".replace(" needs", ", which needs") in mcpspy("doctor", "s")[1]
    assert f"wrapped already by {script}, which needs /gone/python3" in mcpspy("install", "cursor", "--yes")[1]
    script.write_text("#!/bin/sh\n")
    assert "stale" not in mcpspy("status")[1]


def test_a_broken_configuration_does_not_hide_the_others(cursor, home, mcpspy):
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text("x = = 1")
    status, out, _ = mcpspy("status")
    assert status == 0
    assert "config.toml: line 1, column 5: Invalid value" in out
    assert "weather" in out
    *_, broken = [json.loads(line) for line in mcpspy("status", "--json")[1].splitlines()]
    assert (broken["client"], broken["server"]) == ("codex", None)
    assert "line 1" in broken["problem"]
    assert cursor.read_text() == TEXT
