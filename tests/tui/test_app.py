"""The whole application: real servers behind `mcpspy wrap`, real captures, and hostile ones."""

import json
import os
import signal
import sys
import unicodedata

import pytest
from textual.events import Paste

from mcpspy.errors import CaptureError, UsageError
from mcpspy.exporters import FORMATS
from mcpspy.tui.app import KEYS, Spy, run
from mcpspy.tui.message.facts import around
from mcpspy.tui.message.forms import FORMS
from mcpspy.tui.session import SessionScreen
from tests import NIGHTLY
from tests.hostile_text import without_joins
from tests.relay.harness import python
from tests.relay.harness import until as wait_until
from tests.test_text import unsafe
from tests.timelines import CAPTURES
from tests.transcript import OPENS, begin, finish
from tests.tui.screen import (
    detail,
    lines,
    on_screen,
    opened,
    pane,
    play,
    resize,
    sessions,
    shown,
    strips,
    texts,
    timeline,
    until,
)

SERVER = python(
    """
import sys
for line in sys.stdin:
    if "slow" not in line:
        print('{"jsonrpc":"2.0","id":1,"result":{}}', flush=True)
"""
)
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
SLOW = b'{"jsonrpc":"2.0","id":2,"method":"slow"}'


def test_a_real_session_appears_grows_and_ends(tmp_path, wrap):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "No captures"))
        server = wrap(*SERVER, options=("--capture-dir", str(tmp_path), "--name", "real"))
        await until(pilot, on_screen(pilot, "● live real"))
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "real · stdio · live · 0 rows · following"))
        assert server.ask(PING) == b'{"jsonrpc":"2.0","id":1,"result":{}}'
        await until(pilot, on_screen(pilot, "live · 2 rows"))
        await until(pilot, lambda: "ping" in shown(timeline(pilot))[1])
        server.finish()
        await until(pilot, on_screen(pilot, "real · stdio · ended · 5 rows"))
        await until(pilot, lambda: "end: the server exited with code 0" in shown(timeline(pilot))[4])
        await pilot.press("escape")
        await until(pilot, on_screen(pilot, "1 session, 0 live"))

    play(scenario, tmp_path)


def test_a_session_whose_relay_is_killed_is_no_longer_live(wrap):
    server = wrap(*SERVER)
    server.ask(PING)
    server.stdin.write(SLOW + b"\n")
    wait_until(lambda: server.recording() and len(server.frames(1)) == 2)

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "live · 3 rows"))
        await until(pilot, lambda: " pending " in slow(pilot))
        server.send_signal(signal.SIGKILL)
        await until(pilot, on_screen(pilot, "· killed · 3 rows"))
        await until(pilot, lambda: " in-doubt " in slow(pilot))

    def slow(pilot):
        return next(line for line in shown(timeline(pilot)) if "slow" in line)

    play(scenario, server.path)


def test_q_and_control_c_quit_from_every_place():
    path = CAPTURES / "field-stdio.jsonl"
    for pressed in (["q"], ["enter", "q"], ["enter", "enter", "q"], ["ctrl+c"]):
        app = Spy([str(path), str(CAPTURES / "field-sse.jsonl")])

        async def scenario(pilot, pressed=pressed):
            assert sessions(pilot).count() == 2, "several captures are a list"
            await pilot.press(*pressed)
            await until(pilot, lambda: not pilot.app.is_running)

        play(scenario, app=app)
        assert app.return_code == 0


@pytest.mark.parametrize("alone", [True, False])
def test_one_capture_opens_at_once_and_the_sessions_stand_behind_it(alone):
    path = str(CAPTURES / "field-stdio.jsonl")

    async def scenario(pilot):
        assert timeline(pilot).count() > 10
        await pilot.press("escape")
        expected = 1 if alone else len(list(CAPTURES.glob("*.jsonl")))
        await until(pilot, lambda: sessions(pilot).count() == expected)
        await until(pilot, on_screen(pilot, f"{expected} session"))

    play(scenario, app=Spy([path]) if alone else Spy([str(CAPTURES)], path))


def test_what_is_no_capture_is_refused_before_the_screen_is_taken(tmp_path):
    (tmp_path / "a").write_bytes(b"hello\n")
    with pytest.raises(CaptureError, match="is not a capture: its first line is not a capture header"):
        Spy([str(tmp_path / "a")])


def test_without_a_terminal_it_says_what_prints_the_same(monkeypatch):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    with pytest.raises(UsageError, match="'mcpspy ls' and 'mcpspy show --long CAPTURE' print the same"):
        run([])


def test_the_palette_offers_what_keys_of_ours_do_once_and_nothing_else():
    says = {"theme"} | {action.text for scope in KEYS for action in scope.actions}
    says |= {"share", *(f"export {name}" for name in FORMATS)}

    def offered(pilot):
        return [command.title for command in pilot.app.get_system_commands(pilot.app.screen)]

    async def scenario(pilot):
        await until(pilot, lambda: sessions(pilot).count())
        for place, own in (
            ("", {"merge sessions", "mark", "command line"}),
            ("enter 1", {"problems", "save", "follow"}),
            ("enter", {"fold/unfold", "findings"}),
            ("colon", {"cancel", "run the line"}),
        ):
            await pilot.press(*place.split())
            found = offered(pilot)
            assert own <= set(found), place
            assert set(found) <= says
            assert len(set(found)) == len(found)
        await pilot.press("escape", "ctrl+p", *"follow", "enter")
        await until(pilot, lambda: timeline(pilot).follow)

    play(scenario, *sorted(CAPTURES.glob("*.jsonl"))[:2])


def test_a_small_screen_and_back():
    async def scenario(pilot):
        await opened(pilot)
        before = lines(pilot.app)
        await resize(pilot, 40, 10)
        await until(pilot, lambda: len(lines(pilot.app)) == 10)
        for pressed in ("r", "r", "r", "r", "down", "up", "enter", "escape"):
            await pilot.press(pressed)
        await resize(pilot, 120, 30)
        await until(pilot, lambda: lines(pilot.app) == before)

    play(scenario, CAPTURES / "field-stdio.jsonl", draws=True)


# Hostile content (F-08).


def forms(pilot, place, most):
    """Yield each row of a message in each form of the pane, as text."""
    session, widget = timeline(pilot).session, detail(pilot)
    widget.show(session.messages(place), session.header, around(session, place))
    for _ in FORMS:
        yield from texts(pane(pilot).document, most)
        widget.action_form()


BIDI = "\u202e\u2066\u200f\u061c"
HOSTILE = [
    "[/]",
    "[@click=app.quit]x[/]",
    "[@click=app.quit()]x[/][link=https://example.com]y[/link]",
    "[bold red on blue]x",
    "[",
    "\\[",
    "\x1b[2J\x1b]0;title\x07\x1b]8;;https://example.com\x07x\x1b\\",
    "\x9b31m\x90q\x9c",
    BIDI,
    "\0\r\n\t\b\x7f",
    "\u2028\u2029\ufeff\u200b\u00ad",
    "\ud800x\udfff",
    "\U000e0041\U000e007f",
    "e" + "\u0301" * 200,
    "日本語" * 30,
    "👨‍👩‍👧‍👦🏳️‍🌈",
    "x" * 100_000,
    "\x1b" * 100_000,
    "",
]
FRAMES = [
    b"\xff\xfe\x1b[2J" * 10,
    b"{" * 5000,
    b'{"id":1,"method":"x","params":' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"id":1,"method":"x","params":"' + b"y" * 2_000_000 + b'"}',
    b"\x1b" * 2_000_000,
    b"\x1b[2J[/]" * 20_000,
    b"[" + b",".join([b'{"method":"[/]"}'] * 500) + b"]",
    b'{"id":{"[/]":1},"method":"[@click=app.quit]x[/]"}',
    b'{"id":1,"method":"tools/call","params":{"name":5}}',
    b"",
    b"\r",
]


SCROLLBAR = ("scroll_up", "scroll_down", "grab", "release")
"""The actions of a click on a scrollbar."""


def harmless(text):
    """Return whether a text has no control character and nothing else that a terminal must not get."""
    rest = without_joins(text)
    return not unsafe(rest) and not any(unicodedata.category(it) in ("Cc", "Cf", "Cs") for it in set(rest))


def clean(strips):
    """Check that these lines have no control character, no link, and nothing that can be clicked."""
    for strip in strips:
        for segment in strip:
            text, style = segment.text, segment.style
            assert segment.control is None
            assert harmless(text), text[:100]
            assert style is None or style.link is None
            for event, action in (style.meta if style else {}).items():
                assert not event.startswith("@") or action in SCROLLBAR, (event, action)


def written(writer):
    """Write the hostile session: each string as every part of a message, on every channel."""
    for channel in OPENS:
        writer.open(channel.ch, 0, channel.sender, channel.role, channel.framing)
    t = 0
    for text in HOSTILE:
        messages = [
            {"id": text, "method": text, "params": {"name": text, text: text}},
            {"id": text, "result": {"content": [{"type": "text", "text": text}]}},
            {"id": t, "method": "tools/call", "params": {"name": text}},
            {"id": t, "error": {"code": text, "message": text}},
            {"method": "notifications/resources/updated", "params": {"uri": text}},
            {text: text},
        ]
        for ch, value in zip((1, 2, 1, 2, 2, 2), messages, strict=True):
            write(writer, ch, t, json.dumps(value).encode())
            t += 1000
        for ch in (1, 2, 3):
            write(writer, ch, t, text.encode("utf-8", "surrogatepass"))
    for frame in FRAMES:
        for ch in (1, 3):
            write(writer, ch, t, frame)
    finish(writer, t, 3, "\x1b[2J[/]")


def write(writer, ch, t, raw):
    """Write a frame, in pieces if it is over 64 KiB."""
    pieces = [raw[at : at + 65536] for at in range(0, len(raw), 65536)] or [b""]
    for place, piece in enumerate(pieces, 1):
        writer.frame(ch, t, piece, more=place < len(pieces), cut=False)


@pytest.fixture
def hostile(tmp_path):
    """A directory with a hostile name, and in it a capture in which every string is hostile."""
    folder = tmp_path / "[@click=app.quit]\x1b[2J\u202e[/]"
    folder.mkdir(parents=True)
    text = "".join(HOSTILE[:12]).replace("\ud800x\udfff", "")
    writer = begin(folder / "[bold]\x1b[31m.jsonl", argv=("[/]", text, *HOSTILE[:5]), name=text, transport="[/]\x1b[2J")
    written(writer)
    return folder


def test_every_row_of_a_hostile_session_is_only_text(hostile):
    (path,) = hostile.iterdir()

    async def scenario(pilot):
        rows = await opened(pilot)
        assert rows.count() == 9 * len(HOSTILE) + 2 * len(FRAMES) + 1
        for place in range(rows.count()):
            for text in set(forms(pilot, place, 300)):
                assert harmless(text), text[:100]
        for place in range(0, rows.count(), 7):
            rows.move_to(place)
            await pilot.pause()
            clean(strips(pilot.app))
        assert pilot.app.return_code is None

    play(scenario, path)


def test_keys_and_clicks_in_a_hostile_session_have_no_effect_but_their_own(hostile):
    async def scenario(pilot):
        async def press(*keys):
            for key in keys:
                await pilot.press(key)
                clean(strips(pilot.app))

        await until(pilot, lambda: sessions(pilot).count() == 1)
        clean(strips(pilot.app))
        await pilot.press("enter")
        await opened(pilot)
        for width, height in ((40, 10), (160, 40)):
            await resize(pilot, width, height)
            await press("g", "down", "r", "pagedown", "p", "r", "G", "up", "r", "enter", "G", "escape")
            for view in "23451":
                await press(view, "down", "pagedown", "G", "plus", "left", "right")
            for text in HOSTILE[:: 1 if NIGHTLY else 5]:
                await pilot.press("slash")
                pilot.app.focused.post_message(Paste(text[:1000]))
                await pilot.pause()
                clean(strips(pilot.app))
                await pilot.press("escape")
            for y in range(1, height - 1, height // 4):
                await pilot.click(offset=(width // 3, y))
                clean(strips(pilot.app))
        assert pilot.app.is_running
        assert unsafe(pilot.app.title) == []
        await until(pilot, lambda: isinstance(pilot.app.screen, SessionScreen))
        await press(*["escape"] * 3)
        await until(pilot, lambda: sessions(pilot).count() == 1)
        os.rename(hostile, f"{hostile}x")
        sessions(pilot).action_choose()
        await until(pilot, on_screen(pilot, "cannot read"))
        clean(strips(pilot.app))

    play(scenario, hostile)
