"""The sequence view: lanes, arrows, brackets, and the side that was waited for."""

from rich.cells import cell_len

from mcpspy.tui.views.sequence import Layout, SequenceView, heading
from tests.test_overview import HANDSHAKE
from tests.test_timeline import EVERY_OUTCOME
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import lines, on_screen, shown, until
from tests.tui.views import HOSTILE, view

ASKED = """
@5 > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"book"}}
@5.05 ! asking
@5.06 < {"jsonrpc":"2.0","id":1,"method":"elicitation/create"}
@20 > {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
@20.3 < {"jsonrpc":"2.0","method":"notifications/progress"}
@21 < {"jsonrpc":"2.0","id":1,"result":{"content":[],"isError":true}}
"""


def test_a_nested_request_is_drawn_with_the_waits_and_brackets_of_both_sides(tmp_path):
    async def scenario(pilot):
        assert [line[2:] for line in shown(pilot.app.rows)[:7]] == [
            "    5.000                     │── tools/call book  id 1 ───────────────▶┃─╮",
            "    5.050   50.0 ms server    │                                  asking ┃ │",
            "    5.060   10.0 ms server  ╭─┃◀──────────── elicitation/create  id 1 ──┃ │",
            "   20.000   14.94 s person  ╰─┃╌╌ ok 14.94 s  elicitation/create acc… ╌▶┃ │",
            "   20.300  300.0 ms server    │◀────────────── notifications/progress ──┃ │",
            "   21.000  700.0 ms server    │◀╌ tool-error 16.00 s  tools/call book ╌╌┃─╯",
            "   10.000                     │      the server exited with code 0      │",
        ]
        await pilot.press("g", "down", "down", "enter")

    assert view(SequenceView, capture(tmp_path / "a.jsonl", ASKED), scenario, (80, 24)).jumps == [7]


def test_the_lanes_bear_the_names_of_both_sides(tmp_path):
    async def scenario(pilot):
        await until(pilot, on_screen(pilot, "client cursor"))
        head, first = lines(pilot.app)[:2]
        assert head.index("client cursor") == first.index("│")
        assert len(head) == first.index("┃") + 1
        assert head.endswith("server weather")

    view(SequenceView, capture(tmp_path / "a.jsonl", HANDSHAKE + ASKED), scenario)


def test_a_row_has_the_same_columns_whatever_stands_in_it(tmp_path):
    said = "\n".join(f"! {text}\n< {text}" for text in HOSTILE)
    text = f'{EVERY_OUTCOME}{ASKED}{said}\n< [{{"method":"a"}},{{"method":"b"}}]'

    async def scenario(pilot):
        rows = pilot.app.rows
        for width in (0, 1, 20, 40, 65, 66, 80, 109, 110, 130, 200):
            widths = {sum(cell_len(text) for text, _ in rows.cells(place, width)) for place in range(rows.count())}
            assert len(widths) == 1
            assert widths.pop() <= max(width, 4 + sum(Layout.of(0)))
            assert cell_len(heading(width, "日本語" * 20, "x" * 99)) <= max(width, 4 + sum(Layout.of(0)))

    view(SequenceView, capture(tmp_path / "a.jsonl", text), scenario)


def test_an_error_that_answers_no_request_is_no_success(tmp_path):
    path = capture(tmp_path / "a.jsonl", '< {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}')

    async def scenario(pilot):
        cells = pilot.app.rows.cells(0, 100)
        assert [colour for text, colour in cells if "error" in text] == ["view--error"]

    view(SequenceView, path, scenario)


def test_what_is_said_is_followed_and_an_answer_closes_its_bracket(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, '> {"id":1,"method":"ping"}')

    async def scenario(pilot):
        rows = pilot.app.rows
        writer.frame(3, 2_000_000, b"on", more=False, cut=False)
        pilot.app.grow()
        await until(pilot, lambda: rows.cursor == 1)
        await pilot.pause()
        assert "pending" in shown(rows)[0]
        assert shown(rows)[1].endswith("┃ │")
        writer.frame(2, 300_000_000, b'{"id":1,"result":{}}', more=False, cut=False)
        pilot.app.grow()
        await pilot.pause()
        assert rows.cursor == 2
        assert "pending" not in shown(rows)[0]
        assert shown(rows)[2].endswith("ok 299.0 ms  ping ╌╌┃─╯")
        finish(writer)

    view(SequenceView, tmp_path / "a.jsonl", scenario)


def test_a_large_capture_is_gone_through_while_it_is_looked_at(tmp_path):
    path = capture(
        tmp_path / "a.jsonl",
        "".join(f'> {{"id":{n},"method":"ping"}}\n< {{"id":{n},"result":{{}}}}\n' for n in range(1000)),
    )

    async def scenario(pilot):
        rows = pilot.app.rows
        await pilot.press("G", "up")
        assert rows.cursor == 1999
        await until(pilot, lambda: shown(rows)[-2].endswith("┃─╯"))

    view(SequenceView, path, scenario)
