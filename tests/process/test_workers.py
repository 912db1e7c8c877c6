"""Work on many items in several processes: order, failures, and the end of every worker."""

import gc
import os
import signal
import subprocess
import sys
import threading

import pytest

from mcpspy.errors import CaptureError, McpspyError
from mcpspy.process.workers import cores, mapped
from tests import limits
from tests.limits import LIMIT

ITEMS = [str(number) for number in range(20)]
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def double(item, told):
    told(int(item))
    return os.getpid(), 2 * int(item)


def refuse(item, told):
    told(1)
    if item in ("7", "9"):
        raise CaptureError(f"{item} is no capture")
    return item


def die(item, _):
    if item == "3":
        os.kill(os.getpid(), signal.SIGKILL)
    return item


def leave(item, _):
    if item == "3":
        os._exit(5)
    return item


@pytest.mark.parametrize("processes", [1, 2, 5, 100])
def test_the_results_come_in_the_order_of_the_items(processes):
    told = []
    found = mapped(double, ITEMS, told.append, processes)
    assert [value for _, value in found] == [2 * int(item) for item in ITEMS]
    assert sorted(told) == sorted(map(int, ITEMS))
    own = os.getpid() in {process for process, _ in found}
    assert own == (processes == 1)


@pytest.mark.parametrize("items", [[], ["4"]])
def test_one_item_stays_in_this_process(items):
    assert mapped(double, items, lambda _: None, 8) == [(os.getpid(), 8) for _ in items]


@pytest.mark.parametrize("processes", [1, 3])
def test_of_several_failures_the_first_in_the_order_of_the_items_is_raised(processes):
    with pytest.raises(CaptureError, match=r"^7 is no capture$") as raised:
        mapped(refuse, ITEMS, lambda _: None, processes)
    assert any(entry.name == "refuse" for entry in raised.traceback), "it has the traceback of a failure here"


@pytest.mark.parametrize(("work", "how"), [(die, "was killed by signal 9"), (leave, "exited with status 5")])
def test_a_worker_that_breaks_is_one_sentence_with_its_item(work, how):
    with pytest.raises(McpspyError) as raised:
        mapped(work, ITEMS, lambda _: None, 2)
    assert str(raised.value) == f"3: the process that worked on it {how}, so there is no result"


def test_a_process_that_cannot_be_started_is_done_without(monkeypatch):
    def refused(*_):
        raise BlockingIOError

    monkeypatch.setattr("multiprocessing.process.BaseProcess.start", refused)
    assert [value for _, value in mapped(double, ITEMS, lambda _: None, 2)] == [2 * int(item) for item in ITEMS]


def test_nothing_is_left_behind():
    gc.collect()  # closes what other tests left open
    before = len(os.listdir("/dev/fd")), threading.active_count()
    mapped(double, ITEMS, lambda _: None, 3)
    assert (len(os.listdir("/dev/fd")), threading.active_count()) == before


def test_this_process_may_use_a_processor():
    assert cores() >= 1


BUSY = """
import os, sys, time
from mcpspy.process.workers import mapped

def work(item, told):
    os.write(1, b"at work\\n")
    time.sleep(300)

if __name__ == "__main__":
    try:
        mapped(work, ["a", "b", "c"], lambda _: None, 2)
    except KeyboardInterrupt:
        os.write(1, b"interrupted\\n")
"""


@pytest.fixture
def busy(tmp_path):
    """Start a process with two busy workers, in its own group; its output ends when all three processes have exited."""
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    pipe = subprocess.PIPE
    environ = os.environ | {"PYTHONPATH": ROOT}
    with limits.Popen(
        [sys.executable, script], stdout=pipe, stderr=pipe, start_new_session=True, env=environ
    ) as process:
        try:
            assert [process.stdout.readline() for _ in range(2)] == [b"at work\n"] * 2
            yield process
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass


def test_an_interrupt_ends_all_of_them_at_once_and_quietly(busy):
    """Ctrl-C in a terminal reaches every process of the group."""
    os.killpg(busy.pid, signal.SIGINT)
    assert busy.communicate(timeout=LIMIT) == (b"interrupted\n", b"")
    assert busy.returncode == 0


def test_an_interrupt_of_the_parent_alone_ends_all_of_them(busy):
    os.kill(busy.pid, signal.SIGINT)
    assert busy.communicate(timeout=LIMIT) == (b"interrupted\n", b"")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_workers_do_not_outlive_a_parent_that_is_killed(busy, number):
    busy.send_signal(number)
    assert busy.communicate(timeout=LIMIT) == (b"", b"")
    assert busy.returncode == -number
