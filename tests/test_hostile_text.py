"""A-14, A-20: hostile text in every member of every record reaches no terminal, whatever command prints it."""

import dataclasses
import json
import os
import re
import subprocess
import sys
import threading
import typing
from contextlib import contextmanager

import pytest

from mcpspy import cli
from mcpspy.capture import records
from mcpspy.capture.reader import Capture
from tests import limits
from tests.each import each
from tests.hostile_text import EVERY_MEMBER, NASTY, gentle, harsh, one_by_one, places, unsafe
from tests.limits import LIMIT
from tests.optional import open_terminal

FIXED = {"kind", "from", "role", "framing", "to", "started", "b64", "transport", "how"}
"""Members whose values a reader knows; another value is tried in `test_a_member_that_the_reader_knows`."""
PEOPLE = [
    ["show"], ["show", "--long"], ["show", "--filter", "not size:>1TB"], ["check"], ["check", "--format", "github"],
    ["check", "--format", "junit"], ["check", "--format", "sarif"], ["check", "--as", "2026-07-28"],
    ["check", "--client", "all"], ["stats"], ["scrub", "--check"], ["export", "--format", "mermaid"],
]  # fmt: skip
"""Commands whose output is for people, without the capture."""
PROGRAMS = [["show", "--json"], ["check", "--format", "json"], ["stats", "--json"], ["scrub", "--check", "--json"]]
"""Commands that print a JSON value on each line."""
FILES = [["export", "--format", name] for name in ("csv", "perfetto", "otlp", "har")]


class Streams:
    """Standard output and error of a command, in a pipe or in a terminal; `text` is what was written to both."""

    def __init__(self, *, terminal: bool):
        self._read, self._write = open_terminal() if terminal else os.pipe()
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._parts = []
        self.text = ""

    def _collect(self):
        try:
            while part := limits.read(self._read, 1 << 16):
                self._parts.append(part)
        except OSError:  # the other side of a terminal is closed
            pass

    @contextmanager
    def running(self, argv):
        self._thread.start()
        with (
            pytest.MonkeyPatch.context() as patch,
            open(self._write, "w", encoding="utf-8") as out,
        ):
            patch.setattr(sys, "argv", ["mcpspy", *argv])
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", out)
            patch.setenv("NO_COLOR", "1")
            patch.setenv("CI", "1")
            yield
            sys.stdout.flush()
            sys.stderr.flush()
        self._thread.join(LIMIT)
        os.close(self._read)
        self.text = b"".join(self._parts).decode()
        self.text = re.sub("\r+\n", "\n", self.text)


def printed(*argv, terminal=False):
    """Return what a command writes to a pipe, or to a terminal."""
    streams = Streams(terminal=terminal)
    with streams.running(list(map(str, argv))):
        try:
            status = cli.main()
        except SystemExit as done:
            status = done.code
    assert status in (0, 1, 2)
    assert "a bug of mcpspy" not in streams.text
    return streams.text


def assert_safe(text):
    """Fail if a line of a text has something that a terminal must not get."""
    found = [(line, bad) for line in text.split("\n") if (bad := unsafe(line))]
    assert not found, found[:3]


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return the paths of hostile captures, in a directory with a hostile name."""
    folder = tmp_path_factory.mktemp("captures") / NASTY.replace("/", "").replace("\0", "")[:40]
    folder.mkdir()
    makers = {"gentle": gentle, "harsh": harsh}
    return {
        f"{how}-{name}": make(name, folder / f"{how}\x9b-{name}\u202e.jsonl")
        for name in EVERY_MEMBER
        for how, make in makers.items()
    }


def with_capture(words, path):
    return [words[0], path, *words[1:]]


def test_the_captures_have_every_member_of_every_record(tmp_path):
    """A new member of a record belongs into `EVERY_MEMBER`."""
    found = set()
    for name, lines in EVERY_MEMBER.items():
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n")
        capture = Capture(str(path))
        for it in [capture.header, capture.header.imported, *capture.records()]:
            if it is not None:
                found |= {(type(it), field.name) for field in dataclasses.fields(it) if filled(it, field)}
    kinds = [records.Header, records.Imported, *typing.get_args(records.Record)]
    missing = {(kind.__name__, field.name) for kind in kinds for field in dataclasses.fields(kind)} - {
        (kind.__name__, name) for kind, name in found
    }
    assert missing == {("Frame", "omitted")}, "a frame of more than 8 MiB; its text is that of other frames"


def filled(record, field):
    value = getattr(record, field.name)
    return value != field.default or (isinstance(value, int | bool) and field.default is dataclasses.MISSING)


def test_every_text_is_hostile_in_one_of_the_captures(hostile):
    found, clean = set(), set()
    for path in hostile.values():
        lines = list(map(json.loads, path.read_text().splitlines()))
        for place in places(lines):
            texts = list(at(lines, place))
            (found if any("\u0301" in text or "\\u0301" in text for text in texts) else clean).add(place)
    assert {place[-1] for place in clean - found} <= FIXED, clean - found


def at(lines, place):
    """Yield the texts at one place of some records."""
    kind, *path = place
    inner = [line for line in lines if line.get("kind", "header") == kind]
    for name in path:
        inner = [each for it in inner for each in (it if name == "" and isinstance(it, list) else member(it, name))]
    yield from (text for text in inner if isinstance(text, str))


def member(value, name):
    return [value[name]] if isinstance(value, dict) and name in value else []


def test_text_for_people_is_safe_in_a_pipe_too(hostile):
    """A-14."""

    @each("words, name", [(words, name) for words in PEOPLE for name in hostile], ids=str)
    def safe(words, name):
        assert_safe(printed(*with_capture(words, hostile[name])))

    safe()


def test_nothing_unsafe_reaches_a_terminal(hostile):
    """A-14, A-20: whatever the format."""

    @each("words, name", [(words, name) for words in PEOPLE + PROGRAMS + FILES for name in hostile], ids=str)
    def safe(words, name):
        assert_safe(printed(*with_capture(words, hostile[name]), terminal=True))

    safe()


def test_json_on_a_terminal_has_the_same_values(hostile):
    """A-20: unsafe characters are escapes of JSON there; a pipe gets the bytes as docs/json.md describes them."""
    escaped = 0

    @each("words, name", [(words, name) for words in PROGRAMS for name in hostile], ids=str)
    def same(words, name):
        nonlocal escaped
        piped, shown = (printed(*with_capture(words, hostile[name]), terminal=terminal) for terminal in (False, True))
        assert list(map(json.loads, values(shown))) == list(map(json.loads, values(piped)))
        escaped += bool(any(map(unsafe, values(piped))))

    same()
    assert escaped


def values(text):
    return [line for line in text.split("\n") if line.startswith("{")]


def test_a_member_that_the_reader_knows(tmp_path):
    """A-14: hostile text in a single member, also in those that make a record unreadable, such as `role`."""
    for name in EVERY_MEMBER:
        for path in one_by_one(name, tmp_path / "a.jsonl", FIXED):
            for words in (["show"], ["check"], ["ls"]):
                target = tmp_path if words == ["ls"] else path
                assert_safe(printed(*words, target))


def test_other_commands_about_hostile_captures(hostile, tmp_path, monkeypatch):
    """A-14: two captures, a directory, and what is written about files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    first, second, *_ = hostile.values()
    folder, lock = first.parent, tmp_path / "lock.json"
    commands = [
        ["diff", first, second], ["diff", second, first, "--format", "github"], ["ls", folder],
        ["ls", folder, "--runs"], ["stats", folder], ["prune", folder, "--older-than", "1d", "--dry-run"],
        ["lock", first, "-o", lock],
        ["lock", second, "-o", lock, "--update"], ["check", second, "--lock", lock], ["check", first, "--lock", lock],
        ["scrub", first, "-o", tmp_path / "s\x9b.jsonl", "--yes"],
        ["share", first, "-o", tmp_path / "s\x9b.html", "--yes"],
        ["import", first, "--capture-dir", tmp_path / "i\x9b"], ["show", folder / "none\x9b"], ["show", folder],
        ["check", first, "--waivers", first], ["check", first, "--expect-tool", NASTY.replace("\0", "")],
        ["show", first, "--filter", "name:\x9b\u202e ("], ["show", first, "--gate", second], ["\x9b\u202e"],
        ["show", "--\x9b\u202e"], ["export", first, "--format", "mermaid", "-o", tmp_path / "e\x9b"],
    ]  # fmt: skip
    for words in commands:
        for terminal in (False, True):
            assert_safe(printed(*words, terminal=terminal))
    for words in (["ls", folder, "--json"], ["diff", first, second, "--format", "json"], ["stats", folder, "--json"]):
        assert_safe(printed(*words, terminal=True))


def test_show_json_of_a_process_on_a_terminal(hostile):
    """A-20."""
    reader, writer = open_terminal()
    path = hostile["gentle-stdio"]
    command = [sys.executable, "-m", "mcpspy", "show", "--json", path]
    with limits.Popen(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer) as process:
        os.close(writer)
        parts = []
        try:
            while part := limits.read(reader, 1 << 16):
                parts.append(part)
        except OSError:  # the process has ended
            pass
    os.close(reader)
    text = b"".join(parts).replace(b"\r\n", b"\n").decode()
    assert process.returncode == 0
    assert_safe(text)
    assert any("\x9b" in json.dumps(json.loads(line), ensure_ascii=False) for line in values(text))
