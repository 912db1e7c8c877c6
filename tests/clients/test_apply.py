"""A configuration on the disk is replaced whole or not at all, and the backup is kept first."""

import os
import stat
import subprocess
import sys

import pytest

from mcpspy.clients import apply
from mcpspy.clients.apply import check_writable, forget, load, recall, remember, replace, write_private
from mcpspy.errors import ConfigError
from tests import limits
from tests.limits import LIMIT

TEXT = b'\xef\xbb\xbf{"a": 1}\r\n'


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def path(tmp_path):
    folder = tmp_path / "config"
    folder.mkdir()
    (folder / "mcp.json").write_bytes(TEXT)
    return folder / "mcp.json"


def test_a_configuration_is_read_with_every_byte(path):
    config = load(str(path))
    assert (config.raw, config.text.encode(), config.real) == (TEXT, TEXT, str(path))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "cannot read .*: No such file"),
        ("dir", "cannot read .*: Is a directory"),
        (b"a\n\xff", "line 2: not UTF-8"),
    ],
)
def test_what_cannot_be_read_says_why(path, content, fault):
    path.unlink()
    if content == "dir":
        path.mkdir()
    elif content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=fault):
        load(str(path))


def test_what_is_no_file_or_too_large_is_not_read(path, monkeypatch):
    monkeypatch.setattr(apply, "LARGEST", 3)
    with pytest.raises(ConfigError, match="larger than"):
        load(str(path))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"cannot read .*: it is not a regular file but a pipe"):
        load(str(path))


def test_drafts_of_killed_processes_are_removed_and_those_of_others_stay(path, home):
    with limits.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    dead, mine, living, other = (f"mcp.json.mcpspy-{end}" for end in (ended.pid, os.getpid(), os.getppid(), "x"))
    for name in (dead, mine, living, other):
        (path.parent / name).write_text("")
    replace(load(str(path)), b"new")
    assert sorted(os.listdir(path.parent)) == sorted(["mcp.json", living, other])
    remember(load(str(path)), b"", b"")
    folder = home / ".mcpspy" / "install"
    names = set(os.listdir(folder))
    for name in names:
        (folder / f"{name}.mcpspy-{ended.pid}").write_text("")
    remember(load(str(path)), b"", b"")
    assert set(os.listdir(folder)) == names


def test_replacing_keeps_the_mode_and_the_name_alone(path):
    path.chmod(0o640)
    replace(load(str(path)), b"new")
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == ["mcp.json"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away")
def test_replacing_keeps_the_owner(path):
    os.chown(path, 1234, 2345)
    path.chmod(0o2644)
    replace(load(str(path)), b"new")
    status = path.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (1234, 2345, 0o2644)


def test_the_target_of_a_link_is_replaced_and_the_link_stays(path, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(os.path.join("config", "mcp.json"))
    config = load(str(link))
    assert (config.path, config.real) == (str(link), str(path))
    replace(config, b"new")
    assert os.readlink(link) == os.path.join("config", "mcp.json")
    assert path.read_bytes() == b"new"


def test_a_change_meanwhile_is_not_overwritten(path):
    config = load(str(path))
    path.write_bytes(b"somebody else's")
    with pytest.raises(ConfigError, match="was changed by another program just now"):
        replace(config, b"ours")
    assert path.read_bytes() == b"somebody else's"
    assert os.listdir(path.parent) == ["mcp.json"]


def test_a_replacement_that_fails_leaves_everything_as_it_was(path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    config = load(str(path))
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(ConfigError, match=r"cannot change .*: No space left on device"):
        replace(config, b"ours")
    assert path.read_bytes() == TEXT
    assert os.listdir(path.parent) == ["mcp.json"]


@pytest.mark.parametrize("victim", ["os.replace", "os.fsync"])
def test_a_kill_at_any_point_loses_nothing(path, home, victim):
    """After a kill in any relevant call, the configuration is whole, and a backup exists if one is needed."""
    for survived in range(4):
        script = (
            f"import os, sys; sys.path.insert(0, {os.path.dirname(os.path.dirname(apply.__file__))!r} + '/..')\n"
            "from mcpspy.clients.apply import load, remember, replace\n"
            f"config, calls, real = load({str(path)!r}), [], {victim}\n"
            "def call(*arguments):\n"
            "    calls.append(arguments)\n"
            f"    if len(calls) > {survived}: os.kill(os.getpid(), 9)\n"
            "    real(*arguments)\n"
            f"{victim} = call\n"
            "remember(config, config.raw, b'new'); replace(config, b'new')\n"
        )
        environ = {"HOME": str(home), "PATH": os.defpath}
        run = subprocess.run([sys.executable, "-c", script], check=False, env=environ, timeout=LIMIT)
        config = load(str(path))
        if run.returncode == 0:
            assert (survived, config.raw) == (3, b"new")
        else:
            assert run.returncode == -9
            assert config.raw == TEXT
        memory = recall(config)
        assert memory is None or memory.original == TEXT
        assert memory is not None or config.raw == TEXT


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda path: path.chmod(0o444), "it is read-only"),
        (lambda path: os.link(path, f"{path}.2"), "hard links"),
        (lambda path: path.unlink(), "No such file"),
    ],
)
def test_what_must_not_be_replaced_says_why(path, spoil, fault):
    config = load(str(path))
    check_writable(config)
    spoil(path)
    with pytest.raises(ConfigError, match=fault):
        check_writable(config)


def test_a_read_only_directory_is_said(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda asked, _: asked != str(path.parent))
    with pytest.raises(ConfigError, match=r"the directory .* is read-only"):
        check_writable(load(str(path)))


def test_what_is_remembered_is_private_and_told_by_the_real_path(path, home, tmp_path):
    link = tmp_path / "link.json"
    link.symlink_to(path)
    assert recall(load(str(path))) is None
    remember(load(str(path)), b"before", b"after")
    memory = recall(load(str(link)))
    assert memory.original == b"before"
    assert not memory.unchanged(load(str(path)))
    path.write_bytes(b"after")
    assert memory.unchanged(load(str(path)))
    folder = home / ".mcpspy" / "install"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in os.listdir(folder)} == {0o600}
    forget(load(str(path)))
    assert os.listdir(folder) == []
    forget(load(str(path)))


def test_a_damaged_memory_is_none(path, home):
    remember(load(str(path)), b"before", b"after")
    folder = home / ".mcpspy" / "install"
    [note] = [name for name in os.listdir(folder) if name.endswith(".json")]
    (folder / note).write_text("{")
    assert recall(load(str(path))) is None


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"cannot write .*: (Not a directory|File exists)"):
        write_private(str(tmp_path / "file" / "x"), b"")
