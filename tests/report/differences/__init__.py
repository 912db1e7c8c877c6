"""Compared exchanges, one for each outcome."""

from mcpspy.replay.compare.sessions import Compared
from mcpspy.replay.compare.values import ABSENT, Difference

SAME = Compared(5, "initialize", None, "same")
SKIPPED = Compared(7, "tools/call", "write", "skipped", (), "the tool has no readOnlyHint")
CHANGED = Compared(9, "tools/call", "read", "changed", (Difference(("result", "a/b", 0), 1, "x"),))
MISSING = Compared(11, "ping", None, "missing", (Difference((), {"result": {}}, ABSENT),), "no answer within 10 s")
EXTRA = Compared(None, None, None, "extra", (Difference((), ABSENT, "oops"),))
ALL = (SAME, SKIPPED, CHANGED, MISSING, EXTRA)
