"""The command that adds an extra fits the installation: `uv tool install` makes environments without pip."""

import sys

import pytest

from mcpspy.cli import extras


@pytest.mark.parametrize(
    ("pip", "command"),
    [
        (True, f"{sys.executable} -m pip install 'mcpspy[sql]'"),
        (False, f"uv pip install --python {sys.executable} 'mcpspy[sql]'"),
    ],
)
def test_the_command_uses_pip_if_it_is_installed_and_uv_otherwise(monkeypatch, pip, command):
    monkeypatch.setattr(extras, "find_spec", lambda _: pip)
    assert extras.install_command("sql") == command
