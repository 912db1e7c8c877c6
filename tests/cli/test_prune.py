import os
import time

import pytest

from mcpspy.capture.location import iso_time
from mcpspy.cli import ls as prune_command
from tests.cli.conftest import refusal
from tests.each import each
from tests.transcript import begin, finish

NOW = 1_764_000_000
DAY = 86400


@pytest.fixture
def prune(monkeypatch, tmp_path, run):
    """Run `mcpspy prune` on `tmp_path` at `NOW` and return its status and output."""
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    return lambda *arguments, folder=tmp_path: run("prune", *arguments, *([folder] if folder else []))


@pytest.fixture
def old(tmp_path):
    """Make a finished capture that began `age` seconds ago and has `size` bytes."""

    def make(name, age, size=1000):
        path = tmp_path / f"{name}.jsonl"
        header = f'{{"mcpspy":1,"started":"{iso_time(int((NOW - age) * 1e9))}","name":"{name}"}}\n'
        path.write_text(header + "\n" * (size - len(header)))
        assert path.stat().st_size == size
        return path

    return make


def left(folder):
    return sorted(name.removesuffix(".jsonl") for name in os.listdir(folder))


def test_captures_older_than_an_age_are_deleted(tmp_path, prune, old):
    old("a", 31 * DAY)
    old("b", 30 * DAY)
    old("c", DAY)
    status, out, err = prune("--older", "30d")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        f"deleted {tmp_path / 'a.jsonl'} (1.0 kB, 31 d ago)",
        "1 capture deleted, 1.0 kB; 2 captures left, 2.0 kB",
    ]
    assert left(tmp_path) == ["b", "c"]


@pytest.mark.parametrize(
    ("age", "kept"),
    [
        ("5400s", ["minute"]),
        ("90m", ["minute"]),
        ("12h", ["hours", "minute"]),
        ("2d", ["day", "hours", "minute"]),
        ("1w", ["day", "days", "hours", "minute"]),
        ("0.5h", ["minute"]),
        ("0s", []),
        ("90 m", ["minute"]),
        ("90M", ["minute"]),
        ("100000w", ["day", "days", "hours", "minute", "weeks"]),
    ],
)
def test_an_age_has_a_unit(tmp_path, prune, old, age, kept):
    for name, seconds in (("minute", 60), ("hours", 3 * 3600), ("day", DAY), ("days", 3 * DAY), ("weeks", 60 * DAY)):
        old(name, seconds)
    assert prune("--older", age)[0] == 0
    assert left(tmp_path) == kept


@pytest.mark.parametrize(
    ("size", "kept"),
    [
        ("3000", ["a", "b", "c"]),
        ("2999", ["a", "b"]),
        ("2kB", ["a", "b"]),
        ("2 KB", ["a", "b"]),
        ("1999B", ["a"]),
        ("0.001MB", ["a"]),
        ("999", []),
        ("0", []),
        ("1TB", ["a", "b", "c"]),
    ],
)
def test_the_oldest_are_deleted_until_the_rest_fits(tmp_path, prune, old, size, kept):
    old("c", 3 * DAY)
    old("a", DAY)
    old("b", 2 * DAY)
    assert prune("--keep", size)[0] == 0
    assert left(tmp_path) == kept


def test_age_and_size_work_together(tmp_path, prune, old):
    old("a", DAY, 5000)
    old("b", 2 * DAY, 1000)
    old("c", 40 * DAY, 1000)
    status, out, _ = prune("--older", "30d", "--keep", "5500")
    assert status == 0
    assert left(tmp_path) == ["a"]
    assert out.splitlines()[-1] == "2 captures deleted, 2.0 kB; 1 capture left, 5.0 kB"


def test_a_dry_run_deletes_nothing(tmp_path, prune, old):
    old("a", 31 * DAY)
    status, out, _ = prune("--older", "30d", "--dry-run")
    assert status == 0
    assert out.splitlines() == [
        f"would delete {tmp_path / 'a.jsonl'} (1.0 kB, 31 d ago)",
        "1 capture would be deleted, 1.0 kB; 0 captures left, 0 B",
    ]
    assert left(tmp_path) == ["a"]


def test_a_live_capture_is_never_deleted(tmp_path, prune, old):
    """docs/capture-format.md. Its size counts for `--keep`."""
    writer = begin(tmp_path / "live.jsonl")
    for t in range(50):
        writer.frame(1, t, b"x" * 100, more=False, cut=False)
    old("old", 400 * DAY)
    assert prune("--older", "0s", "--keep", "0")[0] == 0
    assert left(tmp_path) == ["live"]
    finish(writer, 1)
    assert prune("--older", "0s", "--keep", "0")[0] == 0
    assert left(tmp_path) == []


@pytest.fixture
def meanwhile(monkeypatch):
    """Return a function that makes something happen after the captures were listed."""

    def install(act):
        def late(folder):
            found = listing(folder)
            act()
            return found

        listing = prune_command.captures
        monkeypatch.setattr(prune_command, "captures", late)

    return install


def test_a_capture_that_becomes_live_meanwhile_is_not_deleted(tmp_path, prune, old, meanwhile):
    path, writers = old("a", 31 * DAY), []
    meanwhile(lambda: writers.append(begin(path)))
    status, out, err = prune("--older", "30d")
    assert (status, err) == (0, "")
    assert out.startswith("0 captures deleted")
    assert left(tmp_path) == ["a"]
    finish(writers[0], 1)


def test_a_capture_that_another_prune_deletes_meanwhile_is_no_error(tmp_path, prune, old, meanwhile):
    first, _ = old("a", 32 * DAY), old("b", 31 * DAY)
    meanwhile(first.unlink)
    status, _, err = prune("--older", "30d")
    assert (status, err) == (0, "")
    assert left(tmp_path) == []


def test_a_capture_that_cannot_be_deleted_is_one_line(prune, old, monkeypatch):
    """Its directory belongs to another user."""
    old("a", 31 * DAY)

    def refuse(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "unlink", refuse)
    status, _, err = prune("--older", "30d")
    assert status in (0, 2)
    assert err.count("\n") == 1
    assert "a.jsonl" in err
    assert "Permission denied" in err


def test_what_is_no_capture_is_left_alone(tmp_path, prune):
    (tmp_path / "notes.txt").write_text("precious")
    (tmp_path / "other.jsonl").write_text("{}\n")
    (tmp_path / "empty.jsonl").touch()
    assert prune("--older", "0s", "--keep", "0")[1] == "0 captures deleted, 0 B; 0 captures left, 0 B\n"
    assert left(tmp_path) == ["empty", "notes.txt", "other"]


@pytest.mark.parametrize("option", ["--older", "--keep"])
@pytest.mark.parametrize(
    "text", ["", "d", "MB", "x5d", "5dd", "5 d d", "1e3d", "5,5h", ".5d", "5.d", "∞", "nan", "5mib", "0x5d"]
)
def test_a_quantity_that_is_none_is_one_line_and_exit_code_2(tmp_path, prune, old, option, text):
    old("a", 400 * DAY)
    assert f"{option} cannot be {text!r}; it is a number with a unit, such as " in refusal(prune(option, text))
    assert left(tmp_path) == ["a"]


@each("words", [("--older", "30"), ("--older", "5GB"), ("--keep", "30d"), ("--older=-5d",), ("--older=-1",)])
def test_a_quantity_of_another_kind_and_a_negative_one_are_refused(prune, words):
    refusal(prune(*words))


def test_without_a_condition_nothing_is_deleted(tmp_path, prune, old):
    old("a", 400 * DAY)
    status, _, err = prune()
    assert (status, err) == (2, "mcpspy: prune needs to know what is old: --older 30d, --keep 2GB, or both\n")
    assert left(tmp_path) == ["a"]


def test_a_missing_directory_is_one_line_and_exit_code_2(tmp_path, prune):
    status, _, err = prune("--older", "30d", folder=tmp_path / "missing")
    assert (status, err) == (2, f"mcpspy: {tmp_path / 'missing'} is not a directory\n")


def test_the_default_directory_need_not_be_there(tmp_path, prune, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("MCPSPY_CAPTURE_DIR", raising=False)
    assert prune("--older", "30d", folder=None)[:2] == (0, "0 captures deleted, 0 B; 0 captures left, 0 B\n")


@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_hostile_file_name_cannot_put_anything_on_the_terminal(tmp_path, prune, old, dry):
    """F-08."""
    old("a", 31 * DAY).rename(tmp_path / "\x1b[2J\n\u202e.jsonl")
    status, out, _ = prune("--older", "30d", *dry)
    assert status == 0
    assert len(out.splitlines()) == 2
    assert all(line.isprintable() for line in out.splitlines())


def test_what_sql_keeps_of_a_capture_goes_with_it(tmp_path, prune, old):
    folders = []
    for name, age in (("a", 31 * DAY), ("b", DAY)):
        folders.append(tmp_path / "cache" / "mcpspy" / "sql" / "v1" / name)
        folders[-1].mkdir(parents=True)
        (folders[-1] / "capture.path").write_text(str(old(name, age)))
    prune("--older", "30d", "--dry-run")
    assert [folder.exists() for folder in folders] == [True, True]
    prune("--older", "30d")
    assert [folder.exists() for folder in folders] == [False, True]
