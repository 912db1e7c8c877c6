from mcpspy.report.words import ARROWS, MARKS, SEVERITIES, coloured
from mcpspy.rules import SEVERITIES as NAMES


def test_every_severity_has_a_mark_and_a_colour():
    assert set(MARKS) == set(SEVERITIES) == set(NAMES)
    assert len(set(MARKS.values())) == 3


def test_every_sender_has_an_arrow():
    assert set(ARROWS) == {"client", "server", "mcpspy"}


def test_without_a_colour_a_line_stays_as_it_is():
    assert coloured("a", "31") == "\x1b[31ma\x1b[0m"
    assert coloured("a", None) == "a"
