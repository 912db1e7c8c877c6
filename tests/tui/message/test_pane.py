"""One document on the screen. The cursor folds and unfolds, and rows are made when they become visible."""

import pytest
from textual.app import App

from mcpspy.tui.message.document import Document, SummaryLine, Text
from mcpspy.tui.message.pane import Pane
from mcpspy.tui.message.tree import Folds, Tree
from tests.tui.screen import STYLES, play, shown, texts, until

NESTED = '{"a":[1,{"b":null}],"c":"x"}'
ENTRIES = [
    SummaryLine([("#1 ping", "label")]),
    SummaryLine([("faults", "key")], "faults"),
    SummaryLine([("one", "plain")], inside=True),
]


class Shell(App):
    """An application with only the pane."""

    CSS_PATH = STYLES

    def compose(self):
        yield Pane()

    def on_mount(self):
        self.query_one(Pane).focus()


def document(text, entries=(), width=70, folds=None):
    return Document(list(entries), Tree(text), size=len(text), width=width, folds=folds or Folds(), sections={})


def pane(shown_, scenario, size=(80, 20)):
    """Show a document and run a scenario with it."""

    async def main(pilot):
        found = pilot.app.query_one(Pane)
        await until(pilot, lambda: found.size.width)
        found.show(shown_, again=False)
        await scenario(pilot, found)

    play(main, app=Shell(), size=size)


async def press(pilot, found, keys, cursor):
    await pilot.press(*keys.split())
    await until(pilot, lambda: found.cursor == cursor, f"row {cursor} after {keys}")


def numbers(count):
    return document(str(list(range(count))))


def test_keys_move_the_cursor_and_it_stays_in_sight():
    async def scenario(pilot, found):
        await press(pilot, found, "j j down", 3)
        await press(pilot, found, "k up", 1)
        await press(pilot, found, "pagedown", 20)
        await press(pilot, found, "G", 201)
        await until(pilot, lambda: shown(found)[-1] == "]")
        await press(pilot, found, "j", 201)
        await press(pilot, found, "pageup", 182)
        await press(pilot, found, "g k", 0)
        await until(pilot, lambda: shown(found)[0] == "[")

    pane(numbers(200), scenario)


@pytest.mark.parametrize("key", ["enter", "space", "left", "h"])
def test_a_key_folds_and_another_unfolds(key):
    async def scenario(pilot, found):
        await press(pilot, found, f"j {key}", 1)
        await until(pilot, lambda: shown(found)[1] == '▸ "a": […] 2 elements')
        await press(pilot, found, key if key in ("enter", "space") else {"left": "right", "h": "l"}[key], 1)
        await until(pilot, lambda: shown(found)[1] == '▾ "a": [')

    pane(document(NESTED), scenario)


def test_left_goes_out_and_right_goes_in():
    async def scenario(pilot, found):
        await press(pilot, found, "j j j right", 4)
        await press(pilot, found, "left", 3)
        await press(pilot, found, "left", 3)
        await press(pilot, found, "left", 1)
        await press(pilot, found, "left left left", 0)
        await until(pilot, lambda: shown(found)[1] == "")
        await press(pilot, found, "right right", 1)
        assert shown(found)[1] == '▸ "a": […] 2 elements'

    pane(document(NESTED), scenario)


def test_space_on_what_does_not_fold_goes_on_by_a_screen():
    async def scenario(pilot, found):
        await press(pilot, found, "j space", 20)

    pane(numbers(200), scenario)


def test_all_is_folded_and_unfolded_around_the_cursor():
    deep = document('{"result":{"content":[{"text":"x"}]}}')

    async def scenario(pilot, found):
        await press(pilot, found, "j j j j", 4)
        await press(pilot, found, "minus", 2)
        await until(pilot, lambda: shown(found)[:4] == ["{", '▾ "result": {', '  ▸ "content": […] 1 element', "  }"])
        await press(pilot, found, "plus", 2)
        await until(pilot, lambda: shown(found)[4] == '        "text": "x"')
        await press(pilot, found, "z", 2)
        await until(pilot, lambda: shown(found)[2] == '  ▸ "content": […] 1 element')
        await press(pilot, found, "z", 2)
        await until(pilot, lambda: shown(found)[4] == '        "text": "x"')

    pane(deep, scenario)


def test_a_click_selects_a_row_and_a_second_one_folds_it():
    async def scenario(pilot, found):
        await pilot.click(Pane, offset=(3, 1))
        await until(pilot, lambda: found.cursor == 1)
        assert shown(found)[1] == '▾ "a": ['
        await pilot.click(Pane, offset=(3, 1))
        await until(pilot, lambda: shown(found)[1] == '▸ "a": […] 2 elements')

    pane(document(NESTED), scenario)


def test_the_same_message_stays_where_it_was_read_when_lines_come_above_it():
    async def scenario(pilot, found):
        await press(pilot, found, "G", 201)
        await until(pilot, lambda: found.scroll_offset.y == found.max_scroll_y)
        before = shown(found)
        again = document(str(list(range(200))), ENTRIES)
        found.show(again, again=True)
        await until(pilot, lambda: found.cursor == 204)
        await until(pilot, lambda: shown(found) == before)

    pane(numbers(200), scenario)


def test_another_message_begins_at_its_top():
    async def scenario(pilot, found):
        await press(pilot, found, "G", 201)
        found.show(numbers(300), again=False)
        await until(pilot, lambda: found.cursor == 0 == found.scroll_offset.y)

    pane(numbers(200), scenario)


def test_the_first_rows_of_a_large_message_come_before_the_rest():
    async def scenario(pilot, found):
        assert 0 < found.count() < 5000
        await until(pilot, lambda: found.count() == 5002)
        await press(pilot, found, "G", 5001)
        await until(pilot, lambda: shown(found)[-1] == "]")

    pane(numbers(5000), scenario)


def test_another_message_takes_the_place_of_one_that_is_still_being_made():
    async def scenario(pilot, found):
        small = document("{}")
        found.show(small, again=False)
        await until(pilot, lambda: shown(found)[0] == "{}")
        await until(pilot, lambda: not [it for it in pilot.app.workers if it.is_running])
        assert found.count() == 1

    pane(numbers(20_000), scenario)


def test_a_fold_while_rows_are_being_made_loses_none():
    large = document('{"a":[1,2],"b":' + str(list(range(20_000))) + "}")

    async def scenario(pilot, found):
        await press(pilot, found, "j enter", 1)
        await until(pilot, lambda: found.count() == 20_005)
        assert texts(large)[1:4] == ['▸ "a": […] 2 elements', '▾ "b": [', "    0,"]
        assert texts(large)[-1] == "}"

    pane(large, scenario)


def test_a_row_is_as_wide_as_the_pane_whatever_stands_in_it():
    text = Document([], Text("日本" * 50 + "\nx\n\n"), size=9, width=37, folds=Folds(), sections={})

    async def scenario(pilot, found):
        width = found.scrollable_content_region.width
        assert width == 37
        assert [found.render_line(y).cell_length for y in range(20)] == [width] * 20

    pane(text, scenario, size=(40, 20))


def test_keys_in_an_empty_pane_do_nothing():
    async def scenario(pilot, found):
        await pilot.press(*"jkgGhlz", "enter", "space", "left", "right", "minus", "plus", "pagedown")
        await pilot.click(Pane, offset=(1, 1))
        assert (found.cursor, found.count()) == (0, 0)

    pane(Document([], Text(""), size=0, width=10, folds=Folds(), sections={}), lambda *_: _nothing())

    async def empty(pilot):
        await scenario(pilot, pilot.app.query_one(Pane))

    play(empty, app=Shell())


async def _nothing():
    pass
