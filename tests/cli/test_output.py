"""Output: notices, files of reports, terminals and the progress bar."""

import errno
import io
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.cli import output
from mcpspy.cli.output import (
    ProgressBar,
    TerminalText,
    confirmed,
    explain,
    guard,
    has_colours,
    path_text,
    refuse_to_overwrite,
    safe,
    say,
    unguarded,
    write_report,
)
from mcpspy.errors import UsageError
from mcpspy.output_file import WriteError
from mcpspy.report.words import COLOURS, coloured
from tests import limits
from tests.hostile_text import CONTROLS, HIDDEN, NASTY, unsafe
from tests.limits import LIMIT
from tests.optional import open_terminal
from tests.report.captures import fine


def test_what_is_said_is_one_line_on_stderr(capsys):
    """F-08."""
    say("a\nb\x1b[2J")
    assert capsys.readouterr() == ("", "mcpspy: a\\nb\\e[2J\n")


@pytest.mark.parametrize(
    ("terminal", "no_color", "expected"),
    [(True, None, True), (True, "", True), (True, "1", False), (False, None, False)],
)
def test_colours_are_for_terminals_whose_user_wants_them(monkeypatch, terminal, no_color, expected):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    if no_color is not None:
        monkeypatch.setenv("NO_COLOR", no_color)
    assert has_colours() is expected
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colours()


@pytest.mark.parametrize(
    ("path", "shown"),
    [("/home/me", "~"), ("/home/me/a\x1b", "~/a\\e"), ("/home/me2/a", "/home/me2/a"), ("a", "a"), ("/", "/")],
)
def test_a_path_does_not_tell_whose_home_it_is_in(monkeypatch, path, shown):
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("USERPROFILE", "/home/me")
    assert path_text(path.replace("/", os.sep)) == shown.replace("/", os.sep)


PRINTS = "from mcpspy.cli.output import prepare_streams; prepare_streams(); print('\\udc80 ä', flush=True)"


@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_a_22_an_error_of_stdout_is_marked_as_one(options):
    program = [sys.executable, *options, "-X", "utf8", "-c", PRINTS]
    done = limits.run(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\\udc80 \xc3\xa4\n", b"")
    if os.path.exists("/dev/full"):
        with open("/dev/full", "wb") as full:
            done = limits.run(program, stdout=full, stderr=subprocess.PIPE)
        assert b"mcpspy.output_file.WriteError: [Errno 28] No space left on device" in done.stderr
    read, write = os.pipe()
    os.close(read)
    done = limits.run(program, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    assert b"mcpspy.output_file.OutputClosed: [Errno 32] Broken pipe" in done.stderr


def test_lines_that_explain_a_notice_are_printable_too(capsys):
    """A-14."""
    explain("a\x9b", "b\nc")
    assert capsys.readouterr() == ("", "a\\x9b\nb\\nc\n")


@pytest.mark.parametrize(("answer", "agreed"), [("y", True), (" YES ", True), ("", False), ("no", False)])
def test_a_question_is_printable(monkeypatch, answer, agreed):
    """A-14."""
    asked = []
    monkeypatch.setattr("builtins.input", lambda text: asked.append(text) or answer)
    assert confirmed("Write a\x9b?") is agreed
    assert asked == ["Write a\\x9b? [y/N] "]


def test_what_is_read_is_not_written(tmp_path):
    path = fine(tmp_path / "a.jsonl")
    os.link(path, tmp_path / "b")
    with pytest.raises(UsageError, match=r"-o .*b is the file"):
        refuse_to_overwrite("-o", str(tmp_path / "b"), [str(path)])
    refuse_to_overwrite("-o", str(tmp_path / "c"), [str(path)])


def test_a_report_is_printed_or_written(tmp_path, capsys):
    write_report(["a\n", "b\n"], None)
    assert capsys.readouterr().out == "a\nb\n"
    write_report(["a\n"], str(tmp_path / "a"))
    assert (tmp_path / "a").read_text() == "a\n"
    with pytest.raises(UsageError, match="cannot write"):
        write_report([], str(tmp_path / "no" / "a"))


def test_a_22_an_error_of_the_input_is_not_reported_as_one_of_the_report(tmp_path):
    def chunks():
        yield "a\n"
        os.stat(tmp_path / "missing")

    with pytest.raises(FileNotFoundError, match="missing"):
        write_report(chunks(), str(tmp_path / "a"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_22_a_report_that_cannot_be_written_is_named():
    with pytest.raises(UsageError, match="cannot write /dev/full: No space left on device"):
        write_report(["a\n"], "/dev/full")


def test_a_report_that_cannot_be_finished_leaves_no_file(tmp_path):
    """A-21: half a report could be taken for a whole one."""

    def chunks():
        yield "a\n"
        raise WriteError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UsageError, match=r"cannot write .*: No space left on device"):
        write_report(chunks(), str(tmp_path / "a"))
    assert list(tmp_path.iterdir()) == []


CHARACTERS = st.characters() | st.sampled_from(CONTROLS + HIDDEN + "\u0301…→←✗─│▄\n\t\r")


@pytest.fixture
def terminal():
    """A terminal, and a function that returns what was written to it."""
    raw = io.BytesIO()
    return TerminalText(io.TextIOWrapper(raw, "utf-8")), lambda: raw.getvalue().decode()


def shown(text):
    """Return what a terminal gets, without the colours and ends of lines that are ours."""
    found = safe(text).replace("\r\n", "").replace("\n", "").replace("\t", "")
    for code in (*COLOURS.values(), "0"):
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
        (coloured("red", "error"), "\x1b[31mred\x1b[0m"),
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


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def attached(monkeypatch):
    """Return a function that makes stderr a terminal with a bar at once. pytest resets stderr after the setup."""
    monkeypatch.setattr(output, "PATIENCE", 0)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")

    def attach():
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return attach


def work():
    with ProgressBar("checking [red]", 100) as bar:
        bar.advance(40)
        print("a result")
        bar.advance(60)


def test_the_bar_is_on_stderr_and_results_are_on_stdout(attached, capsys):
    screen = attached()
    work()
    assert capsys.readouterr().out == "a result\n"
    assert "checking [red]" in screen.getvalue()
    assert "40%" in screen.getvalue()


def test_what_is_written_above_the_bar_is_made_safe(attached):
    """A-14: rich writes it to the terminal itself, after it has interpreted escape sequences such as links."""
    screen = attached()
    with ProgressBar("checking", 100) as bar:
        bar.advance(40)
        print("a \x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\ \x9b31m \u202e", file=sys.stderr)
    assert sys.stderr is screen
    shown = screen.getvalue()
    assert not {"\x9b", "\u202e"} & set(shown)
    assert "]8;" not in shown.replace("\\u001b]8;;http://x", "").replace("\\u001b]8;;", "")
    assert "\\u009b31m \\u202e" in shown


def test_the_bar_goes_away_with_an_exception_too(attached):
    def stumble():
        with ProgressBar("checking", 100) as bar:
            bar.advance(1)
            raise KeyError

    screen = attached()
    with pytest.raises(KeyError):
        stumble()
    assert "\x1b[?25h" in screen.getvalue(), "the cursor is back"


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("TERM", "dumb"), ("ACCESSIBLE", "1")])
def test_in_ci_and_on_a_terminal_without_movement_there_is_none(attached, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    screen = attached()
    work()
    assert screen.getvalue() == ""


def test_work_that_is_done_soon_has_none(attached, monkeypatch):
    monkeypatch.setattr(output, "PATIENCE", 1e9)
    screen = attached()
    work()
    assert screen.getvalue() == ""


def test_without_a_terminal_nothing_is_imported_and_nothing_written():
    script = (
        "import sys; from mcpspy.cli import output; output.PATIENCE = 0\n"
        "with output.ProgressBar('checking', 10) as bar: bar.advance(5)\n"
        "print('rich' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=LIMIT)
    assert (done.stdout, done.stderr) == ("False\n", "")
