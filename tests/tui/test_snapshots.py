"""The main screens, compared with the pictures in `snapshots/`.

A visual change is reviewed as a change of these files, which a browser can show. To write them again:

    MCPSPY_RENEW=1 pytest tests/tui/test_snapshots.py
"""

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from tests.timelines import CAPTURES
from tests.transcript import WALL
from tests.tui.compare.weather import weather
from tests.tui.gates.relay import CALL, CLIENT, ScriptedRelay
from tests.tui.screen import on_screen, opened, play, sessions, timeline, until
from tests.tui.svg import drawn

FOLDER = Path(__file__).parent / "snapshots"
STDIO, HTTP, SAMPLING = "field-stdio", "http-python2-2026-07-28", "full-python1-2025-06-18"
NEWER, OLDER = "python1-2025-11-25", "python2-2025-03-26"
SIZE = (100, 30)


@pytest.fixture
def captures(tmp_path, monkeypatch):
    """Three golden captures in `captures/` of the current directory. They began 3, 4 and 5 days ago."""
    folder = tmp_path / "captures"
    folder.mkdir()
    monkeypatch.chdir(tmp_path)
    for days, name in enumerate((STDIO, HTTP, SAMPLING), 3):
        header, rest = (CAPTURES / f"{name}.jsonl").read_bytes().split(b"\n", 1)
        started = datetime.now(UTC) - timedelta(days=days, hours=12)
        header = json.dumps(json.loads(header) | {"started": started.strftime("%Y-%m-%dT%H:%M:%S.000000Z")})
        (folder / f"{name}.jsonl").write_bytes(header.encode() + b"\n" + rest)
    return "captures"


async def compared(pilot, name, *texts):
    """Wait until the screen shows these texts, and compare it with the picture of that name."""
    for text in texts:
        await until(pilot, on_screen(pilot, text), text)
    path = FOLDER / f"{name}.svg"
    if os.environ.get("MCPSPY_RENEW"):
        before = ""
        while before != (before := drawn(pilot.app)):
            await pilot.pause(0.2)
        path.write_text(before, encoding="utf-8")
    expected = path.read_text(encoding="utf-8")
    try:
        await until(pilot, lambda: drawn(pilot.app) == expected, f"the picture {path}")
    except AssertionError:
        assert drawn(pilot.app).split("\n") == expected.split("\n")  # the message shows the lines that differ


def shown(pictures, capture=STDIO, size=SIZE):
    """Open a golden capture, and for each picture press keys and compare the screen, which shows some texts."""

    async def scenario(pilot):
        await opened(pilot)
        for name, keys, *texts in pictures:
            await pilot.press(*keys)
            await compared(pilot, name, *texts)

    play(scenario, CAPTURES / f"{capture}.jsonl", size=size)


def test_the_sessions(captures):
    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 3)
        await pilot.press("space", "down")
        await compared(pilot, "sessions", "3 sessions", "1 marked", " 45 ", " 100 ", "█", "5 d ago")

    play(scenario, captures, size=SIZE)


def test_the_timeline_and_a_filter():
    shown([
        ("timeline", ["down", "down"], "#7 initialize", "3/48"),
        ("filter", ["g", "slash", *"method:tools/call status:ok"], "/method:tools/call status:ok", "run the line"),
    ])  # fmt: skip


def test_the_timeline_of_a_wide_screen_and_request_and_response_side_by_side():
    shown([("timeline-wide", ["down", "down"], "#7 initialize", "3/48")], size=(160, 40))
    shown([("pair", ["e", "b"])], size=(160, 40))


def test_the_message_with_its_findings():
    shown([("detail", ["e", "enter"], "finding")], size=(100, 40))


def test_the_findings_and_stderr():
    shown([("findings", ["2", "enter", "down"]), ("stderr", ["5"], "database server: connected")])


def test_the_problems():
    shown([("problems", ["w", "+"], "do: ", "1/")])


def test_the_tools_the_menu_of_clients_the_sequence_the_calls_and_both_sides():
    """P-01."""

    async def scenario(pilot):
        await opened(pilot)
        await pilot.press("3", "down")
        await compared(pilot, "tools", "definition")  # rows below a menu are not drawn again
        await pilot.press("c", "down")
        await compared(pilot, "clients", "openai-api")
        await pilot.press("escape", "4", "down")
        await compared(pilot, "sequence", "client ")
        await pilot.press("7")
        await compared(pilot, "calls", "python2-client")
        await pilot.press("8")
        await compared(pilot, "peers", "mcpspy-peer")

    play(scenario, CAPTURES / f"{SAMPLING}.jsonl", size=SIZE, draws=True)


def test_the_tools_that_clients_refuse():
    """P-01."""

    async def scenario(pilot):
        await opened(pilot)
        await pilot.press("3", "c", "down", "enter")
        await until(pilot, on_screen(pilot, "limits of"))
        await pilot.press(*["down"] * 13)
        await compared(pilot, "refused", "fix (server)")

    play(scenario, CAPTURES / "features-node-2025-11-25.jsonl", size=(100, 40))


def test_the_help_and_a_small_screen():
    shown([("help", ["question_mark"], "keys, commands and signs")], size=(100, 60))
    shown([("small", ["down"])], size=(40, 12))


@pytest.mark.parametrize(
    ("name", "key", "size", "texts"),
    [("calls-merged", "7", (140, 30), ("database", "1/")), ("merged", "down", SIZE, ("database", "2/"))],
)
def test_sessions_merged(name, key, size, texts):
    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 2)
        await pilot.press("space", "space", "m")
        rows = await opened(pilot)
        await until(pilot, lambda: rows.count() > 100)
        await pilot.press(key)
        await compared(pilot, name, *texts)

    play(scenario, *(CAPTURES / f"{name}.jsonl" for name in (STDIO, HTTP)), size=size)


@pytest.mark.parametrize(("name", "width"), [("compare", 120), ("compare-narrow", 80)])
def test_two_messages_compared(tmp_path, name, width):
    """R-15."""
    golden = weather(tmp_path / "a.jsonl").removesuffix(".jsonl")
    picture = (name, ["down", "m", "down", "down", "d"], "3 differences", "21 degrees")
    shown([picture], capture=golden, size=(width, 24))


def test_two_sessions_compared():
    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count() == 2)
        await pilot.press("space", "space", "d")
        await compared(pilot, "compare-sessions", "21 differences", "peer/unknown", "protocolVersion")

    play(scenario, *(CAPTURES / f"features-{name}.jsonl" for name in (NEWER, OLDER)), size=(120, 30))


@pytest.fixture
def held(tmp_path, monkeypatch):
    """Return a function that presses keys in a session with a frame held for 12 s, and compares the screen."""
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.delenv("EDITOR", raising=False)
    clock = SimpleNamespace(time=lambda: WALL / 1e9 + 102.5, monotonic=time.monotonic)
    when = {"method": "tools/call", "name": "get_forecast", "from": "client"}

    def compare(name, keys, *texts):
        async def scenario(pilot):
            await until(pilot, lambda: pilot.app.screen.query("TimelineRows") and timeline(pilot).count() == 5)
            session = timeline(pilot).session
            gate = session.control.add("method:tools/call name:get_forecast from:client", when)
            relay.writer.gates(80 * 10**9, [gate.compiled()], "viewer")
            relay.hold(1, gate.name, CALL, CLIENT, at=90)
            await until(pilot, on_screen(pilot, "held 12 s"))
            await pilot.press(*keys)
            await compared(pilot, name, *texts)

        relay = ScriptedRelay(tmp_path / "a.jsonl", wall=WALL)
        views = ("mcpspy.tui.views.timeline.time", "mcpspy.tui.gates.time")
        with patch(views[0], clock), patch(views[1], clock):
            play(scenario, relay.path, size=SIZE)

    return compare


def test_a_held_frame(held):
    held("held", ["G"], "held 12 s · client gives up in 47 s", "continue")
    readme = FOLDER.parents[2] / "docs" / "held.svg"
    assert readme.read_bytes() == (FOLDER / "held.svg").read_bytes(), "scripts/picture copies it"


def test_the_gates(held):
    held("gates", ["6"], "break get_forecast", "1 held")
