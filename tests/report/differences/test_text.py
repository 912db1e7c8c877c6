from mcpspy.replay.compare.sessions import Compared
from mcpspy.replay.compare.values import ABSENT, Difference
from mcpspy.report.differences.text import as_text
from tests.report.differences import ALL


def test_people_read_what_differs_and_what_was_left_out():
    assert as_text("c.jsonl", ALL).splitlines() == [
        "✗ #9 tools/call read: changed",
        "    /result/a~1b/0",
        "      recorded  1",
        '      observed  "x"',
        "✗ #11 ping: missing (no answer within 10 s)",
        "    (the whole message)",
        '      recorded  {"result":{}}',
        "      observed  nothing",
        "✗ a line that is not a message: extra",
        "    (the whole message)",
        "      recorded  nothing",
        '      observed  "oops"',
        "- #7 tools/call write: skipped (the tool has no readOnlyHint)",
        "c.jsonl: 5 comparisons: 1 same, 1 changed, 1 missing, 1 extra, 1 skipped",
    ]
    assert as_text("c.jsonl", ()) == "c.jsonl: 0 comparisons: nothing to compare\n"


def test_an_answer_to_nothing_is_called_that():
    it = Compared(None, None, None, "extra", (Difference((), ABSENT, {"id": "1", "result": {}}),))
    assert as_text("c.jsonl", [it]).startswith("✗ a response to no request: extra\n")
