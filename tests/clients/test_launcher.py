import os
import subprocess
import sys

import pytest

from mcpspy.clients.entries import wrapped
from mcpspy.clients.launcher import fleeting, launcher
from mcpspy.errors import ConfigError


@pytest.fixture
def script(tmp_path, monkeypatch):
    """An executable `mcpspy`, and a link to it in a directory on PATH."""
    real = tmp_path / "venv" / "mcpspy"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    link = tmp_path / "bin" / "mcpspy"
    link.parent.mkdir()
    link.symlink_to(real)
    monkeypatch.setenv("PATH", str(link.parent))
    monkeypatch.chdir(tmp_path)
    return link


def test_a_path_that_no_configuration_can_hold_is_said(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest"])
    monkeypatch.setattr(sys, "executable", "/b\udcff/python")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        launcher()


@pytest.mark.parametrize("called", ["mcpspy", "bin/mcpspy", "./bin/mcpspy", None])
def test_a_script_is_named_absolutely_and_not_resolved(script, monkeypatch, called):
    monkeypatch.setattr(sys, "argv", [called or str(script), "install"])
    assert launcher() == [str(script)]


@pytest.mark.parametrize("called", ["/x/mcpspy/__main__.py", "-c", "", "/gone/mcpspy", "pytest"])
def test_otherwise_it_is_the_interpreter_and_the_module(script, monkeypatch, called):
    monkeypatch.setattr(sys, "argv", [called])
    words = launcher()
    assert words == [sys.executable, "-m", "mcpspy"]
    assert os.path.isabs(words[0])


def test_these_words_start_mcpspy_from_any_directory_and_are_known_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["-c"])
    line = [*launcher(), "wrap", "--name", "one", "--", "sh", "-c", "exit 7"]
    behind = wrapped(line)
    assert behind
    assert behind.ours
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    run = subprocess.run(line, cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, check=False, timeout=60)
    assert run.returncode == 7


def test_what_lies_in_the_cache_of_uvx_will_vanish():
    assert fleeting(["/home/me/.cache/uv/archive-v0/x1/bin/mcpspy"])
    assert fleeting(["C:\\uv\\cache\\archive-v0\\x1\\mcpspy.exe"])
    assert not fleeting(["/home/me/.local/bin/mcpspy"])
