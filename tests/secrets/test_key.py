"""The key of the user: created once, readable by the user alone. Secrets are replaced even without a key."""

import os
import re

import pytest

from mcpspy.capture import user_key as keys
from mcpspy.secrets.redactor import Redactor

SECRET = "hunter2/Correct+Horse=="
MARK = re.compile("«redacted:[0-9a-f]{8}»")


def test_the_key_is_made_once_for_the_user_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    first = Redactor().mark(SECRET)
    key = tmp_path / ".mcpspy" / "key"
    assert len(key.read_bytes()) == 32
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.parent.stat().st_mode & 0o777 == 0o700
    assert Redactor().mark(SECRET) == first
    assert os.listdir(key.parent) == ["key"]
    key.unlink()
    assert Redactor().mark(SECRET) != first


def test_another_process_that_makes_the_key_first_wins(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    link = os.link

    def late(draft, path):
        with open(path, "wb") as file:
            file.write(bytes(32))
        link(draft, path)

    monkeypatch.setattr(keys.os, "link", late)
    first = Redactor().mark(SECRET)
    assert os.listdir(tmp_path / ".mcpspy") == ["key"]
    assert (tmp_path / ".mcpspy" / "key").read_bytes() == bytes(32)
    assert Redactor().mark(SECRET) == first


@pytest.mark.parametrize("state", ["no directory can be made", "the key has a wrong length"])
def test_without_a_key_secrets_are_replaced_all_the_same(tmp_path, monkeypatch, state):
    monkeypatch.setenv("HOME", str(tmp_path))
    if state == "no directory can be made":
        (tmp_path / ".mcpspy").write_text("a file")
    else:
        (tmp_path / ".mcpspy").mkdir()
        (tmp_path / ".mcpspy" / "key").write_bytes(b"short")
    redactor = Redactor()
    clean = redactor.argv(["--token", SECRET, "--secret", SECRET])
    assert MARK.fullmatch(clean[1])
    assert clean[1] == clean[3]
