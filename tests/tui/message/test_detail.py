"""The selected message and its partner: in three forms, beside each other, copied and saved."""

import base64
import json
from contextlib import nullcontext
from unittest.mock import patch

import pytest
from textual.app import App
from textual.containers import Container
from textual.widgets import Static

from mcpspy.capture.records import Header
from mcpspy.timeline import final_rows
from mcpspy.tui.message.detail import Detail
from mcpspy.tui.message.facts import Around, around
from mcpspy.tui.widgets.dialogs import CopyMenu, SavePrompt
from tests import NIGHTLY
from tests.test_text import unsafe
from tests.test_timeline import frames
from tests.timelines import CAPTURES
from tests.transcript import begin, capture, finish
from tests.tui.message.test_facts import final
from tests.tui.screen import STYLES, lines, on_screen, play, resize, shown, texts, until
from tests.tui.widgets.test_programs import program

HEADER = Header("9f2c", "2026-11-20T19:15:00.123456Z", "mcpspy 0.1.0", "stdio", "weather", ("uv", "run", "s.py"))


class Shell(App):
    """An application with only the detail."""

    CSS_PATH = STYLES

    def compose(self):
        with Container(id="panes"):
            yield Detail()

    def on_mount(self):
        self.query_one(Detail).focus()


def detail(found, scenario, *, size=(80, 24), around_it=None):
    """Show rows in the detail and run a scenario with it."""

    async def main(pilot):
        widget = pilot.app.query_one(Detail)
        await until(pilot, lambda: widget.panes[0].size.width)
        if found is not None:
            widget.show(found, HEADER, around_it or Around())
            await until(pilot, lambda: widget.panes[0].document)
        await scenario(pilot, widget)

    play(main, app=Shell(), size=size)


def message(rows):
    """Return the rows of the message itself, which follow the facts about it."""
    return rows[rows.index("") + 1 :]


@pytest.fixture
def http(read):
    """A real session over HTTP."""
    return read(CAPTURES / "http-everything-2025-11-25.jsonl")


def show(widget, session, n):
    place = session.index.row_of(n)
    widget.show(session.messages(place), session.header, around(session, place))


# Forms.


FORMS = [
    (b'{"method":"n\xff"}\r', ["{", '  "method": "n\ufffd"', "}"], ['{"method":"n\\xff"}\\r'], "6e ff 22",
     ["  no params"]),
    (b'{"a":1}', ["{", '  "a": 1', "}"], ['{"a":1}'], '{"a":1}', ["  a: 1"]),
    (b'{"method":\n"n"}', ["{", '  "method": "n"', "}"], ['{"method":', '"n"}'], "3a 0a 22",
     ["  no params"]),
    (b"not JSON \xff", ["not JSON \ufffd"], ["not JSON \\xff"], "20 ff ",
     ["not JSON \ufffd"]),
]  # fmt: skip


def test_r_goes_from_the_tree_to_the_frame_as_it_came_to_its_bytes_to_its_content_and_back():
    async def scenario(pilot, widget):
        for raw, tree, as_raw, as_hex, content in FORMS:
            widget.show(list(final_rows(lambda raw=raw: frames(raw), live=False)), HEADER)
            await until(pilot, lambda: widget.panes[0].document)
            while message(texts(widget.panes[0].document)) != tree:
                await pilot.press("r")
            made = []
            for _ in range(4):
                made.append(message(texts(widget.panes[0].document)))
                await pilot.press("r")
            assert made[:2] == [tree, as_raw]
            assert as_hex in "\n".join(made[2])
            assert made[3] == content, "what is no whole JSON has no content, and the next form is not the same again"

    detail(None, scenario)


DEFAULTS = [
    ('> {"id":1,"method":"tools/call"}\n< {"id":1,"result":{"x":"y"}}', "  x: y"),
    ('> {"id":1,"method":"tools/call","params":{"x":"y"}}', "}"),
    ('> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}', "}"),
    ('> {"id":1,"method":"ping"}\n< {"id":1,"error":{"code":1,"message":"no"}}', "  message: no"),
    ('< {"method":"notifications/message","params":{"data":"東京"}}', "  data: 東京"),
    ('< {"id":1,"method":"sampling/createMessage","params":{"x":"y"}}', "  x: y"),
    ('< {"id":1,"method":"elicitation/create","params":{"x":"y"}}', "  x: y"),
    ('> {"id":1,"method":"tools/call"}\n< {"id":1,"result":[%s1]}' % ("1," * 200_000), "}"),
]


def test_messages_that_people_read_are_shown_as_content_until_a_form_is_chosen():
    async def scenario(pilot, widget):
        for transcript, last in DEFAULTS:
            widget.show(final(transcript)[-1:], HEADER)
            assert texts(widget.panes[0].document)[-1] == last, transcript[:99]
        widget.show(final(DEFAULTS[0][0])[-1:], HEADER)
        await pilot.press("r")
        widget.show(final(DEFAULTS[3][0])[-1:], HEADER)
        assert texts(widget.panes[0].document)[-1] == "}"
        await until(pilot, on_screen(pilot, " tree "))

    detail(None, scenario)


def test_what_is_no_single_message_is_told_as_text_and_no_rows_show_nothing():
    async def scenario(pilot, widget):
        def rows(found):
            widget.show(found, HEADER)
            return texts(widget.panes[0].document)

        for stderr in ("! {}", "! caf\u00e9"):
            assert rows(final(stderr))[-1] == stderr[2:]
        assert rows(final("~ 3"))[-1] == "3 lost: no space left on device"
        batch = rows(final('> [{"id":1,"method":"a"},{"id":2,"method":"b"}]'))
        assert [line for line in batch if line.startswith("#")] == ["#1 a", "#1 part 2 b"]
        assert (batch.count("["), batch[-1]) == (1, "]")
        (row,) = final('> {"id":1,"method":"a"}')
        row.size = 3_000_000
        assert "the first 21 B of 3.0 MB" in rows([row])
        widget.show([], HEADER)
        await until(pilot, lambda: set(shown(widget.panes[0])) == {""})
        await pilot.press(*"ryszbjk", "enter")
        assert len(pilot.app.screen_stack) == 1

    detail(final("> {}"), scenario)


def test_a_resize_wraps_again():
    (row,) = final('> {"method":"%s"}' % ("ab" * 100))

    async def scenario(pilot, widget):
        pane = widget.panes[0]
        before = texts(pane.document)
        await resize(pilot, 30, 10)
        await until(pilot, lambda: len(texts(pane.document)) > len(before))
        assert max(map(len, texts(pane.document))) <= 28
        await resize(pilot, 80, 24)
        await until(pilot, lambda: texts(pane.document) == before)

    detail([row], scenario)


# Folds and the cursor.


def test_what_is_folded_stays_so_in_the_next_message_of_the_method():
    calls = [f'> {{"id":{n},"method":"tools/call","params":{{"name":"a","arguments":{{"n":{n}}}}}}}' for n in (1, 2)]
    first, second, other = final(
        "\n".join([*calls, '> {"id":3,"method":"x","params":{"name":"a","arguments":{"n":3}}}'])
    )

    async def scenario(pilot, widget):
        pane = widget.panes[0]
        pane.move_to(next(row for row, line in enumerate(texts(pane.document)) if '"arguments"' in line))
        await pilot.press("enter")
        assert '  ▸ "arguments": {…} 1 member' in texts(pane.document)
        widget.show([second], HEADER)
        assert '  ▸ "arguments": {…} 1 member' in texts(pane.document)
        widget.show([other], HEADER)
        assert '  ▾ "arguments": {' in texts(pane.document)

    detail([first], scenario)


def test_the_border_says_which_value_the_cursor_is_on():
    async def scenario(pilot, widget):
        pane = widget.panes[0]
        pane.move_to(next(row for row, line in enumerate(texts(pane.document)) if '"[bold]n' in line))
        await until(pilot, on_screen(pilot, '/params/[bold]n"~1'))
        await pilot.press("r", "r", "G")
        await until(pilot, on_screen(pilot, "0x40"))

    detail(final(r'> {"id":1,"method":"x","params":{"[bold]":1,"[bold]n\"/":"0123456789012345"}}'), scenario)


# The pair.


def pair(widget):
    """Return the first words of each visible pane, and None for a hidden one."""
    return [shown(pane)[0].split(" · ")[0] if pane.display else None for pane in widget.panes]


def test_b_shows_the_request_and_its_response_whichever_is_selected(http):
    async def scenario(pilot, widget):
        first, second = widget.panes
        show(widget, http, 60)
        await until(pilot, lambda: pair(widget) == ["#60 tools/call get-sum", None])
        await pilot.press("b")
        await until(pilot, lambda: pair(widget) == ["#60 tools/call get-sum", "#64 tools/call get-sum"])
        assert pilot.app.focused is first
        show(widget, http, 64)
        await until(pilot, lambda: pair(widget) == ["#60 tools/call get-sum", "#64 tools/call get-sum"])
        await until(pilot, lambda: "tool-error" in shown(first)[0] + shown(second)[0])
        assert " · request · tool-error · " in shown(first)[0]  # also where there is little room
        assert '"method": "tools/call"' in shown(first)[2]
        assert " · result · tool-error · " in shown(second)[0]
        assert shown(second)[2].startswith("    MCP error -32602: Input validation error")
        show(widget, http, 10)
        await until(pilot, lambda: pair(widget) == ["#10 notifications/initialized", "no other message belongs to it"])
        await pilot.press("b")
        await until(pilot, lambda: pair(widget) == ["#10 notifications/initialized", None])

        show(widget, http, 64)
        pilot.app.set_focus(None)
        widget.action_pair()  # the second pane has the new pair, and the focus goes to the selected message
        await until(pilot, lambda: second.document)
        await until(pilot, lambda: pair(widget) == ["#60 tools/call get-sum", "#64 tools/call get-sum"])
        widget.focus()
        await until(pilot, lambda: pilot.app.focused is second)

    detail(None, scenario, size=(80, 14))


def test_the_pair_stands_beside_each_other_where_there_is_room_and_keys_go_where_the_focus_is(http):
    async def scenario(pilot, widget):
        show(widget, http, 60)
        await pilot.press("b")
        first, second = widget.panes
        for width, beside in ((80, False), (40, False), (160, True)):
            await resize(pilot, width, 30)
            await until(
                pilot, lambda: second.document and second.document.width == second.scrollable_content_region.width
            )
            assert (first.region.y == second.region.y) == beside
            assert (first.region.x == second.region.x) != beside
        await pilot.press("tab")
        await until(pilot, lambda: pilot.app.focused is second)
        await pilot.press("j", "j")
        await until(pilot, lambda: (first.cursor, second.cursor) == (0, 2))
        await pilot.press("s")
        await until(pilot, on_screen(pilot, "save #64"))
        await pilot.press("escape", "b")
        await until(pilot, lambda: pilot.app.focused is first)

    detail(None, scenario, size=(160, 30))


# Copying and saving.


async def copied(pilot, key):
    """Choose a line of the menu and return the clipboard."""
    await pilot.press("y")
    await until(pilot, lambda: isinstance(pilot.app.screen, CopyMenu))
    await pilot.press(key)
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
    return pilot.app.clipboard


def test_a_message_is_copied_as_json_as_a_value_as_curl_and_as_a_call(http):
    async def scenario(pilot, widget):
        show(widget, http, 60)
        pane = widget.panes[0]
        assert await copied(pilot, "escape") == "", "the menu is left"
        assert json.loads(await copied(pilot, "j"))["params"] == {"name": "get-sum", "arguments": {"a": "two"}}
        pane.move_to(next(row for row, line in enumerate(texts(pane.document)) if '"arguments"' in line))
        assert await copied(pilot, "v") == '{"a":"two"}'
        assert (await copied(pilot, "c")).startswith("curl ")
        assert "client.call_tool('get-sum', {'a': 'two'})" in await copied(pilot, "p")
        await until(pilot, on_screen(pilot, "copied"))

        show(widget, http, 64)
        assert '"isError":true' in await copied(pilot, "j")
        assert "get-sum" in await copied(pilot, "c"), "of a response the request is copied"
        assert "call_tool('get-sum'" in await copied(pilot, "p")

        widget.show(final('> {"id":1,"method":"[/]"}'), HEADER)
        before = await copied(pilot, "j")
        assert await copied(pilot, "p") == before, "what cannot be copied leaves the clipboard"
        await until(pilot, on_screen(pilot, "the SDK has no call for [/]"))

    detail(None, scenario)


CHOICES = [
    ('> {"id":1,"method":"ping"}', "jvp"), ('> {"method":"ping"}', "jv"), ('< {"id":1,"method":"ping"}', "jv"),
    ('> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}', "jvp"), ("! some words", "j"), ("> {", "j"),
]  # fmt: skip


def test_only_what_there_is_can_be_copied(read, tmp_path):
    async def scenario(pilot, widget):
        for number, (transcript, keys) in enumerate(CHOICES):
            session = read(capture(tmp_path / f"{number}.jsonl", transcript))
            show(widget, session, session.index.rows[-2])  # the last row is the end
            await until(pilot, lambda: widget.panes[0].document)
            pane = widget.panes[0]
            pane.move_to(pane.count() - 1)
            widget.focus()
            await pilot.press("y")
            await until(pilot, lambda: isinstance(pilot.app.screen, CopyMenu))
            _, *choices, _ = (str(line.content) for line in pilot.app.screen.query(Static))
            assert "".join(choice[0] for choice in choices) == keys, transcript
            assert on_screen(pilot, "as JSON")() == (transcript not in ("! some words", "> {"))
            await pilot.press("escape")
        show(widget, session, session.index.rows[-1])
        await pilot.press("y")
        await until(pilot, on_screen(pilot, "there is nothing to copy here"))
        assert len(pilot.app.screen_stack) == 1

    detail(None, scenario)


RATE = b"\x40\x1f\0\0"
WAVE = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + RATE * 2 + b"\1\0\x08\0data" + RATE + bytes(8000)
FILES = {"audio/wav": WAVE, "application/pdf": b"%PDF-1.7 " + b"x" * 99, "image/png": b"MZ" + b"x" * 99}
NO_SAMPLES = WAVE[:40] + bytes(4)


def blobs():
    """Return the result of a call with files; the type of the last one is wrong."""
    found = [{"uri": f"a:{n}", "mimeType": it, "blob": base64.b64encode(raw).decode()}
             for n, (it, raw) in enumerate((FILES | {"audio/wave": NO_SAMPLES}).items())]  # fmt: skip
    text = json.dumps(
        {"id": 1, "result": {"contents": [*found, {"uri": "a:t", "text": 'two\r\nlines of "text"\x1b\ud800'}]}}
    )
    return final('> {"id":1,"method":"resources/read"}\n< ' + text)[-1:]


def test_text_is_copied_as_text_and_files_are_saved_decoded_and_opened_by_their_bytes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    opened = []
    monkeypatch.setattr("mcpspy.tui.message.detail.view", lambda *what: opened.append(what))

    async def scenario(pilot, widget):
        pane = widget.panes[0]

        def go_to(text):
            pane.move_to(next(row for row, line in enumerate(texts(pane.document)) if text in line))

        go_to("lines of")
        assert await copied(pilot, "t") == 'two\nlines of "text"\\u001b\\ud800', (
            "nothing that a terminal acts on in a paste"
        )
        assert await copied(pilot, "v") == r'"two\r\nlines of \"text\"\u001b\ud800"'
        assert await copied(pilot, "a") == "/result/contents/4/text"
        await until(pilot, on_screen(pilot, "sent to the terminal"))
        for text, extension in (("WAV 1.00 s", "wav"), ("PDF 1.7", "pdf"), ("bytes, 101", "bin")):
            go_to(text)
            await saved(pilot, "")
            assert (tmp_path / f"frame-2.{extension}").read_bytes() in FILES.values()
            await pilot.press("enter")
        go_to("WAV 0 µs, 44 B  s saves it")
        await pilot.press("enter")
        await until(pilot, notified(pilot, "an empty WAV is not opened, only saved"))
        assert opened == [(WAVE, ".wav", ["xdg-open"])], "the others may contain code"
        await until(pilot, notified(pilot, "opened WAV 1.00 s, 8.0 kB in the system's viewer"))
        await until(pilot, notified(pilot, "a file of unknown form is not opened, only saved"))
        go_to("a:t:")
        await pilot.press("enter")
        await until(pilot, lambda: "▸ a:t:" in "\n".join(texts(pane.document)))
        await pilot.press("g")
        await saved(pilot, "")
        assert json.loads((tmp_path / "frame-2.json").read_bytes())["result"]
        with patch.object(App, "is_web", True):
            go_to("WAV")
            await pilot.press("enter")
            await until(pilot, notified(pilot, "needs a desktop, not a browser"))
        assert len(opened) == 1

    detail(blobs(), scenario, size=(120, 40))


async def saved(pilot, name):
    await pilot.press("s")
    await until(pilot, lambda: isinstance(pilot.app.screen, SavePrompt))
    await pilot.press(*name, "enter")
    await until(pilot, lambda: len(pilot.app.screen_stack) == 1)


def test_a_frame_is_saved_byte_for_byte(http, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def scenario(pilot, widget):
        show(widget, http, 64)
        await saved(pilot, "")
        assert (tmp_path / "frame-64.json").read_bytes() == http.index.record(64).raw
        await pilot.press("s")
        await until(pilot, lambda: isinstance(pilot.app.screen, SavePrompt))
        await pilot.press("enter")
        await until(pilot, on_screen(pilot, "the file exists, frame-64-2.json is free"))
        await pilot.press("escape")
        await until(pilot, lambda: len(pilot.app.screen_stack) == 1)
        show(widget, http, 14)
        await pilot.press("s")
        await until(pilot, on_screen(pilot, "no frame is selected"))
        assert len(pilot.app.screen_stack) == 1

    detail(None, scenario)


def test_all_of_a_large_frame_is_saved(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    raw = json.dumps({"id": 1, "method": "x", "params": {"x": "y" * 3_000_000}}, separators=(",", ":")).encode()
    writer = begin(tmp_path / "a.jsonl")
    writer.open(1, 0, "client", "stdin", "lines")
    for at in range(0, len(raw), 65536):
        writer.frame(1, 0, raw[at : at + 65536], more=at + 65536 < len(raw), cut=False)
    finish(writer)
    session = read(tmp_path / "a.jsonl")

    async def scenario(pilot, widget):
        show(widget, session, session.index.rows[0])
        assert any(line.startswith("the first 1.") for line in texts(widget.panes[0].document, 50))
        await saved(pilot, "x")
        (file,) = tmp_path.glob("frame-*x")
        assert file.read_bytes() == raw

    detail(None, scenario)


# Real sessions, and other programs.


def test_every_row_of_the_golden_captures_is_shown_with_its_partner_in_every_form(read):
    async def scenario(pilot, widget):
        await pilot.press("b")
        for path in sorted(CAPTURES.glob("*.jsonl")):
            session = read(path)
            for place in range(0, len(session), 1 if NIGHTLY else 11):
                widget.show(session.messages(place), session.header, around(session, place))
                widget.action_form()
                for pane in widget.panes:
                    assert not unsafe("".join(texts(pane.document, 500))) if pane.document else place == 0
            await pilot.pause()

    detail(None, scenario, size=(120, 30))


def notified(pilot, text):
    """Return a condition: a notification shows the text, on any number of lines."""
    return lambda: text in " ".join(line.rpartition("▌")[2].strip() for line in lines(pilot.app) if "▌" in line)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Open a message in a program with a key, wait for the notification `says`, and return the text the program got."""

    def open_(key, variable, source, says, *, web=False):
        note = tmp_path / "note"
        command = program(tmp_path, f"pathlib.Path({str(note)!r}).write_text(path.read_text())\n{source}")
        for name in ("VISUAL", "EDITOR", "PAGER"):
            monkeypatch.delenv(name, raising=False)
        if variable:
            monkeypatch.setenv(variable, command)

        async def scenario(pilot, _):
            await pilot.press(key)
            await until(pilot, notified(pilot, says))

        with patch.object(App, "suspend", lambda _: nullcontext()), patch.object(App, "is_web", web):
            detail(final('> {"id":1,"method":"ping"}'), scenario)
        return note.read_text() if note.exists() else None

    return open_


@pytest.mark.parametrize(("key", "variable"), [("o", "VISUAL"), ("o", "EDITOR"), ("O", "PAGER")])
def test_a_message_is_opened_elsewhere_and_changes_are_ignored(elsewhere, key, variable):
    got = elsewhere(key, variable, "path.write_text('x')", "your changes are ignored: #1 stays as it was recorded")
    assert got == '{\n  "id":1,\n  "method":"ping"\n}\n'


def test_a_program_that_fails_says_so(elsewhere):
    elsewhere("o", "EDITOR", "sys.exit(3)", "ended with status 3")


def test_without_an_editor_or_in_the_browser_nothing_is_opened(elsewhere):
    assert elsewhere("o", None, "", "no editor is set: set $VISUAL or $EDITOR") is None
    assert elsewhere("O", "PAGER", "", "editor and pager need a terminal, not a browser", web=True) is None


def test_a_malformed_command_and_a_terminal_that_cannot_be_given_away_are_one_line(monkeypatch):
    async def scenario(pilot, _):
        for key, name in (("o", "VISUAL"), ("O", "PAGER")):
            monkeypatch.setenv(name, "less '")
            await pilot.press(key)
            await until(pilot, notified(pilot, f"${name} is malformed: no closing quotation in less '"))
        monkeypatch.setenv("PAGER", "cat")
        await pilot.press("O")
        await until(pilot, notified(pilot, "this terminal cannot run another program"))

    detail(final('> {"id":1,"method":"ping"}'), scenario)
