"""The command line of `mcpspy cut`."""

import os
import stat
import sys

import pytest

from mcpspy.capture.reader import Capture
from tests.cli.conftest import refusal
from tests.transcript import capture

SESSION = """
    = 2025-06-18
    > 2 tools/list
    < 2 = {"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]}
    > 3 tools/call {"name":"one","arguments":{}}
    < 3 = {"content":[]}
    ! apart
    > 4 tools/call {"name":"two","arguments":{}}
    < 4 = {"content":[]}
"""


@pytest.fixture
def made(tmp_path):
    return capture(str(tmp_path / "made.jsonl"), SESSION)


def test_what_it_writes_is_a_capture_without_findings_that_mock_and_replay_play(tmp_path, made, mcpspy):
    new = str(tmp_path / "new.jsonl")
    status, out, err = mcpspy("cut", made, "--filter", "name:two", "-o", new)
    assert (status, err) == (0, "")
    assert out.startswith(f"written: {new} (")
    assert stat.S_IMODE(os.stat(new).st_mode) == 0o600
    with open(new, encoding="utf-8") as file:
        text = file.read()
    assert '\\"id\\":4' in text
    assert '\\"id\\":3' not in text
    assert "apart" not in text
    assert mcpspy("check", new)[0] == 0
    for server in (new, made):
        status, out, err = mcpspy("replay", new, "--", sys.executable, "-m", "mcpspy", "mock", server)
        assert (status, err) == (0, ""), out
        assert out.endswith("3 comparisons: 3 same\n")


def test_rows_are_selected_by_number_and_filter(tmp_path, made, mcpspy):
    new = str(tmp_path / "new.jsonl")
    with open(made, "rb") as file:
        numbers = [n for n, line in enumerate(file, 1) if b"tools/call" in line]
    assert mcpspy("cut", made, "--from", str(numbers[0]), "--to", str(numbers[0]), "-o", new)[0] == 0
    assert '"two"' not in mcpspy("show", new, "--json", "--filter", "kind:request method:tools/call")[1]
    both = ("--filter", "name:one", "--from", str(numbers[1]))
    words = f"no row of {made} matches: nothing was written"
    assert words in refusal(mcpspy("cut", made, *both, "-o", new, "--force"))
    assert Capture(new).header.name == Capture(made).header.name


def test_nothing_is_overwritten_without_force_and_never_the_capture_itself(tmp_path, made, mcpspy):
    path = tmp_path / "new.jsonl"
    path.write_text("mine")
    arguments = ("cut", made, "--filter", "name:two", "-o")
    assert mcpspy(*arguments, str(path)) == (2, "", f"mcpspy: {path} exists; --force replaces it\n")
    assert path.read_text() == "mine"
    assert mcpspy(*arguments, str(path), "--force")[0] == 0
    assert path.read_text() != "mine"
    assert "is read here; give another one" in refusal(mcpspy(*arguments, made, "--force"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("-o", "x.jsonl"), "cut needs --filter EXPR, --from N or --to N: which rows to keep"),
        (("--filter", "name:one"), "cut needs -o"),
        (("--from", "one", "-o", "x.jsonl"), "invalid int value: 'one'"),
        (("--from", "9", "--to", "3", "-o", "x.jsonl"), "no row of"),
        (("--to", "9", "-o", "/nowhere/at/all.jsonl"), "cannot write /nowhere/at/all.jsonl: No such file"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, made, mcpspy, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    assert words in refusal(mcpspy("cut", made, *arguments))
    assert not os.path.lexists("x.jsonl")


def test_a_mistake_in_the_filter_is_pointed_at(tmp_path, made, mcpspy):
    status, out, err = mcpspy("cut", made, "--filter", "status:eror", "-o", str(tmp_path / "x.jsonl"))
    assert (status, out) == (2, "")
    assert "^" in err


def test_a_directory_is_refused(tmp_path, made, mcpspy):
    words = refusal(mcpspy("cut", str(tmp_path), "--from", "1", "-o", str(tmp_path / "x.jsonl")))
    assert words.endswith("is a directory; cut takes one capture\n")
