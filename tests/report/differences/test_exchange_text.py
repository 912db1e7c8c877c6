from mcpspy.replay.compare.values import Difference
from mcpspy.report.differences.exchange_text import sides, subject, totals
from tests.report.differences import ALL, CHANGED, EXTRA


def test_long_values_are_shown_from_a_little_before_they_part():
    one, other = sides(Difference(("a",), "x" * 500 + "one", "x" * 500 + "two"))
    assert one == "…" + "x" * 30 + 'one"'
    assert other == "…" + "x" * 30 + 'two"'
    one, other = sides(Difference(("a",), "y" * 500, "z" * 500))
    assert (len(one), len(other)) == (160, 160)


def test_the_subject_is_method_and_name():
    assert (subject(CHANGED), subject(EXTRA)) == ("tools/call read", "a line that is not a message")


def test_every_outcome_has_a_total():
    assert totals(()) == dict.fromkeys(("same", "changed", "error-changed", "missing", "extra", "skipped"), 0)
    assert sum(totals(ALL).values()) == len(ALL)
