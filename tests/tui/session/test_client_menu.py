"""The menu of clients: a key in every view, also of merged sessions (P-01)."""

import pytest
from textual.widgets import OptionList

from mcpspy.spec.client_limits import CLIENTS
from mcpspy.tui.views.findings import FindingsRows
from mcpspy.tui.widgets.dialogs import ClientMenu, clients_text
from tests.browse.test_refusals import BEGIN, listed
from tests.timelines import CAPTURES
from tests.transcript import capture
from tests.tui.screen import lines, on_screen, opened, play, timeline, until

PLACE = {name: place for place, name in enumerate(("none", "all", *CLIENTS))}


@pytest.fixture
def refused(tmp_path):
    return capture(tmp_path / "a.jsonl", BEGIN + listed(1, "a.b", "fine"))


async def choose(pilot, name):
    """Open the menu and choose a line of it."""
    await pilot.press("c")
    await until(pilot, lambda: isinstance(pilot.app.screen, ClientMenu), "the menu")
    await pilot.press("home", *["down"] * PLACE[name], "enter")
    await until(pilot, lambda: not isinstance(pilot.app.screen, ClientMenu), "the end of the menu")


def test_the_menu_names_every_client_and_one_is_chosen_and_taken_back(refused):
    async def scenario(pilot):
        session = (await opened(pilot)).session
        before = dict(session.found)
        await pilot.press("c")
        menu = "\n".join(lines(pilot.app))
        for name, people in CLIENTS.items():
            assert f"{name} " in menu
            assert people in menu
        await pilot.press("escape")
        await choose(pilot, "openai-api")
        assert session.clients == {"openai-api"}
        await until(pilot, lambda: session.found["error"] == before["error"] + 1)
        await until(pilot, on_screen(pilot, "found: ✗ 1"))
        await pilot.press("2")
        await until(pilot, on_screen(pilot, "compat/tool-name"))
        await choose(pilot, "none")
        await until(pilot, lambda: "compat/tool-name" not in "\n".join(lines(pilot.app)))
        assert (session.clients, session.found) == (frozenset(), before)

        await pilot.press("1")
        await choose(pilot, "all")
        await pilot.press("c")
        assert pilot.app.screen.query_one(OptionList).highlighted == PLACE["all"], "the present choice"
        await pilot.press("down", "escape")
        await until(pilot, lambda: timeline(pilot).has_focus)
        assert session.clients == set(CLIENTS)

    play(scenario, refused, size=(80, 24))


def test_sessions_shown_as_one_are_looked_at_together_and_each_by_itself(refused):
    """P-01: a view of one session uses the choice that was made for all of them."""

    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "2 sessions"))
        await pilot.press("space", "space", "m")
        merged = (await opened(pilot)).session
        await choose(pilot, "openai-api")
        assert all(session.clients == {"openai-api"} for session in merged.sessions)
        await until(pilot, lambda: merged.found["error"] > 1)
        await pilot.press("3")
        await until(pilot, on_screen(pilot, "limits of openai-api: "))
        await until(pilot, on_screen(pilot, "✗ a.b"))
        await pilot.press("2")
        await until(pilot, lambda: pilot.app.screen.query(FindingsRows) and pilot.app.screen.session is not merged)
        assert pilot.app.screen.session.clients == {"openai-api"}

    play(scenario, refused, CAPTURES / "features-node-2025-11-25.jsonl")


def test_clients_are_named_in_a_few_words():
    assert clients_text(frozenset(["cursor", "codex"])) == "codex, cursor"
    assert clients_text(frozenset(CLIENTS)) == "all clients"
