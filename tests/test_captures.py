"""The captures of real sessions stay readable, and fold into what was said."""

from collections import Counter
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.record import FORMAT
from mcpspy.timeline import final_rows, to_json

CAPTURES = sorted((Path(__file__).parent.parent / "captures").glob("*.jsonl"))


def test_there_is_a_capture_of_every_format_number():
    numbers = {int(path.read_text().partition(",")[0].partition(":")[2]) for path in CAPTURES}
    assert numbers == set(range(1, FORMAT + 1))


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_every_request_of_a_real_session_has_its_answer(path):
    capture = Capture(str(path))
    found = list(final_rows(capture.records, live=False))
    kinds = Counter(row.kind for row in found)
    assert kinds["request"] == kinds["result"] + kinds["error"] >= 10
    assert not kinds["invalid"] + kinds["gap"]
    assert kinds["end"] == 1
    for row in found:
        assert to_json(row, capture.header)
        if row.kind == "request":
            assert row.response
            assert row.latency >= 0
            assert row.revision == path.stem[-10:]
