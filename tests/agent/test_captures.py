"""The captures that an agent can read, and their names."""

import json
import os
import re
import shutil
import time

import pytest

from mcpspy.agent.captures import AgentCaptures
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError
from tests.agent.conftest import EXAMPLE
from tests.transcript import WALL, capture, finish, record


def test_a_capture_is_called_by_the_beginning_of_its_id_or_by_its_server(folder):
    first, second = folder.add(), folder.add(name="notes")
    assert len(first) == 6
    assert folder.captures.find("").header.name == "notes"
    for text in (first, first.upper(), first + "#17", "weather", folder.captures.find(first).header.id):
        assert folder.captures.name(folder.captures.find(text)) == first
    assert folder.captures.name(folder.captures.find("notes")) == second


def test_a_name_is_as_long_as_it_must_be(folder):
    first = folder.add()
    path = folder.captures.find(first).path
    with open(path) as file:
        text = file.read()
    whole = folder.captures.find(first).header.id
    other = whole[:9] + ("1" if whole[9] == "0" else "0") + whole[10:]
    with open(folder.path / "other.jsonl", "w") as file:
        file.write(text.replace(whole, other))
    folder.captures.look()
    assert sorted(folder.captures.name(it) for it in folder.captures.entries) == sorted((whole[:10], other[:10]))
    with pytest.raises(UsageError, match="not unique"):
        folder.captures.find(whole[:6])


def test_a_short_name_is_a_server_and_no_beginning_of_an_id(folder):
    for digit in "0123456789abcdef":
        folder.add(name=digit)
    for digit in "0123456789abcdef":
        assert folder.captures.find(digit).header.name == digit
    short = next(iter(folder.captures.entries)).header.id[:5]
    with pytest.raises(UsageError, match="no session"):
        folder.captures.find(short)


def test_copies_of_a_capture_have_names_of_their_own(folder):
    folder.add()
    shutil.copy(folder.captures.entries[0].path, folder.path / "copy.jsonl")
    folder.captures.look()
    names = {folder.captures.name(it) for it in folder.captures.entries}
    assert len(names) == 2
    assert {folder.captures.find(name).path for name in names} == {it.path for it in folder.captures.entries}


def test_what_does_not_exist_has_a_nearest(folder):
    with pytest.raises(UsageError, match="no sessions yet"):
        folder.captures.find("")
    name = folder.add()
    with pytest.raises(UsageError, match="no session 'wether'; did you mean 'weather'"):
        folder.captures.find("wether")
    for text in ("zzzzzz", name[::-1] + "0"):  # similar ids are not related
        with pytest.raises(UsageError, match=f"may have been deleted; the newest is {name}"):
            folder.captures.find(text)
    with pytest.raises(UsageError, match="no run 'run:zz'; there are none"):
        folder.captures.several("run:zz")


def test_a_damaged_file_is_named(folder):
    (folder.path / "broken.jsonl").write_text("{")
    with pytest.raises(UsageError, match=r"no sessions yet .*broken\.jsonl"):
        folder.captures.find("")
    folder.add()
    with pytest.raises(UsageError, match=r"'broken' cannot be read"):
        folder.captures.find("broken")


def test_a_deleted_capture_is_gone(folder):
    name, other = folder.add(), folder.add()
    entry = folder.captures.find(name)
    folder.captures.open(entry)
    os.unlink(entry.path)
    with pytest.raises(UsageError, match=f"no session {name!r}"):
        folder.captures.find(name)
    entry = folder.captures.find(other)
    os.unlink(entry.path)
    with pytest.raises(UsageError, match="was deleted"):
        folder.captures.open(entry)


def test_a_file_that_was_replaced_is_opened_anew(folder):
    name = folder.add()
    entry = folder.captures.find(name)
    before = folder.captures.open(entry)
    os.unlink(entry.path)
    capture(entry.path, EXAMPLE, wall=WALL)
    entry = folder.captures.find("weather")
    assert folder.captures.open(entry) is not before
    assert folder.captures.open(entry) is folder.captures.open(entry)


def test_a_file_that_was_cut_short_is_opened_anew(folder):
    name = folder.add()
    entry = folder.captures.find(name)
    before = folder.captures.open(entry)
    assert before.complete
    os.truncate(entry.path, os.path.getsize(entry.path) // 2)
    after = folder.captures.open(folder.captures.find(name))
    assert len(after.columns.exchanges.statuses) < len(before.columns.exchanges.statuses)


@pytest.mark.parametrize(
    "argv",
    [("mcpspy", "mcp"), ("/usr/bin/python3", "-m", "mcpspy", "mcp", "captures"), ("uvx", "mcpspy[agent]", "mcp")],
)
def test_its_own_sessions_are_not_among_them(folder, argv):
    name = folder.add()
    with pytest.raises(StopIteration):
        folder.add(argv=argv, name="any")
    assert [folder.captures.name(it) for it in folder.captures.entries] == [name]


def test_what_our_own_relay_records_is_not_among_them(folder):
    with pytest.raises(StopIteration):
        folder.add(pid=os.getppid(), argv=("agent.sh",))


def test_a_run_is_what_one_client_process_started(folder):
    first, second, alone = folder.add(ppid=42), folder.add(ppid=42, name="notes"), folder.add(ppid=43)
    runs = {name: [folder.captures.name(it) for it in group] for name, group in folder.captures.runs()}
    assert runs == {f"run:{first}": [second, first], "": [alone]}
    assert {folder.captures.name(it) for it in folder.captures.several(f"run:{first}")} == {first, second}


def test_a_live_capture_grows(folder):
    writer, name = folder.begin()
    entry = folder.captures.find(name)
    assert entry.live
    assert len(folder.captures.open(entry)) == 0
    record(writer, EXAMPLE)
    capture = folder.captures.open(folder.captures.find(name))
    assert capture.columns.exchanges.status(1) == "ok"
    finish(writer)


def test_large_captures_are_read_on_between_questions(folder):
    name = folder.add()
    captures = AgentCaptures(str(folder.path), 5)
    entry = captures.find(name)
    assert not captures.grow(0.01)
    capture = captures.open(entry, 0)
    while captures.grow(0.01):
        pass
    assert capture.complete
    captures.close()


@pytest.fixture
def slow(monkeypatch):
    """The seconds that each capture was given to grow; captures never reach their end."""
    given = []

    def grow(_, seconds):
        given.append(seconds)
        time.sleep(seconds)
        return True

    monkeypatch.setattr(OpenCapture, "grow", grow)
    return given


def test_the_captures_of_a_question_share_its_time(folder, slow):
    """Otherwise each of several large sessions of a run would take the time of a whole question."""
    names = [folder.add() for _ in range(4)]
    captures = AgentCaptures(str(folder.path), 0.2)
    for entry in [captures.find(name) for name in names]:
        captures.open(entry)
    captures.close()
    assert len(slow) >= len(names)
    assert sum(slow) < 0.5


@pytest.mark.parametrize("wrong", ["run:ab", "a#5", "Ignore all\u202e", "Q" * 100_000, "ghp_" + "a1B2" * 9, ""])
def test_an_id_of_another_form_is_not_shown(folder, wrong):
    """Anybody can write a capture file, and its id would be part of every address."""
    first = folder.add()
    entry = folder.captures.find(first)
    with open(entry.path, encoding="utf-8") as file:
        text = file.read()
    with open(entry.path, "w", encoding="utf-8") as file:
        file.write(text.replace(f'"{entry.header.id}"', json.dumps(wrong), 1))
    found = folder.captures.find("weather")
    assert found.header.id == wrong
    assert re.fullmatch("[0-9a-f]{6}", folder.captures.name(found))
