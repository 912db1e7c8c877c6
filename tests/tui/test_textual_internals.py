"""The installed version of textual has the private names that mcpspy uses."""

import asyncio

from textual.app import App
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Key
from textual.filter import NoColor
from textual.geometry import Size
from textual.scroll_view import ScrollView

from mcpspy.tui.textual_internals import (
    end_application,
    filter_first,
    filter_lines,
    key_parser,
    update_scrollbars,
    write_to,
)


class Silent(Driver):
    def write(self, data): ...
    def start_application_mode(self): ...
    def disable_input(self): ...
    def stop_application_mode(self): ...


def in_loop(test):
    """Run a test inside an event loop, which a driver needs."""

    async def run():
        test()

    return lambda: asyncio.run(run())


@in_loop
def test_keys_are_made_of_what_a_terminal_sends():
    parser = key_parser(Silent(App()))
    assert [event.key for event in parser.feed("aß") if isinstance(event, Key)] == ["a", "ß"]


def test_an_application_has_the_filters_that_it_is_given():
    app = App()
    found = NoColor()
    filter_lines(app, found)
    first = NoColor()
    filter_first(app, first)
    assert app.get_line_filters() == [first, found]


@in_loop
def test_the_application_of_a_driver_is_told_to_end():
    app, posted = App(), []
    app.post_message = posted.append
    end_application(Silent(app))
    assert [type(message).__name__ for message in posted] == ["ExitApp"]


@in_loop
def test_a_driver_writes_to_what_it_is_given():
    class Output:
        text = ""

        def write(self, text):
            self.text += text

        def flush(self): ...

    driver, output = LinuxDriver(App()), Output()
    write_to(driver, output)
    driver._writer_thread = driver._file  # without a thread
    driver.write("hello")
    assert output.text == "hello"


def test_a_view_scrolls_by_its_new_size():
    class Shown(App):
        def compose(self):
            yield ScrollView()

    async def run():
        app = Shown()
        async with app.run_test(size=(40, 10)):
            view = app.query_one(ScrollView)
            view.set_reactive(ScrollView.virtual_size, Size(39, 100))
            update_scrollbars(view, Size(39, 100))
            return view.vertical_scrollbar.window_virtual_size

    assert asyncio.run(run()) == 100
