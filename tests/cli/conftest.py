"""Fixtures: a separate home for commands that read configurations of clients, and gate files."""

import sys
from functools import partial

import pytest

from mcpspy import cli
from mcpspy.clients.table import CLIENTS

CONFIGURATION = """{
  // mine
  "mcpServers": {
    "weather": {"command": "npx", "args": ["-y", "weather"], "env": {"TOKEN": "s3cr3t"}},
    "notes": {"command": "uv", "disabled": true},
    "remote": {"url": "https://remote.example/mcp", "headers": {"Authorization": "x"}},
  }
}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home without configurations; the working directory is in it."""
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    moving = {variable for client in CLIENTS for place in client.places for variable, _ in place.variables}
    for name in ("MCPSPY_CAPTURE_DIR", "XDG_CONFIG_HOME", "GEMINI_CLI_TRUST_WORKSPACE", *moving):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(home / "work")
    return home


@pytest.fixture
def cursor(home):
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(CONFIGURATION)
    return path


@pytest.fixture
def run(monkeypatch, capsys):
    """Run the command line and return its exit status, stdout and stderr."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["mcpspy-under-test", *map(str, words)])
        try:
            status = cli.main()
        except SystemExit as end:  # argparse exits so after --help
            status = end.code
        return status, *capsys.readouterr()

    return run


@pytest.fixture
def mcpspy(home, run):
    """Run the command line in a separate home."""
    return run


def refusal(outcome, status=2):
    """Return the line on stderr of a command that was refused: it has this exit status and printed nothing."""
    assert (*outcome[:2], outcome[2].count("\n")) == (status, "", 1), outcome
    assert outcome[2].startswith("mcpspy: ")
    return outcome[2]


def command(name):
    """Return a fixture that runs this command, and returns its exit status, stdout and stderr."""
    return pytest.fixture(name=name)(lambda run: partial(run, name))


check, rules, schema, show = map(command, ("check", "rules", "schema", "show"))


@pytest.fixture
def gates(tmp_path):
    """Write a gate file and return its path."""

    def write(text):
        path = tmp_path / "gates.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write
