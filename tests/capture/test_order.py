"""The order of records (R-01): by `t` within a window, and in the order of the file within a channel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.reader import BYTES, RECORDS, SPAN, Window, ordered
from mcpspy.capture.records import Close, End, Frame, Gap, Open


def frames(*times, raw=b""):
    """Return one frame for each time, each on its own channel."""
    return [Frame(n, n, t, raw) for n, t in enumerate(times, 2)]


def numbers(records):
    return [record.n for record in ordered(records)]


def test_records_come_in_the_order_of_their_times():
    assert numbers(frames(1, 5, 3, 4, 2)) == [2, 6, 4, 5, 3]
    assert numbers(frames(1, 1, 1)) == [2, 3, 4], "those of one time in that of the file"


def test_the_order_within_a_channel_is_that_of_the_file():
    """Also in a handmade file in which times go backwards."""
    opened, closed = Open(2, 1, 9, "client", "stdin", "lines"), Close(5, 1, 1, "eof")
    assert numbers([opened, Frame(3, 1, 5, b""), Frame(4, 2, 3, b""), closed]) == [4, 2, 3, 5]


def test_damage_stays_behind_the_record_before_it_and_the_end_is_the_last():
    damage = Gap(3, 7, 1, "a damaged line")
    assert numbers([Frame(2, 1, 7, b""), damage, Frame(4, 2, 6, b""), Frame(5, 2, 8, b""), End(6, 0)]) == [
        4,
        2,
        3,
        5,
        6,
    ]


def held(records):
    """Return the line numbers of the records that the window gives out before the end."""
    window = Window()
    return [found.n for record in records for found in window.feed(record)]


@pytest.mark.parametrize(
    ("records", "through"),
    [
        (frames(0, SPAN), []),
        (frames(0, 0, SPAN + 1), [2, 3]),
        (frames(*[0] * RECORDS), []),
        (frames(*[0] * (RECORDS + 1)), list(range(2, 259))),
        (frames(*[0] * 16, raw=bytes(BYTES // 16)), []),
        (frames(*[0] * 17, raw=bytes(BYTES // 16)), [2]),
        (frames(0, raw=bytes(BYTES + 1)), [2]),
    ],
)
def test_the_window_is_bounded_by_time_number_and_bytes(records, through):
    assert held(records) == through


def test_what_comes_too_late_is_let_through_where_it_stands():
    records = frames(0, 2 * SPAN, 1, 2 * SPAN + 1)
    assert numbers(records) == [2, 4, 3, 5]
    assert held(records) == [2, 4]


def test_no_frame_is_copied():
    frame = Frame(2, 1, 1, bytes(1 << 20))
    (found,) = ordered([frame])
    assert found is frame


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3 * SPAN))))
def test_nothing_is_lost_and_channels_keep_their_order(said):
    records = [Frame(n, ch, t, b"") for n, (ch, t) in enumerate(said, 2)]
    found = list(ordered(records))
    assert sorted(found, key=lambda it: it.n) == records
    for ch in (1, 2, 3):
        assert [it for it in found if it.ch == ch] == [it for it in records if it.ch == ch]


@given(st.lists(st.integers(0, SPAN)))
def test_within_the_window_all_are_in_order(times):
    found = [record.t for record in ordered(frames(*times))]
    assert found == sorted(times)
