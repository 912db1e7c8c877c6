"""The lock file: stable, readable in a diff, and refused with one line if it is invalid."""

import json
import os

import pytest

from mcpspy.contract import lock as lock_file
from mcpspy.contract.lock import FORMAT, EditedLock, LockedServer, as_text, read, write
from mcpspy.errors import UsageError
from tests.contract.sessions import GET, SEND, hello, listed, lock
from tests.each import each

LOCK = lock(hello(instructions="Be kind") + listed(GET, SEND))


def test_a_lock_is_read_as_it_was_written(tmp_path):
    path = str(tmp_path / "mcp.lock.json")
    write(path, LOCK)
    assert read(path) == LOCK
    assert os.stat(path).st_mode & 0o044, "it is for others to read"


def test_the_order_of_what_a_server_sends_does_not_matter():
    turned = {name: GET[name] for name in reversed(GET)}
    assert as_text(lock(hello(instructions="Be kind") + listed(SEND, turned))) == as_text(LOCK)


def test_the_file_is_made_for_diffs():
    text = as_text(LOCK)
    assert text.endswith("}\n")
    content = json.loads(text)
    assert content["format"] == FORMAT
    server = content["servers"]["weather"]
    assert list(server) == sorted(server)
    assert server["tokens"] == sum(tool["tokens"] for tool in server["tools"].values()) > 0
    other = as_text(lock(hello(instructions="Be kind") + listed(GET, SEND | {"annotations": {}})))
    changed = set(other.splitlines()) - set(text.splitlines())
    assert [line.split()[0] for line in sorted(changed, key=str.split)] == ['"annotations":', '"hash":', '"hash":']


def test_characters_that_hide_in_a_diff_are_escaped():
    text = as_text({"s": LockedServer({"instructions": "é \u202e \u200b \U000e0041 \ud800"}, {})})
    assert "é \\u202e \\u200b \\udb40\\udc41 \\ud800" in text
    assert json.loads(text)["servers"]["s"]["instructions"] == "é \u202e \u200b \U000e0041 \ud800"


def test_what_was_not_looked_at_stays(tmp_path):
    newer = lock(hello())["weather"]
    assert LOCK["weather"].updated(newer).listings == LOCK["weather"].listings
    assert "instructions" not in LOCK["weather"].updated(newer).told


@each(
    "text, words",
    [
        ("", "not JSON"),
        ("<<<<<<< ours", "not JSON"),
        ('{\n<<<<<<< ours\n"a":1}', "merge conflicts"),
        ("[]", "no 'format' and 'servers'"),
        ('{"format": "1", "servers": {}}', "no 'format' and 'servers'"),
        (f'{{"format": {FORMAT + 1}, "servers": {{}}}}', f"format {FORMAT + 1}, written by a later mcpspy"),
        ('{"format": 1, "servers": {"a": 1}}', "server 'a' is not an object"),
        ('{"format": 1, "servers": {"a": {"tools": []}}}', "tools is not an object"),
        ('{"format": 1, "servers": {"a": {}}}', "the hash does not match the content"),
        ("[" * 100_000, "not JSON"),
        ("\udcff", "not JSON"),
    ],
)
def test_what_is_no_lock_is_refused_with_a_reason(tmp_path, text, words):
    path = tmp_path / "mcp.lock.json"
    path.write_text(text, errors="surrogateescape")
    with pytest.raises(UsageError, match=r"mcp\.lock\.json") as raised:
        read(str(path))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    for path, words in ((str(tmp_path), "Is a directory"), (str(tmp_path / "none"), "No such file"), ("a\0b", "null")):
        with pytest.raises(UsageError) as raised:
            read(path)
        assert words in str(raised.value)
    monkeypatch.setattr(lock_file, "LARGEST", 10)
    (tmp_path / "large").write_text(" " * 11)
    with pytest.raises(UsageError, match="larger than"):
        read(str(tmp_path / "large"))


@pytest.mark.parametrize("words", ["The weather of a city", "weather"])
def test_a_definition_that_was_edited_by_hand_is_told(tmp_path, words):
    path = tmp_path / "mcp.lock.json"
    path.write_text(as_text(LOCK).replace(words, "Other"))
    with pytest.raises(EditedLock):
        read(str(path))


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "mcp.lock.json").symlink_to("real.json")
    write(str(tmp_path / "mcp.lock.json"), LOCK)
    assert (tmp_path / "mcp.lock.json").is_symlink()
    assert read(str(tmp_path / "real.json")) == LOCK
