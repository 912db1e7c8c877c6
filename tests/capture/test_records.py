from dataclasses import FrozenInstanceError, fields
from typing import get_args

import pytest

from mcpspy.capture import records as record
from mcpspy.capture.format import FORMAT
from mcpspy.capture.records import Close, End, Frame, Gap, Gates, Open, Record, Release, Signal


def test_the_format_number_is_an_integer_of_its_own():
    assert type(FORMAT) is int
    assert FORMAT == 1


def test_every_record_has_a_line_number_and_a_time():
    assert set(get_args(Record)) == {Open, Frame, Release, Gates, Close, Gap, Signal, End}
    for kind in get_args(Record):
        assert {"n", "t"} <= {field.name for field in fields(kind)}


@pytest.mark.parametrize("kind", [record.Header, *get_args(Record)])
def test_records_are_slotted_and_frozen_but_for_frames(kind):
    """There are millions of frames, and creating a frozen one takes several times as long."""
    values = {field.name: 0 for field in fields(kind)}
    instance = kind(**values)
    assert not hasattr(instance, "__dict__")
    if kind is not Frame:
        with pytest.raises(FrozenInstanceError):
            setattr(instance, next(iter(values)), 1)


def test_a_frame_is_whole_and_was_forwarded_as_it_came_unless_it_says_otherwise():
    frame = Frame(5, 1, 0, b"{}")
    assert (frame.cut, frame.op, frame.sender, frame.sent, frame.by) == (False, None, None, None, None)
    assert (frame.dropped, frame.held, frame.undecided) == (False, None, False)
