from mcpspy.report.words import ARROWS, MARKS, SEVERITIES
from mcpspy.rules import SEVERITIES as NAMES


def test_every_severity_has_a_mark_and_a_colour():
    assert set(MARKS) == set(SEVERITIES) == set(NAMES)
    assert len(set(MARKS.values())) == 3


def test_every_sender_has_an_arrow():
    assert set(ARROWS) == {"client", "server", "mcpspy"}
