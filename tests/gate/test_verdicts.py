import pytest

from mcpspy.gate.gate import PASS, UNDECIDED, CloseStream, Drop, Hold, Pass, Reply, Send

ALL = [
    PASS,
    Send((b"{}",), "oauth"),
    Drop("gate a"),
    Reply(b"{}", "gate a"),
    CloseStream("gate a"),
    Hold(5, "gate a", "delayed", PASS),
]


@pytest.mark.parametrize("verdict", ALL, ids=lambda verdict: type(verdict).__name__)
def test_a_verdict_is_small_and_says_who_decided_it(verdict):
    assert not hasattr(verdict, "__dict__")
    assert type(verdict) is Pass or verdict.by in ("oauth", "gate a")


def test_what_passes_neither_overtakes_nor_cancels_unless_it_says_so():
    assert (PASS.overtakes, PASS.cancels, PASS.undecided) == (False, None, False)
    assert UNDECIDED.undecided
