"""The command line in the process of the tests."""

import sys

import pytest

from mcpspy import cli
from mcpspy.transport.link import signals_restored


@pytest.fixture
def mcpspy(monkeypatch, capsys):
    """Run the command line and return its exit status, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["mcpspy", *map(str, arguments)])
        with signals_restored():
            return cli.main(), *capsys.readouterr()

    return run
