"""The view of stderr: its lines and nothing else."""

import pytest

from mcpspy.tui.views.stderr import StderrView
from tests.transcript import begin, capture, finish, record
from tests.tui.screen import shown
from tests.tui.views import view

SAID = """
@1.5 ! warming up
> {"id":1,"method":"ping"}
@2.25 ! ready
< {"id":1,"result":{}}
"""


def test_each_line_of_stderr_has_a_row_that_leads_to_it(tmp_path):
    async def scenario(pilot):
        assert [line.split(None, 2) for line in shown(pilot.app.view)[:2]] == [
            ["#5", "1.500", "warming up"],
            ["#7", "2.250", "ready"],
        ]
        await pilot.press("down", "enter")

    app = view(StderrView, capture(tmp_path / "a.jsonl", SAID), scenario)
    assert app.jumps == [7]


def test_what_is_written_is_followed_while_the_session_is_live(tmp_path):
    writer = begin(tmp_path / "a.jsonl")
    record(writer, SAID)

    async def scenario(pilot):
        assert pilot.app.view.follow
        for number in range(50):
            writer.frame(3, 3 * 10**9 + number, b"line %d" % number, more=False, cut=False)
        pilot.app.grow()
        await pilot.pause()
        assert shown(pilot.app.view)[-1].endswith("line 49")
        finish(writer)

    view(StderrView, tmp_path / "a.jsonl", scenario)


NONE = {"stdio": "the server wrote nothing to stderr", "http": "stderr is recorded for servers on stdio only"}


@pytest.mark.parametrize(("transport", "why"), NONE.items())
def test_where_there_is_none_it_says_why(tmp_path, transport, why):
    async def scenario(pilot):
        assert shown(pilot.app.view)[0].strip() == why

    view(StderrView, capture(tmp_path / "a.jsonl", '> {"id":1,"method":"ping"}', transport=transport), scenario)
