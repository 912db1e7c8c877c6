"""Frames that are not messages: which fault each one has, and which lines belong together."""

import pytest

from mcpspy.capture.records import Frame
from mcpspy.rules.framing import MultilineJson, Spread
from mcpspy.rules.judge import Judge
from tests.memory import objects_in
from tests.transcript import OPENS


@pytest.mark.parametrize(("lines", "size", "kept"), [(99, 0, True), (100, 0, False), (9, 49, True), (9, 50, False)])
def test_lines_are_not_collected_for_ever(monkeypatch, lines, size, kept):
    monkeypatch.setattr("mcpspy.rules.framing.MOST_LINES", 100)
    monkeypatch.setattr("mcpspy.rules.framing.LONGEST", 50)
    frames = [Frame(n, 2, n, b"{".ljust(size) if n == 1 else b"") for n in range(1, lines + 1)]
    judge = Judge()
    [list(judge.feed(record)) for record in (*OPENS, *frames)]
    (check,) = objects_in(judge, MultilineJson)
    assert bool(objects_in(check, Spread)) == kept
