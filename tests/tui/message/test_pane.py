"""One document on the screen. The cursor folds and unfolds, and rows are made when they become visible."""

from textual.app import App

from mcpspy.tui.message.detail import Pane
from mcpspy.tui.message.document import Document, Folds, SummaryLine, Text, Tree
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
    return Document(list(entries), Tree(text), width=width, folds=folds or Folds(), sections={})


def pane(shown_, scenario, size=(80, 20)):
    """Show a document and run a scenario with it."""

    async def main(pilot):
        found = pilot.app.query_one(Pane)
        await until(pilot, lambda: found.size.width)
        if shown_ is not None:
            found.show(shown_, again=False)
        await scenario(pilot, found)

    play(main, app=Shell(), size=size)


async def press(pilot, found, keys, cursor):
    await pilot.press(*keys.split())
    await until(pilot, lambda: found.cursor == cursor, f"row {cursor} after {keys}")


def numbers(count):
    return document(str(list(range(count))))


def test_keys_move_the_cursor_which_stays_in_sight_also_in_another_message():
    async def scenario(pilot, found):
        await press(pilot, found, "j j down", 3)
        await press(pilot, found, "k up", 1)
        await press(pilot, found, "pagedown", 20)
        await press(pilot, found, "g j space", 20)  # Space on what does not fold goes on by a screen
        await press(pilot, found, "G", 201)
        await until(pilot, lambda: shown(found)[-1] == "]")
        await press(pilot, found, "j", 201)
        await press(pilot, found, "pageup", 182)
        await press(pilot, found, "g k", 0)
        await until(pilot, lambda: shown(found)[0] == "[")

        await press(pilot, found, "G", 201)
        await until(pilot, lambda: found.scroll_offset.y == found.max_scroll_y)
        before = shown(found)
        found.show(document(str(list(range(200))), ENTRIES), again=True)  # lines come above the same message
        await until(pilot, lambda: found.cursor == 204)
        await until(pilot, lambda: shown(found) == before)
        found.show(numbers(300), again=False)
        await until(pilot, lambda: found.cursor == 0 == found.scroll_offset.y)

        found.show(numbers(5000), again=False)  # the first rows of a large message come before the rest
        assert 0 < found.count() < 5000
        await until(pilot, lambda: found.count() == 5002)
        await press(pilot, found, "G", 5001)
        await until(pilot, lambda: shown(found)[-1] == "]")
        found.show(numbers(20_000), again=False)
        found.show(document("{}"), again=False)  # the large one is not completed
        await until(pilot, lambda: shown(found)[0] == "{}")
        await until(pilot, lambda: not [it for it in pilot.app.workers if it.is_running])
        assert found.count() == 1

    pane(numbers(200), scenario)


def test_keys_and_clicks_fold_and_unfold():
    async def scenario(pilot, found):
        for fold, unfold in (("enter", "enter"), ("space", "space"), ("left", "right"), ("h", "l")):
            await press(pilot, found, f"g j {fold}", 1)
            await until(pilot, lambda: shown(found)[1] == '▸ "a": […] 2 elements')
            await press(pilot, found, unfold, 1)
            await until(pilot, lambda: shown(found)[1] == '▾ "a": [')
        await press(pilot, found, "g", 0)
        await pilot.click(Pane, offset=(3, 1))
        await until(pilot, lambda: found.cursor == 1)
        assert shown(found)[1] == '▾ "a": ['
        await pilot.click(Pane, offset=(3, 1))
        await until(pilot, lambda: shown(found)[1] == '▸ "a": […] 2 elements')

        found.show(document(NESTED), again=False)  # Left goes out, Right goes in
        await press(pilot, found, "j j j right", 4)
        await press(pilot, found, "left", 3)
        await press(pilot, found, "left", 3)
        await press(pilot, found, "left", 1)
        await press(pilot, found, "left left left", 0)
        await until(pilot, lambda: shown(found)[1] == "")
        await press(pilot, found, "right right", 1)
        assert shown(found)[1] == '▸ "a": […] 2 elements'

        found.show(document('{"result":{"content":[{"text":"x"}]}}'), again=False)  # all, around the cursor
        await press(pilot, found, "j j j j", 4)
        await press(pilot, found, "minus", 2)
        await until(pilot, lambda: shown(found)[:4] == ["{", '▾ "result": {', '  ▸ "content": […] 1 element', "  }"])
        await press(pilot, found, "plus", 2)
        await until(pilot, lambda: shown(found)[4] == '        "text": "x"')
        await press(pilot, found, "z", 2)
        await until(pilot, lambda: shown(found)[2] == '  ▸ "content": […] 1 element')
        await press(pilot, found, "z", 2)
        await until(pilot, lambda: shown(found)[4] == '        "text": "x"')

    pane(document(NESTED), scenario)


def test_a_fold_while_rows_are_being_made_loses_none():
    large = document('{"a":[1,2],"b":' + str(list(range(20_000))) + "}")

    async def scenario(pilot, found):
        await press(pilot, found, "j enter", 1)
        await until(pilot, lambda: found.count() == 20_005)
        assert texts(large)[1:4] == ['▸ "a": […] 2 elements', '▾ "b": [', "    0,"]
        assert texts(large)[-1] == "}"

    pane(large, scenario)


def test_a_row_is_as_wide_as_the_pane_whatever_stands_in_it():
    text = Document([], Text("日本" * 50 + "\nx\n\n"), width=37, folds=Folds(), sections={})

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

    pane(None, scenario)
