"""The selected message: what is known of it, and all of its text, made as it is needed."""

import pytest
from textual.app import App

from mcpspy.record import Header
from mcpspy.timeline import final_rows
from mcpspy.tui.detail import Detail
from tests.test_timeline import frames
from tests.transcript import records
from tests.tui.screen import STYLES, play, shown, until

HEADER = Header("9f2c", "2026-11-20T19:15:00.123456Z", "mcpspy 0.1.0", "stdio", "weather")


class Shell(App):
    """Nothing but the pane."""

    CSS_PATH = STYLES

    def compose(self):
        yield Detail()

    def on_mount(self):
        self.query_one(Detail).focus()


def pane(found, scenario, *, raw=False, size=(80, 20)):
    """Show rows in the pane and play a scenario with it."""

    async def main(pilot):
        detail = pilot.app.query_one(Detail)
        detail.raw = raw
        detail.show(found, HEADER)
        await until(pilot, lambda: detail._lines)
        await scenario(pilot, detail)

    play(main, app=Shell(), size=size)


def text(found, *, raw=False, size=(80, 20), last=""):
    """The lines of the pane, once the last of them holds `last`."""
    lines = []

    async def scenario(pilot, detail):
        await until(pilot, lambda: last in detail._lines[-1].text)
        lines.extend(strip.text.rstrip() for strip in detail._lines)

    pane(found, scenario, raw=raw, size=size)
    return lines


def final(transcript):
    """The rows of a session that needs no handshake here."""
    found = list(final_rows(lambda: records(transcript), live=False))
    for row in found:
        row.findings = tuple(it for it in row.findings if it.rule != "lifecycle/before-initialize")
    return found


def numbers(count):
    """A message of about as many lines."""
    return final(f'> {{"method":"n","params":{list(range(count))}}}')


EXCHANGE = """
    @1.00 > {"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","arguments":{"n":1.10}}}
    @1.25 < {"jsonrpc":"2.0","id":"x","result":{"isError":true}}
"""


def test_a_request_says_what_it_is_and_what_answered_it():
    assert text(final(EXCHANGE)[:1]) == [
        "#1 tools/call a",
        'request · client → server · id "x" · 93 B',
        "1.000000 s · 2026-11-20T19:15:01.123456Z",
        "tool-error · answered by #2 · 250.0 ms",
        "",
        "{",
        '  "jsonrpc": "2.0",',
        '  "id": "x",',
        '  "method": "tools/call",',
        '  "params": {',
        '    "name": "a",',
        '    "arguments": {',
        '      "n": 1.10',
        "    }",
        "  }",
        "}",
    ]


def test_a_response_says_what_it_answers():
    lines = text(final(EXCHANGE)[1:])
    assert lines[0] == "#2 tools/call a"
    assert lines[3] == "tool-error · answers #1 · 250.0 ms"


def test_raw_it_is_the_frame_as_it_came():
    found = final(EXCHANGE)[:1]
    assert text(found, raw=True, size=(200, 20))[5:] == [found[0].raw.decode()]


@pytest.mark.parametrize(
    ("raw", "as_json", "as_raw"),
    [
        (b'{"method":"n\xff"}\r', ["{", '  "method": "n\ufffd"', "}"], ['{"method":"n\\xff"}\\r']),
        (b"not JSON \xff", ["not JSON \ufffd"], ["not JSON \\xff"]),
        (b'{"a":1}', ["{", '  "a": 1', "}"], ['{"a":1}']),
        (b'{"method":\n"n"}', ["{", '  "method": "n"', "}"], ['{"method":', '"n"}']),
    ],
)
def test_a_frame_is_shown_as_json_and_as_it_came(raw, as_json, as_raw):
    found = list(final_rows(lambda: frames(raw), live=False))
    assert text(found)[text(found).index("") + 1 :] == as_json
    assert text(found, raw=True)[text(found, raw=True).index("") + 1 :] == as_raw


def test_what_is_no_message_says_why():
    lines = text(final("< {}"))
    assert lines[:2] == ["#1 invalid", "invalid · server → client · 2 B"]
    assert lines[3] == "neither method nor result nor error"


def test_what_a_strict_parser_refuses_says_why():
    assert "a byte order mark" in text(final('< \ufeff{"method":"n"}'))


@pytest.mark.parametrize("transcript", ["! {}", "! caf\u00e9"])
def test_a_line_of_stderr_is_text(transcript):
    assert text(final(transcript))[-1] == transcript[2:]


def test_a_gap_says_what_is_lost():
    assert text(final("~ 3"))[-1] == "3 lost: no space left on device"


def test_a_batch_shows_each_message_and_the_frame_once():
    found = final('> [{"id":1,"method":"a"},{"id":2,"method":"b"}]')
    for row in found:
        row.status = None
    lines = text(found)
    assert [line for line in lines if line.startswith("#")] == ["#1 a", "#1 part 2 b"]
    assert lines.count("[") == 1
    assert lines[-1] == "]"


def test_a_frame_that_is_not_all_there_says_so():
    (row,) = final('> {"id":1,"method":"a"}')
    row.size = 3_000_000
    assert text([row])[-1] == "… the first 21 B of 3.0 MB"


def test_no_rows_show_nothing():
    async def scenario(pilot, detail):
        detail.show([], HEADER)
        await until(pilot, lambda: not detail._lines)
        assert set(shown(detail)) == {""}

    pane(final("> {}"), scenario)


def test_long_lines_are_wrapped_at_the_width_of_the_pane():
    (row,) = final('> {"method":"%s"}' % ("ab" * 100))
    lines = text([row], size=(41, 20))
    assert max(map(len, lines)) <= 41
    assert "".join(lines[4:]).count("ab") >= 90


def test_wide_characters_are_wrapped_by_their_width():
    (row,) = final('> {"method":"%s"}' % ("日本" * 50))

    async def scenario(pilot, detail):
        assert all(strip.cell_length <= detail.scrollable_content_region.width for strip in detail._lines)
        assert all(detail.render_line(y).cell_length == detail.scrollable_content_region.width for y in range(20))

    pane([row], scenario, size=(41, 20))


def test_a_resize_wraps_again():
    (row,) = final('> {"method":"%s"}' % ("ab" * 100))

    async def scenario(pilot, detail):
        before = len(detail._lines)
        await pilot.resize_terminal(20, 10)
        await until(pilot, lambda: len(detail._lines) > before)
        await pilot.resize_terminal(80, 20)
        await until(pilot, lambda: len(detail._lines) == before)

    pane([row], scenario)


def test_the_first_lines_of_a_large_message_come_before_the_rest():
    (row,) = numbers(5_000)

    async def scenario(pilot, detail):
        assert 0 < len(detail._lines) < 5_000
        await until(pilot, lambda: len(detail._lines) > 5_000)
        await pilot.press("G")
        await until(pilot, lambda: shown(detail)[-1] == "}")
        await pilot.press("g")
        await until(pilot, lambda: shown(detail)[0].startswith("#1 "))

    pane([row], scenario)


def test_of_too_many_lines_the_first_are_shown(monkeypatch):
    monkeypatch.setattr("mcpspy.tui.detail._MOST", 300)
    (row,) = numbers(1000)
    lines = text([row], last="…")
    assert len(lines) == 301
    assert lines[-1] == "… the first 300 lines"


def test_another_message_takes_the_place_of_one_that_is_still_being_made():
    (large,) = numbers(10_000)
    (small,) = final("> {}")

    async def scenario(pilot, detail):
        detail.show([small], HEADER)
        await until(pilot, lambda: detail._lines and "invalid" in detail._lines[0].text)
        lines = len(detail._lines)
        await pilot.pause(0.05)
        assert len(detail._lines) == lines

    pane([large], scenario)


def test_keys_scroll_and_another_message_begins_at_its_top():
    (row,) = numbers(100)

    async def scenario(pilot, detail):
        for pressed, top in (("j", 1), ("k", 0), ("pagedown", 19), ("pageup", 0)):
            await pilot.press(pressed)
            await until(pilot, lambda top=top: detail.scroll_offset.y == top, pressed)
        await pilot.press("G")
        await until(pilot, lambda: detail.scroll_offset.y > 50)
        detail.show(final("> {}\n> {}")[1:], HEADER)
        await until(pilot, lambda: detail.scroll_offset.y == 0)

    pane([row], scenario)


def test_the_same_message_stays_where_it_was_read():
    """Its answer has come, and only the lines above it change."""
    (row,) = numbers(100)

    async def scenario(pilot, detail):
        await pilot.press("G")
        await until(pilot, lambda: detail.scroll_offset.y == detail.max_scroll_y > 0)
        before = detail.scroll_offset.y
        detail.show([row], HEADER)
        await pilot.pause(0.05)
        assert detail.scroll_offset.y == before

    pane([row], scenario)
