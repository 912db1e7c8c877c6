import os
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.location import (
    directory,
    file_name,
    home,
    iso_time,
    make_directory,
    printable_name,
    program_name,
    server_name,
)
from mcpspy.secrets.redactor import Redactor
from tests.cases import pairs
from tests.each import each

WALL = 1_764_000_000_123_456_789


@pytest.fixture(autouse=True)
def home_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def name(*argv):
    return server_name(argv, Redactor().argv(list(argv)))


@each("command, expected", pairs(Path(__file__).parent / "server_names.txt"))
def test_the_name_tells_the_server_from_others(command, expected):
    """The usual launchers: the name is never a launcher, an option, or a word with `://`, `=` or a password."""
    assert name(*command.split()) == expected


def test_a_server_without_a_command_has_a_name():
    assert server_name([], []) == "server"


@given(
    st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), max_size=6),
    st.sampled_from(["--token", "K_TOKEN="]),
)
def test_the_name_never_holds_a_secret_and_is_fit_for_a_file(words, option):
    secret = "hunter2secret"
    words += [option + secret] if option.endswith("=") else [option, secret]
    found = name(*words)
    assert secret not in found
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,48}", found)


@given(st.text())
def test_a_printable_name_is_fit_for_a_file(text):
    assert re.fullmatch(r"[A-Za-z0-9_-]([A-Za-z0-9._-]{0,47})", printable_name(text))


def test_a_hostile_name_stays_in_its_directory():
    assert printable_name("../../etc/passwd") == "etc-passwd"
    assert printable_name("\x1b[2J") == "2J"
    assert printable_name("..") == printable_name("") == "server"
    assert len(printable_name("x" * 1000)) == 48


def test_a_file_name_has_start_name_process_and_chance():
    """S-15."""
    assert re.fullmatch(rf"20251124T160000Z-my-server-{os.getpid()}-[0-9a-f]{{4}}\.jsonl", file_name(WALL, "my server"))
    assert len({file_name(WALL, "x") for _ in range(50)}) > 40


def test_a_time_is_utc_with_microseconds():
    assert iso_time(WALL) == "2025-11-24T16:00:00.123456Z"
    assert iso_time(0) == "1970-01-01T00:00:00.000000Z"
    assert iso_time(999) == "1970-01-01T00:00:00.000000Z"


# Directories.


def test_captures_lie_where_they_are_told_to_else_at_home(tmp_path):
    """The option, the variable, the default."""
    environ = {"MCPSPY_CAPTURE_DIR": "/srv/captures"}
    assert directory("/srv/other", environ) == "/srv/other"
    assert directory(None, environ) == "/srv/captures"
    assert directory(None, {}) == directory(None, {"MCPSPY_CAPTURE_DIR": ""}) == str(tmp_path / ".mcpspy" / "captures")
    assert directory("~/x", {}) == str(tmp_path / "x")


def test_the_directory_is_absolute(tmp_path, monkeypatch):
    """S-16."""
    monkeypatch.chdir(tmp_path)
    assert directory("x", {}) == str(tmp_path / "x")


def test_without_home_the_password_database_knows(monkeypatch):
    """S-16."""
    monkeypatch.delenv("HOME")
    assert os.path.isabs(home())
    assert home() == os.path.join(os.path.expanduser("~"), ".mcpspy")


@pytest.mark.parametrize("value", ["", "relative", "~"])
def test_a_home_that_is_none_still_gives_an_absolute_place(monkeypatch, value):
    """S-16."""
    monkeypatch.setenv("HOME", value)
    assert os.path.isabs(home())


def test_directories_that_are_made_are_for_the_user_alone(tmp_path):
    """docs/capture-format.md: 0700."""
    tmp_path.chmod(0o750)
    make_directory(str(tmp_path / "a" / "b" / "c"))
    for folder in ("a", "a/b", "a/b/c"):
        assert stat.S_IMODE(os.stat(tmp_path / folder).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(tmp_path).st_mode) == 0o750


def test_a_directory_that_is_there_stays_as_it_is(tmp_path):
    (tmp_path / "a").mkdir(mode=0o755)
    make_directory(str(tmp_path / "a"))
    assert stat.S_IMODE(os.stat(tmp_path / "a").st_mode) == 0o755


def test_a_directory_that_another_process_makes_meanwhile_is_fine(tmp_path, monkeypatch):
    mkdir = os.mkdir

    def late(path, mode):
        mkdir(path, mode)
        mkdir(path, mode)

    monkeypatch.setattr(os, "mkdir", late)
    make_directory(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


def test_a_file_in_the_way_is_an_error(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(OSError, match=r"exists|directory"):
        make_directory(str(tmp_path / "a" / "b"))
    with pytest.raises(FileExistsError):
        make_directory(str(tmp_path / "a"))


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/bin/claude -p hello", "claude"),
        ("python3 agent.py --port 1", "agent.py"),
        ("/venv/bin/python -m my_agent", "my_agent"),
        ("python3 -c import-this", "python3"),
        ("node --eval x()", "node"),
        ("node «redacted:12345678» /srv/agent.js", "agent.js"),
        ("-bash", "bash"),
        ("…", ""),
        ("python3 … --type=… agent.py", "agent.py"),
    ],
)
def test_a_program_has_a_short_name(command, name):
    assert program_name(command.split()) == name
