"""C-01: a signal to the group is distinguished from a signal to a single process."""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests import limits
from tests.relay.harness import LIMIT, end_group, running, until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells what the witness holds")

# Receives signals as `wrap` does. Writes the pid of the witness, then for each line of stdin the next signal and
# whether it was sent to the group.
ASKER = """
import os, signal
from mcpspy.process.witness import Witness
signals = {signal.SIGTERM, signal.SIGINT, signal.SIGWINCH}
for number in signals:
    signal.signal(number, lambda *_: None)
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
witness = Witness(1024)
print(open(f"/proc/self/task/{os.getpid()}/children").read(), flush=True)
for line in open(0, buffering=1):
    if line == "end\\n":
        witness.end()
        print("ended", flush=True)
    else:
        number = signal.sigwait(signals)
        print(number.name, "group" if witness.has(number) else "process", flush=True)
"""


class Asker(limits.Popen):
    """A process with a witness."""

    def __init__(self):
        super().__init__(
            [sys.executable, "-c", ASKER], stdin=-1, stdout=-1, stderr=-1, text=True, bufsize=1, start_new_session=True
        )
        self.witness = int(self.stdout.readline())

    def next(self) -> str:
        return self.tell("next")

    def tell(self, word: str) -> str:
        self.stdin.write(word + "\n")
        return self.stdout.readline().strip()


@pytest.fixture
def asker():
    process = Asker()
    yield process
    end_group(process)


def test_a_signal_to_the_group_is_told_from_one_to_a_process(asker):
    for _ in range(100):
        os.killpg(asker.pid, signal.SIGTERM)
        assert asker.next() == "SIGTERM group"
        os.kill(asker.pid, signal.SIGTERM)
        assert asker.next() == "SIGTERM process"


def test_each_signal_is_told_apart_by_itself(asker):
    """One signal to the group and another to the process are pending together."""
    os.killpg(asker.pid, signal.SIGTERM)
    os.kill(asker.pid, signal.SIGINT)
    assert [asker.next(), asker.next()] == ["SIGINT process", "SIGTERM group"]


def test_a_signal_whose_default_is_to_be_ignored_is_told_apart(asker):
    """A terminal sends such a signal when its size changes."""
    os.killpg(asker.pid, signal.SIGWINCH)
    assert asker.next() == "SIGWINCH group"
    os.kill(asker.pid, signal.SIGWINCH)
    assert asker.next() == "SIGWINCH process"


def test_it_holds_nothing_but_its_two_pipes(asker):
    """S-07: peers wait until every process has closed its end of a pipe."""
    os.kill(asker.pid, signal.SIGTERM)
    assert asker.next() == "SIGTERM process"  # so the witness has started
    held = [os.readlink(entry) for entry in Path(f"/proc/{asker.witness}/fd").iterdir()]
    assert [target.partition(":")[0] for target in held] == ["pipe", "pipe"]


def test_it_survives_what_the_group_is_sent(asker):
    os.kill(asker.pid, signal.SIGTERM)
    assert asker.next() == "SIGTERM process"  # so the witness has started
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP, signal.SIGUSR1, signal.SIGALRM):
        os.kill(asker.witness, number)
    os.killpg(asker.pid, signal.SIGTERM)
    assert asker.next() == "SIGTERM group"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_without_an_answer_the_signal_counts_as_sent_to_the_process(asker, number):
    """It is then forwarded: the server should receive a signal twice rather than never."""
    os.kill(asker.witness, number)
    until(lambda: stopped(asker.witness) or not running(asker.witness))
    for _ in range(2):
        os.kill(asker.pid, signal.SIGTERM)
        assert asker.next() == "SIGTERM process"


def test_an_answer_that_comes_too_late_is_not_taken_for_another(asker):
    """The witness was stopped, and continues when the group does."""
    os.kill(asker.witness, signal.SIGSTOP)
    until(lambda: stopped(asker.witness))
    os.killpg(asker.pid, signal.SIGTERM)
    assert asker.next() == "SIGTERM process"
    os.kill(asker.witness, signal.SIGCONT)
    os.kill(asker.pid, signal.SIGINT)
    assert asker.next() == "SIGINT process"


def test_it_ends_when_it_is_told_to_even_if_stopped(asker):
    os.kill(asker.witness, signal.SIGSTOP)
    assert asker.tell("end") == "ended"
    assert not Path(f"/proc/{asker.witness}").exists()


def test_it_ends_with_the_process_that_forked_it(asker):
    """S-07: also when that process is killed."""
    asker.kill()
    asker.wait(LIMIT)
    until(lambda: not running(asker.witness), "the end of the witness")


def stopped(pid: int) -> bool:
    """Return whether a process is stopped."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
