import io
import json
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.cli.terminal import TerminalText, guard, safe, unguarded
from mcpspy.report.words import COLOURS, coloured
from tests import limits
from tests.hostile_text import CONTROLS, HIDDEN, NASTY, unsafe
from tests.optional import open_terminal

CHARACTERS = st.characters() | st.sampled_from(CONTROLS + HIDDEN + "\u0301…→←✗─│▄\n\t\r")


@pytest.fixture
def terminal():
    """A terminal, and a function that returns what was written to it."""
    raw = io.BytesIO()
    return TerminalText(io.TextIOWrapper(raw, "utf-8")), lambda: raw.getvalue().decode()


def shown(text):
    """Return what a terminal gets, without the colours and ends of lines that are ours."""
    found = safe(text).replace("\r\n", "").replace("\n", "").replace("\t", "")
    for code in (*COLOURS, "0"):
        found = found.replace(f"\x1b[{code}m", "")
    return found


@pytest.mark.parametrize(
    "text", ["日本語", "e\u0301o\u0302\u0323", "שלום مرحبا", "😀 👍🏽 🇳🇴", "┌─┬│▄█", "a\tb\r\nc\n"]
)
def test_ordinary_text_is_written_unchanged(text):
    """A-14: letters of any script, accents, emoji without joiners, boxes and ends of lines."""
    assert safe(text) == text


@given(st.lists(CHARACTERS).map("".join))
def test_nothing_unsafe_is_written(text):
    """A-14, A-20."""
    assert not unsafe(shown(text))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.just(NASTY), max_size=3))
def test_json_keeps_its_value(values):
    """A-20."""
    text = json.dumps(values, ensure_ascii=False, indent=1)
    assert json.loads(safe(text)) == values
    assert not unsafe(shown(text))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain\ttext é …\n", "plain\ttext é …\n"),
        ("日本 🌡 →\n", "日本 🌡 →\n"),
        (coloured("red", "31"), "\x1b[31mred\x1b[0m"),
        ("\x1b[8mhidden\x1b[0m", "\\u001b[8mhidden\x1b[0m"),
        ("\x1b[31m\x9b\x1b[0m\r\n", "\x1b[31m\\u009b\x1b[0m\r\n"),
        ("\x1b[3\x1b[31m1m", "\\u001b[3\x1b[31m1m"),
        ("over\rwritten", "over\\u000dwritten"),
        ('"\\\\\u202e"', '"\\\\\\u202e"'),
        ("\U000e0041", "\\udb40\\udc41"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_a_terminal_gets(text, written):
    """A-20."""
    assert safe(text) == written


def test_every_way_of_writing_passes_the_barrier(terminal):
    """A-20: by `print`, `write`, `writelines` and as bytes, in this order."""
    out, written = terminal
    print("a\x9b", file=out)
    out.writelines(["b\x9b\n", "c\x9b\n"])
    out.buffer.write(b"d\xc2\x9b\n")
    out.buffer.writelines([b"e\xc2", b"\x9b\n"])
    print("f\x9b", file=out)
    assert written() == "".join(f"{letter}\\u009b\n" for letter in "abcdef")


def test_bytes_that_are_not_utf_8_are_escaped(terminal):
    out, written = terminal
    out.buffer.write(b"\x9b31m\n")
    out.buffer.flush()
    assert written() == "\\x9b31m\n"


def test_only_a_terminal_gets_the_barrier(monkeypatch, tmp_path):
    """A-20: a pipe and a file get what is written."""
    reader, writer = open_terminal()
    with open(tmp_path / "a", "w", encoding="utf-8") as file, open(writer, "w", encoding="utf-8") as screen:
        monkeypatch.setattr(sys, "stdout", file)
        monkeypatch.setattr(sys, "stderr", screen)
        guard()
        assert sys.stdout is file
        assert isinstance(sys.stderr, TerminalText)
        assert (unguarded(sys.stderr), unguarded(file)) == (screen, file)
        guarded = sys.stderr
        guard()
        assert sys.stderr is guarded, "once is enough"
        print("a\x9b", file=sys.stderr)
        assert limits.read(reader, 100) == b"a\\u009b\r\n"
    os.close(reader)
