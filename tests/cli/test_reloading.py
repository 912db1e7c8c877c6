"""Invalid options of `wrap --reload` give one line, before any server is started."""

import sys

import pytest

from mcpspy.cli import wrap
from mcpspy.cli.wrap import check_reload
from mcpspy.errors import UsageError
from tests.limits import run


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--reload", "no/such/path"], "--reload no/such/path: no such file or directory"),
        (["--reload-after", "idle"], "--reload-after needs --reload PATH: which files to watch"),
        (["--reload", ".", "--reload-after", "2s"], "--reload-after takes 'idle' (wait for running calls), not '2s'"),
        (["--reload", ".", "--gate", "g.toml"], "--reload and --gate cannot be used together: give one of them"),
        (["--reload"], "--reload needs a value; see 'mcpspy wrap --help'"),
        (["--reloud", "."], "wrap has no option '--reloud'; did you mean '--reload'?"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, options, why):
    (tmp_path / "g.toml").write_text('[[gate]]\nwhen = "from:client"\ndrop = true\n')
    command = [sys.executable, "-m", "mcpspy", "wrap", *options, "--", "touch", "started"]
    done = run(command, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, f"mcpspy: {why}\n")
    assert not (tmp_path / "started").exists()


def test_without_the_library_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(
        UsageError, match=r"needs watchfiles, which is not installed: .* -m pip install 'mcpspy\[reload\]'$"
    ):
        check_reload([str(tmp_path)], None, gate=False)


def test_windows_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(wrap.sys, "platform", "win32")
    with pytest.raises(UsageError, match="Linux and macOS only"):
        check_reload([str(tmp_path)], None, gate=False)


def test_what_is_there_is_taken(tmp_path):
    check_reload([str(tmp_path), __file__], "idle", gate=False)


def test_wrap_without_it_imports_none_of_it():
    program = (
        "import sys\nfrom mcpspy.cli import main\nimport os\n"
        "os._exit = lambda status: print(*sys.modules, file=sys.stderr)\n"
        "sys.argv = ['mcpspy', 'wrap', '--', 'true']\nmain()"
    )
    done = run([sys.executable, "-c", program], capture_output=True, text=True, stdin=-3, env={"HOME": "/nonexistent"})
    assert "mcpspy.relay.stdio.relay" in done.stderr
    assert not [name for name in done.stderr.split() if "reload" in name or "watchfiles" in name or name == "threading"]
