"""The key of the user, and the headers that it proves."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.user_key import doubt, first_line, user_key, with_proof, without_proof
from mcpspy.recording.recording import Recording
from tests.transcript import capture


@pytest.fixture
def path(tmp_path):
    return capture(tmp_path / "a.jsonl", "> 1 ping\n< 1 = {}")


def change(path, old, new):
    """Replace some text of the header."""
    head, _, rest = Path(path).read_bytes().partition(b"\n")
    assert old in head
    Path(path).write_bytes(head.replace(old, new) + b"\n" + rest)


def test_a_header_that_a_recording_wrote_proves_itself(path):
    assert proves_itself(path)


def test_the_proof_is_the_last_member_and_no_reader_needs_it(path):
    with open(path, "rb") as file:
        header = json.loads(file.readline())
    assert list(header)[-1] == "proof"
    assert len(header["proof"]) == 32


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"node"', b'"nodf"'),
        (b'{"mcpspy":1', b'{"argv":["sh"],"mcpspy":1'),
        (b',"proof"', b',"argv":["sh"],"proof"'),
        (b'"}', b'","argv":["sh"]}'),
        (b'"proof"', b'"Proof"'),
        (b'{"mcpspy"', b'{ "mcpspy"'),
    ],
)
def test_a_header_that_was_changed_does_not(path, old, new):
    change(path, old, new)
    assert not proves_itself(path)


def proves_itself(path):
    return doubt(first_line(path)) is None


@given(st.data())
def test_no_changed_byte_is_overlooked(data):
    header = with_proof(b'{"mcpspy":1,"argv":["node","weather.js"]}')
    place = data.draw(st.integers(0, len(header) - 1))
    other = data.draw(st.integers(0, 255).filter(lambda byte: byte != header[place]))
    changed = header[:place] + bytes([other]) + header[place + 1 :]
    assert doubt(header) is None
    assert doubt(changed)


def test_a_copy_has_no_proof_however_many_were_there():
    header = with_proof(with_proof(b'{"mcpspy":1,"argv":["node"]}'))
    assert doubt(header) is None
    assert without_proof(header) == b'{"mcpspy":1,"argv":["node"]}'


def test_a_header_of_another_user_does_not(path, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "other"))
    user_key()
    assert not proves_itself(path)


def test_no_header_does_without_a_key(path, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    assert not proves_itself(path)
    assert not (tmp_path / "empty").exists(), "looking makes no key"


@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_no_header_does_if_others_could_read_the_key(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    path = capture(tmp_path / "a.jsonl", "> 1 ping")
    assert proves_itself(path)
    for name, mode in ((".mcpspy/key", 0o644), (".mcpspy", 0o777)):
        before = os.stat(tmp_path / name).st_mode
        os.chmod(tmp_path / name, mode)
        assert doubt(first_line(path)) == f"others can read or replace {tmp_path}/.mcpspy/key, which proves headers"
        os.chmod(tmp_path / name, before)
    assert proves_itself(path)


def test_an_imported_capture_has_no_proof(tmp_path):
    recording = Recording(pytest.fail)
    recording.begin("stdio", "a", output=str(tmp_path / "a"), argv=["node"], imported={"from": "har"})
    recording.end(1)
    assert b'"proof"' not in (tmp_path / "a").read_bytes()
    assert not proves_itself(str(tmp_path / "a"))


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b'{"proof":"x"}', b"\xff" * 100])
def test_what_is_no_capture_proves_nothing(tmp_path, content):
    user_key()
    (tmp_path / "a").write_bytes(content)
    assert not proves_itself(str(tmp_path / "a"))
