"""Grouping captures by client process."""

import itertools
import math
from dataclasses import dataclass

import pytest

from mcpspy.capture.listing import client_process, runs
from mcpspy.capture.records import Header, Imported

HOUR = 3600


@dataclass
class Recorded:
    """A capture with a name, a client process and times."""

    name: str
    ppid: int | None
    started: float
    ended: float
    client_start: int | None = None
    transport: str = "stdio"

    @property
    def header(self):
        header = Header("", "", "", self.transport, self.name, ppid=self.ppid, client_start=self.client_start)
        assert header.imported is None
        return header


def names(*captures):
    return ["".join(it.name for it in run) for run in runs(captures)]


def test_captures_of_one_client_process_are_together_where_the_first_of_them_is():
    assert names(
        Recorded("a", 7, 50, 60), Recorded("b", None, 40, 41), Recorded("c", 8, 30, 31),
        Recorded("d", 7, 20, 21, transport="http"), Recorded("e", 7, 10, 60), Recorded("f", 1, 0, 1),
    ) == ["ae", "b", "c", "d", "f"]  # fmt: skip
    assert names() == []


@pytest.mark.parametrize("ppid", [None, 0, 1, -3, "7", 7.5, True, [7]])
def test_what_is_no_process_of_a_client_joins_nothing(ppid):
    """Process 1 adopts orphans; any JSON value may stand in a header."""
    header = Recorded("a", ppid, 0, 1).header
    assert client_process(header) is None
    assert names(Recorded("a", ppid, 0, 1), Recorded("b", ppid, 0, 1)) == ["a", "b"]


def test_an_imported_capture_has_no_client_process():
    assert client_process(Header("", "", "", "stdio", "a", ppid=7)) == 7
    assert client_process(Header("", "", "", "stdio", "a", ppid=7, imported=Imported("a HAR"))) is None


def test_one_number_of_processes_that_began_at_different_times_joins_nothing():
    """Clients in different containers can have the process id 7 at the same time."""
    one, two = ([Recorded(name, 7, at, math.inf, client_start=start) for at, name in enumerate(names)]
                for start, names in ((100, "abc"), (101, "de")))  # fmt: skip
    assert names(*one, *two) == ["abc", "de"]
    assert names(*(it for pair in itertools.zip_longest(one, two) for it in pair if it)) == ["abc", "de"]


def test_a_process_that_is_known_may_pause_for_days():
    week = 7 * 24 * HOUR
    assert names(Recorded("b", 7, week, week + 1, 5), Recorded("a", 7, 0, 1, 5)) == ["ba"]


def test_a_process_that_is_known_is_not_joined_with_one_of_which_only_the_number_is():
    assert names(Recorded("a", 7, 0, 9, 5), Recorded("b", 7, 1, 9)) == ["a", "b"]


@pytest.mark.parametrize(
    ("captures", "expected"),
    [
        pytest.param([(0, 10), (20, 30), (80, 90)], ["abc"], id="one soon after the other"),
        pytest.param([(0, 10), (71, 80)], ["a", "b"], id="a pause of more than a minute"),
        pytest.param([(0, 5 * HOUR), (10, 11), (4 * HOUR, 5 * HOUR)], ["abc"], id="while another goes on"),
        pytest.param([(4 * HOUR, 5 * HOUR), (10, 11), (0, 5 * HOUR)], ["abc"], id="in any order"),
        pytest.param([(0, math.inf), (20 * HOUR, math.inf)], ["ab"], id="a server that was started later"),
        pytest.param([(0, 90 * HOUR), (25 * HOUR, 90 * HOUR)], ["a", "b"], id="copied, days after"),
        pytest.param([(0, 1), (30 * HOUR, 30 * HOUR + 1), (1, 2)], ["ac", "b"], id="a number that was used again"),
    ],
)
def test_where_only_the_number_is_known_the_times_decide(captures, expected):
    assert names(*(Recorded(name, 7, *times) for name, times in zip("abc", captures, strict=False))) == expected
