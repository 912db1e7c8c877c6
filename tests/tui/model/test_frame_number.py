"""The row that a frame number jumps to."""

import pytest

from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError
from mcpspy.tui.model.commands import destination
from mcpspy.tui.model.merged import Merged
from tests.transcript import begin, capture, finish

CALLS = '> {"id":1,"method":"ping"}\n< {"id":1,"result":{}}'


@pytest.fixture
def opened():
    """Open captures, alone or merged, read them, and close them at the end."""
    found = []

    def opened(*paths):
        sessions = [OpenCapture(str(path)) for path in paths]
        found.append(sessions[0] if len(sessions) == 1 else Merged(sessions))
        while found[-1].grow(1) or not found[-1].complete:
            pass
        return found[-1]

    yield opened
    for session in found:
        session.close()


def test_a_number_leads_to_its_frame_or_to_the_next_and_what_is_no_number_is_refused(tmp_path, opened):
    session = opened(capture(tmp_path / "a", CALLS))
    for number, n in (("6", 6), ("#5", 5), ("٦", 6)):
        assert destination(session, 5, number) == (n, "")
    assert destination(session, 5, "1") == (5, "#1 is not a row of weather; #5 is next to it")
    assert destination(session, 5, "9" * 9) == (7, f"#{'9' * 9} is not a row of weather; #7 is next to it")
    for number in ("", "#", "x", "-1", "²", "1.5", "9" * 10, "9" * 5000):
        with pytest.raises(UsageError, match="goto needs the number of a frame, such as 17"):
            destination(session, 5, number)


def test_in_a_merge_it_is_that_of_the_session_of_the_selected_row(tmp_path, opened):
    first, second = (capture(tmp_path / name, CALLS, name=name) for name in "ab")
    merged = opened(first, second)
    for n in merged.index.rows:
        own, _ = merged.of(n - 1)
        for line in own.index.rows:
            found, _ = merged.of(destination(merged, n, str(line)).n - 1)
            assert found is own
    assert destination(merged, 1, "3").says == f"#3 is not a row of {merged.of(0)[0].header.name}; #5 is next to it"


def test_where_nothing_was_said_there_is_nowhere_to_go(tmp_path):
    writer = begin(tmp_path / "a")
    session = OpenCapture(str(tmp_path / "a"))
    try:
        session.grow(1)
        with pytest.raises(UsageError, match="there are no rows yet"):
            destination(session, 0, "5")
    finally:
        session.close()
        finish(writer)
