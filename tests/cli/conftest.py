"""Fixtures: a separate home for commands that read configurations of clients, and gate files."""

import sys

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
def mcpspy(home, monkeypatch, capsys):
    """Run the command line and return its exit status, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mcpspy-under-test", *arguments])
        return cli.main(), *capsys.readouterr()

    return run


@pytest.fixture
def gates(tmp_path):
    """Write a gate file and return its path."""

    def write(text):
        path = tmp_path / "gates.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write
