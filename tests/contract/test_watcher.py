"""The interface of a watcher; the base class looks at nothing."""

from mcpspy.contract.watcher import Failure, SeenCall, Watcher


def test_a_watcher_that_looks_at_nothing_finds_nothing():
    watcher = Watcher()
    found = [watcher.add(None), watcher.called(SeenCall(1, 0, "a", {})), watcher.answered(None, 1), watcher.end()]
    assert [list(it) for it in found] == [[], [], [], []]


def test_a_failure_is_about_the_whole_capture_unless_it_names_a_frame():
    assert Failure("x").frame == 1
