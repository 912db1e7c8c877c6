from pathlib import Path

import orjson
import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Open
from mcpspy.errors import UsageError
from mcpspy.recording.copy import write_with_sessions
from tests.replay.scripts import call, result
from tests.transcript import WALL, begin, capture, finish, record

FIRST = f"> {call(1, 'a')}\n< {result(1, 'A')}"
SECOND = f"> {call(1, 'b')}\n< {result(1, 'B')}\n! aside"
HOUR = 3600 * 10**9


def added(tmp_path, wall=WALL + HOUR, old=FIRST):
    """Append a later capture to an older one; return the bytes of the older file, and the path of the result."""
    first = capture(tmp_path / "first.jsonl", old)
    writer = begin(tmp_path / "second.jsonl", wall=wall)
    record(writer, SECOND)
    finish(writer, 10**10)
    whole = str(tmp_path / "whole.jsonl")
    write_with_sessions(first, [str(tmp_path / "second.jsonl")], whole)
    return Path(first).read_bytes(), whole


def test_the_old_capture_is_the_beginning_byte_for_byte_and_the_new_one_follows_in_channels_of_its_own(tmp_path):
    old, whole = added(tmp_path)
    assert Path(whole).read_bytes().startswith(old)
    found = list(Capture(whole).records())
    assert [it.ch for it in found if isinstance(it, Open)] == [1, 2, 3, 4, 5, 6]
    assert [it.raw.decode() for it in found if isinstance(it, Frame) and it.ch > 3] == [
        *(line.partition(" ")[2] for line in SECOND.splitlines())
    ]
    assert [it.ch for it in found if isinstance(it, Frame)] == [1, 2, 4, 5, 6]
    assert sum(isinstance(it, End) for it in found) == 2
    assert not any(isinstance(it, Close) for it in found)


def test_the_times_of_the_new_one_are_those_since_the_old_one_began(tmp_path):
    _, whole = added(tmp_path)
    opened = [it.t for it in Capture(whole).records() if isinstance(it, Open) and it.ch == 4]
    assert opened == [HOUR]


def test_a_clock_that_was_set_back_puts_nothing_before_what_is_there(tmp_path):
    _, whole = added(tmp_path, wall=WALL - HOUR)
    times = [it.t for it in Capture(whole).records()]
    assert times == sorted(times)
    assert times[6] == 10**10 + 1  # right after the end of the first capture


def test_a_capture_whose_last_line_has_no_newline_is_not_torn_by_what_follows(tmp_path):
    first = capture(tmp_path / "first.jsonl", FIRST)
    Path(first).write_bytes(Path(first).read_bytes()[:-1])
    whole = str(tmp_path / "whole.jsonl")
    write_with_sessions(first, [capture(tmp_path / "second.jsonl", SECOND)], whole)
    assert [orjson.loads(line)["kind"] for line in Path(whole).read_bytes().splitlines()[6:9]] == [
        "end",
        "open",
        "open",
    ]


def test_answers_names_the_channel_of_its_request(tmp_path):
    writer = begin(tmp_path / "web.jsonl", transport="http")
    writer.open(1, 0, "client", "request", "body")
    writer.open(2, 1, "server", "response", "body", {"answers": 1})
    finish(writer, 2)
    whole = str(tmp_path / "whole.jsonl")
    write_with_sessions(str(tmp_path / "web.jsonl"), [str(tmp_path / "web.jsonl")] * 2, whole)
    opened = [(it.ch, it.answers) for it in Capture(whole).records() if isinstance(it, Open)]
    assert opened == [(1, None), (2, 1), (3, None), (4, 3), (5, None), (6, 5)]


def test_nothing_is_overwritten(tmp_path):
    _, whole = added(tmp_path)
    with pytest.raises(UsageError, match="exists"):
        write_with_sessions(whole, [], whole)


@pytest.mark.parametrize("number", [-1, 1 << 62, 1 << 63, 1 << 64, 1.5, '"x"', "null", "[]"])
def test_numbers_that_no_relay_writes_spoil_nothing(tmp_path, number):
    first = Path(capture(tmp_path / "first.jsonl", FIRST))
    first.write_text(first.read_text() + f'{{"kind":"later","ch":{number},"t":{number}}}\n')
    whole = str(tmp_path / "whole.jsonl")
    write_with_sessions(str(first), [capture(tmp_path / "second.jsonl", SECOND)], whole)
    assert [it.ch for it in Capture(whole).records() if isinstance(it, Open)] == [1, 2, 3, 4, 5, 6]
