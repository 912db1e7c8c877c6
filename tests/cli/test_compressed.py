"""Every command reads compressed captures and standard input, and names what the user gave; some write `.jsonl.gz`."""

import gzip
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mcpspy import cli
from mcpspy.capture import copies
from mcpspy.capture.copies import GZIP
from mcpspy.capture.reader import Capture
from tests.cli.conftest import refusal
from tests.cli.test_replay import SESSION
from tests.each import each
from tests.limits import LIMIT
from tests.replay.scripts import SERVER
from tests.transcript import capture

ROOT = os.path.dirname(os.path.dirname(cli.__file__))
READERS = [
    "show",
    "show --json",
    "show --long --filter method:tools/call",
    "why --json",
    "check --format json",
    "stats",
    "stats --json",
    "export --format csv",
    "export --format mermaid",
    "scrub --check",
    "cut --force -o made.jsonl --from 3",
    "scrub --force --yes -o made.jsonl",
    "share --force --yes -o made.html",
    "lock --name x -o made.json",
    "diff weather.jsonl",
]


class Input(io.TextIOWrapper):
    """A standard input that is no terminal."""


@pytest.fixture
def mcpspy(home, run, monkeypatch):
    """Run the command line in a directory with a capture, plain and compressed; `given` is on standard input."""
    capture("weather.jsonl", SESSION)
    Path("weather.jsonl.gz").write_bytes(gzip.compress(Path("weather.jsonl").read_bytes()))

    def mcpspy(*words, given=b""):
        monkeypatch.setattr(sys, "stdin", Input(io.BytesIO(given)))
        return run(*words)

    return mcpspy


def read(name):
    return Path(name).read_bytes()


def named(outcome, *names):
    """Return an outcome without the name of the capture, its size and random ids."""
    status, out, err = outcome
    for name in names:
        out, err = out.replace(name, "NAME"), err.replace(name, "NAME")
    return status, out, err


@each("command", READERS)
def test_every_reader_takes_a_compressed_file_and_standard_input(mcpspy, command):
    words = command.split()
    plain = mcpspy(*words, "weather.jsonl")
    Path("made.json").unlink(missing_ok=True)
    packed = mcpspy(*words, "weather.jsonl.gz")
    Path("made.json").unlink(missing_ok=True)
    inputs = mcpspy(*words, "-", given=read("weather.jsonl.gz"))
    Path("made.json").unlink(missing_ok=True)
    assert plain[0] in (0, 1)
    assert named(packed, "weather.jsonl.gz") == named(plain, "weather.jsonl")
    assert inputs[0] == plain[0]
    assert inputs[1].count("\n") == plain[1].count("\n")
    assert tempfile.gettempdir() not in inputs[1] + inputs[2]


@each("file", ["weather.jsonl.gz", "-"])
def test_a_mock_and_a_replay_take_them(mcpspy, file):
    given = read("weather.jsonl")
    assert mcpspy("replay", file, "--", *SERVER, "none", given=given)[0] == 0
    status, out, _ = mcpspy("replay", file, "--", *SERVER, "result", given=given)
    assert (status, "12 °C" in out) == (1, True)


def test_a_mock_serves_a_compressed_file(mcpspy):
    asked = b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n'
    command = [sys.executable, "-m", "mcpspy", "mock", "weather.jsonl.gz"]
    environ = os.environ | {"PYTHONPATH": ROOT}
    done = subprocess.run(command, input=asked, capture_output=True, check=True, timeout=LIMIT, env=environ)
    assert json.loads(done.stdout)["id"] == 9


@each(
    "words, why",
    [
        (["show", "--follow", "weather.jsonl.gz"], "weather.jsonl.gz is read as a copy, which does not grow"),
        (["check", "--follow", "-"], "standard input is read as a copy, which does not grow"),
        (["otel", "--follow", "weather.jsonl.gz"], "weather.jsonl.gz is read as a copy, which does not grow"),
        (["mock", "-"], "standard input is for the client: give the name of a file"),
        (["mock", "--listen", "127.0.0.1:0", "--gate", "x", "-"], "--gate starts the mock as a program"),
        (["mock", "weather.jsonl.gz", "--record-missing", "--", "true"], "because it is compressed"),
        (["replay", "-", "--update", "--", "true"], "--update replaces the capture"),
        (["replay", "weather.jsonl", "-o", "none/x.jsonl.gz", "--", "true"], "there is no directory none"),
        (["replay", "weather.jsonl", "-o", "note.gz", "--", "true"], "note.gz is not a capture"),
        (["wrap", "-o", "x.jsonl.gz", "--", "true"], "compress it after the session"),
        (["proxy", "-o", "x.jsonl.gz", "http://127.0.0.1:1/"], "compress it after the session"),
        (["tui", "--web", "127.0.0.1:0", "-"], "it cannot show standard input"),
        (["scrub", "-", "-o", "x.jsonl"], "--yes writes without asking"),
    ],
)
def test_what_is_impossible_is_one_sentence(mcpspy, words, why):
    Path("note.gz").write_text("a note\n")
    assert why in refusal(mcpspy(*words, given=read("weather.jsonl")))
    assert Path("note.gz").read_text() == "a note\n"


@each("words", [["cut", "--from", "3"], ["scrub", "--yes"]])
def test_a_new_capture_is_compressed_if_its_name_says_so(mcpspy, words):
    for file in ("one.jsonl", "two.jsonl.gz"):
        assert mcpspy(*words, "weather.jsonl", "-o", file, "--force")[0] == 0
    assert read("two.jsonl.gz").startswith(GZIP)
    ours, theirs = (list(Capture(path).records()) for path in ("one.jsonl", "two.jsonl.gz"))
    assert ours == theirs
    first = read("two.jsonl.gz")
    if words[0] == "scrub":
        assert mcpspy(*words, "weather.jsonl.gz", "-o", "two.jsonl.gz", "--force")[0] == 0
        assert read("two.jsonl.gz") == first, "the same content has the same bytes"


def test_a_replay_keeps_its_session_compressed(mcpspy):
    for _ in range(2):
        assert mcpspy("replay", "weather.jsonl", "-o", "new.jsonl.gz", "--", *SERVER, "result")[0] == 1
        assert read("new.jsonl.gz").startswith(GZIP)
        assert mcpspy("diff", "weather.jsonl", "new.jsonl.gz")[0] == 1
    assert sorted(it.name for it in Path().iterdir()) == ["new.jsonl.gz", "weather.jsonl", "weather.jsonl.gz"]


def test_a_compressed_capture_that_is_updated_stays_compressed(mcpspy):
    assert mcpspy("replay", "weather.jsonl.gz", "--update", "--", *SERVER, "result")[0] == 0
    assert read("weather.jsonl.gz").startswith(GZIP)
    assert mcpspy("replay", "weather.jsonl.gz", "--", *SERVER, "result")[0] == 0


def test_settings_stand_beside_a_compressed_capture(mcpspy):
    Path("weather.replay.toml").write_text('ignore = ["tools/call get_forecast /result"]\n')
    assert mcpspy("replay", "weather.jsonl.gz", "--", *SERVER, "result")[0] == 0


def test_directories_list_compressed_captures(mcpspy):
    Path("weather.jsonl").unlink()
    listed = [json.loads(line) for line in mcpspy("ls", ".", "--json")[1].splitlines()]
    assert [(os.path.basename(it["path"]), it["exchanges"], it["live"]) for it in listed] == [
        ("weather.jsonl.gz", 5, False)
    ]
    for command in ("why", "check", "stats"):
        assert mcpspy(command, ".")[0] in (0, 1)


def test_a_compressed_file_that_is_larger_than_it_states_is_not_counted(mcpspy):
    raw = read("weather.jsonl") + b'{"kind":"later","t":0}\n' * (1 << 20)
    Path("weather.jsonl.gz").write_bytes(gzip.compress(raw)[:-4] + b"\1\0\0\0")
    listed = {it["path"][-3:]: it for it in map(json.loads, mcpspy("ls", ".", "--json")[1].splitlines())}
    assert (listed[".gz"]["frames"], listed["onl"]["frames"] > 0) == (None, True)


def test_a_bomb_is_one_sentence(mcpspy, monkeypatch):
    monkeypatch.setattr(copies, "LARGEST", 1_000_000)
    Path("bomb.jsonl.gz").write_bytes(gzip.compress(read("weather.jsonl") + b"\0" * 5_000_000))
    for command in ("why", "check", "stats"):
        assert "bomb.jsonl.gz holds more than the 1.0 MB" in refusal(mcpspy(command, "bomb.jsonl.gz"))
    assert mcpspy("ls", ".")[0] == 0


def test_a_truncated_file_is_shown_with_one_line_about_it(mcpspy):
    Path("cut.jsonl.gz").write_bytes(read("weather.jsonl.gz")[:-30])
    status, out, err = mcpspy("show", "cut.jsonl.gz")
    assert (status, err) == (0, "mcpspy: cut.jsonl.gz: the gzip data ends too early; everything before that is read\n")
    assert out.count("the rest of the compressed file is missing (the gzip data ends too early)") == 1
    assert "mcpspy was killed" not in out
    assert "truncated in mid-session (the rest" in refusal(mcpspy("replay", "cut.jsonl.gz", "--", "true"))


def test_without_a_terminal_the_tui_is_one_sentence(mcpspy):
    command = shlex.join([sys.executable, "-m", "mcpspy", "tui", "-"])
    done = subprocess.run(
        ["sh", "-c", f"{command} < weather.jsonl"],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        env=os.environ | {"PYTHONPATH": ROOT},
        start_new_session=True,
    )
    assert "'mcpspy show -' prints the capture" in refusal((done.returncode, done.stdout, done.stderr))
