"""The comparison of two sessions: the differences that `mcpspy diff` reports, and jumps to the frames of each side."""

import json
import os
import re

import pytest

from mcpspy.replay.script import script_of
from mcpspy.replay.tolerance import Rules
from mcpspy.report.differences import CHANGE_FORMATS, examine
from mcpspy.tui.compare import ChangeRows, ComparedRows, MessagesCompared, SessionsCompared
from tests.replay.scripts import call, result
from tests.transcript import WALL, capture
from tests.tui.screen import lines, on_screen, opened, play, timeline, until

OLD = f"""
    > {call(1, "a")}
    < {result(1, "18")}
    > {call(2, "b")}
    < {result(2, "same")}
"""
NEW = f"""
    > {call(2, "b")}
    < {result(2, "same")}
    > {call(1, "a")}
    < {result(1, "21")}
    > {call(3, "c")}
    < {result(3, "new")}
"""


def two(folder):
    """Write two captures. The later session is listed first, but it is always B."""
    return capture(folder / "a.jsonl", OLD), capture(folder / "b.jsonl", NEW, wall=WALL + 10**12)


async def marked(pilot, keys="space space"):
    await until(pilot, on_screen(pilot, "2 sessions"))
    await pilot.press(*keys.split())


async def compared(pilot):
    await until(pilot, lambda: isinstance(pilot.app.screen, SessionsCompared))
    await until(pilot, lambda: pilot.app.screen.query_one(ChangeRows).count())
    return pilot.app.screen.query_one(ChangeRows)


def test_two_marked_sessions_are_compared_as_diff_does_and_a_change_leads_to_its_frames(tmp_path):
    old, new = two(tmp_path)
    report = json.loads(CHANGE_FORMATS["json"](examine(script_of(old), script_of(new), Rules())))
    told = [it for it in report["exchanges"] if it["outcome"] != "same"]

    async def scenario(pilot):
        await marked(pilot, "d space d")
        assert on_screen(pilot, "d compares two sessions: mark two")()
        await pilot.press("space", "d")
        rows = await compared(pilot)
        text = "\n".join(lines(pilot.app))
        assert "answers: 1 same, 1 changed, 1 extra" in text
        assert [it.text for it in rows.entries] == [f"{it['method']} {it['name']}: {it['outcome']}" for it in told]
        assert "~      #6      #8  tools/call a: changed" in text
        assert '/result/content/0/text: "18"' in text

        await pilot.press("less_than_sign")
        assert (await opened(pilot)).selected == 6
        assert timeline(pilot).session.path == str(old)
        await pilot.press("escape")
        await compared(pilot)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(pilot.app.screen, MessagesCompared))
        await until(pilot, lambda: pilot.app.screen.query_one(ComparedRows).count())
        assert "B #8 tools/call a: changed" in "\n".join(lines(pilot.app))
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: pilot.app.screen.query("TimelineRows") and timeline(pilot).selected == 8)
        assert timeline(pilot).session.path == str(new)
        await pilot.press("escape", "n")
        assert rows.cursor == 1
        await pilot.press("less_than_sign")
        await until(pilot, on_screen(pilot, "it is not in A"))
        await pilot.press("N", "escape")
        await until(pilot, lambda: pilot.app.screen.query("SessionRows"))

        await pilot.press("m")  # a merge of two sessions compares them too
        await opened(pilot)
        await pilot.press("d")
        assert (await compared(pilot)).count() == 2
        await pilot.press("escape", "escape")
        await until(pilot, lambda: pilot.app.screen.query("SessionRows"))
        os.unlink(old)
        await pilot.app.screen.run_action("compare")
        await until(pilot, on_screen(pilot, "cannot read"))

    play(scenario, old, new)


def test_a_session_does_not_differ_from_itself(tmp_path):
    async def scenario(pilot):
        await marked(pilot)
        await pilot.press("d")
        await until(pilot, on_screen(pilot, "nothing differs"))
        await pilot.press("enter", "n", "less_than_sign", "q")
        await until(pilot, lambda: pilot.app.screen.query("SessionRows"))

    play(scenario, capture(tmp_path / "a.jsonl", OLD), capture(tmp_path / "b.jsonl", OLD))


@pytest.mark.parametrize("width", [80, 100])
def test_a_long_name_leaves_room_for_the_time(tmp_path, width):
    old, new = (
        capture(tmp_path / "a.jsonl", OLD, name="x" * 300),
        capture(tmp_path / "b.jsonl", NEW, wall=WALL + 10**12),
    )

    async def scenario(pilot):
        await marked(pilot, "space space d")
        await compared(pilot)
        title, names, *_ = lines(pilot.app)
        assert re.fullmatch(r" A x+… · \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  (B .*)?", f"{names}  ")
        assert title.rstrip().endswith("…" if width == 80 else "1 extra")  # never cut at a word, as if complete

    play(scenario, old, new, size=(width, 24))


def test_more_than_two_sessions_are_too_many(tmp_path):
    old, new = two(tmp_path)

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "3 sessions"))
        await pilot.press("space", "space", "space", "d")
        await until(pilot, on_screen(pilot, "d compares two sessions, not 3"))

    play(scenario, old, new, capture(tmp_path / "c.jsonl", OLD, wall=WALL + 2 * 10**12))
