"""A-07: whatever a capture contains, every command that reads it ends with a result or with one line for the user."""

import contextlib
import io
import itertools
import json
import os
import random
import shutil
import sys

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mcpspy import cli
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.catalogue import BY_NAME, answer
from mcpspy.browse.timeline import OpenCapture
from mcpspy.contract.verify.session import recorded
from mcpspy.errors import CaptureError, McpspyError, UsageError
from mcpspy.exporters import single_message
from mcpspy.replay.growth import beside, take_in
from mcpspy.replay.mock import Mock
from mcpspy.replay.run import writing
from mcpspy.replay.script import load, script_of
from mcpspy.report.differences import to_json
from mcpspy.tui.message import facts
from mcpspy.tui.message.facts import around
from tests import NIGHTLY
from tests.damage import hostile
from tests.timelines import CAPTURES
from tests.transcript import capture


def commands(path, other):
    """Yield every command that reads a capture and ends by itself."""
    for name in ("text", "json", "junit", "sarif", "github"):
        yield ["check", path, "--format", name]
    yield ["check", path, "--as", "2026-07-28"]
    yield ["lock", path, "-o", f"{path}.lock.json", "--update"]
    yield ["check", other, "--lock", f"{path}.lock.json"]
    yield ["lock", other, "-o", f"{other}.lock.json", "--update"]
    yield ["check", path, "--lock", f"{other}.lock.json"]
    yield ["show", path]
    yield ["show", path, "--long"]
    yield ["show", path, "--json"]
    yield ["show", path, "--filter", "(method:tools/* or status:error) latency:<1s not a"]
    yield ["ls", os.path.dirname(path), "--json"]
    yield ["ls", os.path.dirname(path), "--runs"]
    yield ["ls", os.path.dirname(path), "--runs", "--json"]
    yield ["diff", path, other]
    yield ["diff", other, path, "--format", "json"]
    yield ["import", path, "--capture-dir", os.path.join(os.path.dirname(path), "imported")]
    yield ["scrub", "--check", path]
    yield ["scrub", path, "-o", f"{path}.scrubbed", "--yes", "--force"]
    yield ["share", path, "-o", f"{path}.html", "--yes", "--force"]
    yield ["stats", path]
    for name in ("har", "mermaid", "perfetto", "csv", "otlp"):
        yield ["export", path, "--format", name, "-o", f"{path}.{name}", "--force"]
    if NIGHTLY:  # tables are slow
        yield ["export", path, "--format", "parquet", "-o", f"{path}.parquet"]
        yield ["sql", "FROM messages JOIN exchanges USING (capture, part)", path, other, "--format", "json"]


def run(arguments):
    """Run a command and return its exit status and stderr."""
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    before = sys.argv, sys.stdout, sys.stderr
    sys.argv, sys.stdout, sys.stderr = ["mcpspy", *arguments], out, err
    try:
        try:
            status = cli.main()
        except SystemExit as done:
            status = done.code
    finally:
        sys.argv, sys.stdout, sys.stderr = before
    err.seek(0)
    return status, err.read()


def exported(path):
    """Make every export form of every row."""
    session = OpenCapture(path)
    try:
        while session.grow(1):
            pass
        for place in range(len(session)):
            session.line(place)
            session.partner(place)
            rows = session.messages(place)
            found = around(session, place)
            list(facts.entries(rows, session.header, found))
            for row in rows:
                for form in (single_message.curl, single_message.python):
                    with contextlib.suppress(UsageError):
                        form(session.header, row, found.request)
                with contextlib.suppress(UsageError):
                    single_message.as_json(row)
    finally:
        session.close()


def asked(path):
    """Call every tool of `mcpspy mcp` on a capture and some of its frames. The answers are strict, bounded JSON."""
    captures = AgentCaptures(os.path.dirname(path), 5)
    try:
        captures.look()
        entry = next((it for it in captures.entries if it.path == path), None)
        if entry is None:
            return
        name = captures.name(entry)
        rows = list(captures.open(entry).index.rows)
        rows = rows[:: max(len(rows) // _ASKED, 1)]
        calls = [("list_sessions", {}), ("compare", {"a": name, "b": name})]
        calls += [
            (tool, {"session": name}) for tool in ("find_problems", "explain_start", "tool_usage", "read_timeline")
        ]
        calls += [("read_timeline", {"session": name, "filter": 'status:error or "a"', "newest_first": True})]
        calls += [("read_message", {"address": f"{name}#{n}"}) for n in rows]
        calls += [("read_message", {"address": f"{name}#{n}", "pointer": "/params"}) for n in rows[:5]]
        calls += [("compare", {"a": f"{name}#{n}", "b": f"{name}#{m}"}) for n, m in itertools.pairwise(rows[:5])]
        for tool, arguments in calls:
            with contextlib.suppress(CaptureError, UsageError):
                found = answer(BY_NAME[tool], captures, arguments)
                text = to_json(found)
                assert json.loads(text) == found
                assert len(text.encode()) <= 8200, (tool, arguments)
                assert not set(text) & set("\u202e\x00\x1b\x9b\u200b\n")
    finally:
        captures.close()


def played(path):
    """Load the capture as a mock server's script and as a replay, and feed the client's lines to the mock."""
    script_of(path)
    with contextlib.suppress(CaptureError):
        script = load(path, lambda sentence: None)
        writing(script)
        with contextlib.suppress(UsageError):
            recorded(script, ["all"])
        mock = Mock([script], loose=True)
        mock.begin(0)
        for message in script.messages:
            if message.sender == "client":
                mock.feed(message.frame.raw, 0)
            mock.due(10**12)
        mock.end()


def grown(path, other):
    """Add another capture to this one, as `mock --record-missing` does. The old content must stay at the beginning."""
    target = f"{path}.grown.jsonl"
    shutil.copyfile(path, target)
    shutil.copyfile(other, beside(target))
    with contextlib.suppress(McpspyError):
        take_in(target, lambda sentence: None)
    with open(path, "rb") as old, open(target, "rb") as new:
        assert new.read().startswith(old.read())


_ASKED = 12  # frames
GOLDEN = [path.read_bytes().splitlines() for path in sorted(CAPTURES.glob("*.jsonl"))]


@settings(derandomize=True, max_examples=200 if NIGHTLY else 30, deadline=None, database=None, phases=[Phase.generate])
@given(seed=st.integers(0, 1 << 32))
def test_whatever_is_in_a_capture_no_command_ends_in_a_traceback(tmp_path_factory, seed):
    """The captures are golden captures with faults of every kind. A failure is one line that names the frame."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    folder = tmp_path_factory.mktemp("hostile")
    path, other = str(folder / "a.jsonl"), str(folder / "b.jsonl")
    lines = chance.choice(GOLDEN)
    for file in (path, other):
        with open(file, "wb") as output:
            output.write(hostile(lines, chance))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        for arguments in commands(path, other):
            status, err = run(arguments)
            assert status in (0, 1, 2)
            assert "bug of mcpspy" not in err
            assert status != 2 or err.count("\n") == 1
    for read in (exported, played, asked):
        with contextlib.suppress(CaptureError):
            read(path)
    grown(path, other)


def test_a_method_may_be_empty(tmp_path):
    """`diff` and `mock` once treated it as a line without a method."""
    asked = '> {"jsonrpc":"2.0","id":1,"method":""}\n< {"jsonrpc":"2.0","id":1,"result":{}}'
    path = capture(str(tmp_path / "a.jsonl"), asked + '\n> {"jsonrpc":"2.0","method":""}')
    played(path)
    assert run(["diff", path, path]) == (0, "")
