"""Quantities as people read them."""

import pytest

from mcpspy.units import age_text, duration_text, plural, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1500, "1.5 kB"),
        (999_949, "999.9 kB"),
        (2 * 10**6, "2.0 MB"),
        (10**9, "1.0 GB"),
        (5 * 10**12, "5000.0 GB"),
    ],
)
def test_sizes_are_in_powers_of_1000(size, text):
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s ago"),
        (0, "0 s ago"),
        (59.4, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (7200, "2 h ago"),
        (86399, "23 h ago"),
        (86400, "1 d ago"),
        (1e9, "11574 d ago"),
    ],
)
def test_ages_are_in_the_largest_unit_that_fits(seconds, text):
    assert age_text(seconds) == text


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 µs"),
        (1_499, "1 µs"),
        (999_000, "999 µs"),
        (1_000_000, "1.0 ms"),
        (12_340_000, "12.3 ms"),
        (999_900_000, "999.9 ms"),
        (1_000_000_000, "1.00 s"),
        (3_600_000_000_000, "3600.00 s"),
    ],
)
def test_durations_are_in_the_unit_that_suits_them(nanoseconds, text):
    assert duration_text(nanoseconds) == text


def test_one_is_singular_and_thousands_are_set_apart():
    expected = ["0 frames", "1 frame", "2 frames", "1,000 frames", "1,234,567 frames"]
    assert [plural(number, "frame") for number in (0, 1, 2, 1000, 1234567)] == expected
