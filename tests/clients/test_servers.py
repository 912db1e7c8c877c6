"""The servers of a configuration, and whether their client trusts the folder."""

import json
import os

import pytest

from mcpspy.clients.places import Found
from mcpspy.clients.routes import Route
from mcpspy.clients.servers import servers, untrusted
from mcpspy.clients.table import BY_ID, PROJECT, USER
from mcpspy.errors import ConfigError
from tests.clients.configurations import machine

TEXT = """{"mcpServers": {
  "plain": {"command": "npx", "args": ["x"], "env": {"A": "1", "N": null, "P": 3}, "cwd": "/srv", "envFile": "/e"},
  "wrapped": {"command": "/x/mcpspy", "args": ["wrap", "--", "npx", "y"], "disabled": true},
  "remote": {"url": "https://h/mcp"},
  "routed": {"url": "http://127.0.0.1:6278/routed/mcp"},
  "lost": {"url": "http://127.0.0.1:6278/lost"},
  "broken": {"command": 1},
  "nothing": {"command": "mcpspy", "args": ["wrap", "--"]},
  "empty": {"command": ""},
  "none": {}
}}"""


@pytest.fixture
def found(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(TEXT)
    return Found(BY_ID["cursor"], BY_ID["cursor"].places[0], str(path))


def test_every_server_is_told_with_mcpspy_taken_off(found, tmp_path):
    listed = {one.name: one for one in servers(found, machine(tmp_path), {"routed": Route("https://origin", {})})}
    assert {name: one.state for name, one in listed.items()} == {
        "plain": "not wrapped",
        "wrapped": "wrapped",
        "remote": "not routed",
        "routed": "routed",
        "lost": "routed",
        "broken": "broken",
        "nothing": "broken",
        "empty": "broken",
        "none": "broken",
    }
    plain, behind = listed["plain"], listed["wrapped"]
    assert (plain.words, plain.environ) == (["npx", "x"], {"A": "1", "P": "3"})
    assert (plain.cwd, plain.env_file) == ("/srv", "/e")
    assert (behind.words, behind.launcher, behind.disabled) == (["npx", "y"], ["/x/mcpspy"], True)
    assert (listed["remote"].url, listed["routed"].url) == ("https://h/mcp", "https://origin/mcp")
    assert (listed["lost"].url, listed["lost"].route) == (None, "lost")
    assert "its command is a number" in listed["broken"].problem


def test_what_cannot_be_read_names_the_file(found, tmp_path):
    with open(found.path, "w") as file:
        file.write("{")
    with pytest.raises(ConfigError, match=rf"^{found.path}: line 1, column 2: "):
        servers(found, machine(tmp_path), {})


def said(client, scope, here):
    place = next(place for place in BY_ID[client].places if place.scope == scope)
    return untrusted(Found(BY_ID[client], place, "x"), here)


def remember(here, path, text):
    path = os.path.join(here.home, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace("CWD", here.cwd).replace("ABOVE", os.path.dirname(here.cwd)))


@pytest.mark.parametrize(
    ("rules", "trusted"),
    [
        ("{}", False),
        ('{"CWD": "TRUST_FOLDER"} // c', True),
        ('{"ABOVE": "TRUST_FOLDER"}', True),
        ('{"ABOVE": "TRUST_FOLDER", "CWD": "DO_NOT_TRUST"}', False),
        ('{"CWD/other": "TRUST_PARENT"}', True),
        ('{"CWD/other": "TRUST_FOLDER"}', False),
        ('{"CWDx": "TRUST_FOLDER", "y": 3}', False),
        ("[]", False),
        ("{", False),
    ],
)
def test_gemini_cli_and_qwen_follow_rules(tmp_path, rules, trusted):
    """CF-11: the rules apply to all servers, also to the user's; in Qwen Code only if folder trust is enabled."""
    here = machine(tmp_path)
    remember(here, ".gemini/trustedFolders.json", rules)
    assert bool(said("gemini-cli", USER, here)) == bool(said("gemini-cli", PROJECT, here)) == (not trusted)
    remember(here, ".qwen/trustedFolders.json", rules)
    assert not said("qwen", USER, here)
    remember(here, ".qwen/settings.json", json.dumps({"security": {"folderTrust": {"enabled": True}}}))
    assert bool(said("qwen", USER, here)) == (not trusted)


def test_gemini_cli_may_be_told_to_trust(tmp_path):
    here = machine(tmp_path)
    remember(here, ".gemini/settings.json", "{}")
    assert said("gemini-cli", USER, here) == (
        f"Gemini CLI does not trust {here.cwd}, and ignores its servers, the user's too"
    )
    here.environ["GEMINI_CLI_TRUST_WORKSPACE"] = "true"
    assert not said("gemini-cli", USER, here)
    here.environ.clear()
    remember(here, ".gemini/settings.json", '{"security": {"folderTrust": {"enabled": false}}}')
    assert not said("gemini-cli", USER, here)
    here.environ["GEMINI_CLI_TRUST_WORKSPACE"] = "false"
    assert said("gemini-cli", USER, here)


def test_codex_ignores_the_project_s_file_until_the_directory_or_its_repository_is_trusted(tmp_path):
    here = machine(tmp_path)
    remember(here, ".codex/config.toml", "[projects]\n")
    assert said("codex", PROJECT, here) == f"Codex CLI does not trust {here.cwd}, and ignores this file"
    assert not said("codex", USER, here)
    remember(here, ".codex/config.toml", '[projects."CWD"]\ntrust_level = "trusted"\n')
    assert not said("codex", PROJECT, here)
    deep = machine(tmp_path, cwd=os.path.join(here.cwd, "deep"))
    assert said("codex", PROJECT, deep)
    assert not said("codex", PROJECT, machine(tmp_path, cwd=deep.cwd, repository=here.cwd, main=here.cwd))


@pytest.mark.parametrize("key", ["trustedFolders", "trusted_folders"])
def test_copilot_cli_lists_the_folders_that_it_trusts(tmp_path, key):
    here = machine(tmp_path)
    remember(here, ".copilot/config.json", "{}")
    assert said("copilot", PROJECT, here)
    assert not said("copilot", USER, here)
    remember(here, ".copilot/config.json", f'{{"{key}": ["/other", 3, "ABOVE"]}}')
    assert not said("copilot", PROJECT, here)


def test_a_client_that_was_never_started_is_not_spoken_of(tmp_path):
    for client in ("gemini-cli", "codex", "copilot", "cursor"):
        assert not said(client, PROJECT, machine(tmp_path))
