"""The text of rows for records other than frames; `tests/test_timeline.py` tests the other rows."""

from mcpspy.capture.records import End, Gap, Gates, Signal
from mcpspy.conversation.record_text import record_text


def test_each_record_tells_what_happened():
    assert record_text(Gap(1, 0, 2, "no space")) == "2 lost: no space"
    assert record_text(Gates(1, 0, ({"name": "slow"},), "file")) == "slow (set by the gate file)"
    assert record_text(Signal(1, 0, 15, "group", forwarded=True)).startswith("SIGTERM to the process group")
    assert record_text(End(1, 0, code=3)) == "the server exited with code 3"
