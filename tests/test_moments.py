"""Moments in the local time zone, and in UTC."""

from datetime import UTC, datetime

import pytest

from mcpspy.moments import clock_text, moment, moment_text, shown, typed, use_utc, zone_text
from tests.zones import zone

STARTED = "2026-11-20T23:38:34.897397Z"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("UTC", "2026-11-20 23:38:35.897 UTC"),
        ("Europe/Oslo", "2026-11-21 00:38:35.897 +01:00"),
        ("America/New_York", "2026-11-20 18:38:35.897 -05:00"),
        ("Europe/London", "2026-11-20 23:38:35.897 +00:00"),
    ],
)
def test_a_moment_is_shown_in_the_local_time_zone(name, text):
    with zone(name):
        assert moment_text(moment(STARTED, 1_000_000_000)) == text


def test_a_moment_is_shown_and_typed_in_utc_if_that_is_wanted():
    with zone("Asia/Kolkata"):
        assert clock_text(moment(STARTED)) == "05:08:34.897"
        use_utc()
        assert moment_text(moment(STARTED)) == "2026-11-20 23:38:34.897 UTC"
        assert typed(datetime(2026, 11, 20, 23)) == (datetime(2026, 11, 20, 23, tzinfo=UTC),)  # noqa: DTZ001
        assert zone_text(shown(datetime(2026, 11, 20, tzinfo=UTC))) == "UTC"


def test_a_start_without_a_time_zone_is_utc():
    with zone("Asia/Kolkata"):
        assert moment("2026-11-20T00:00:00") == moment("2026-11-20T00:00:00Z")


@pytest.mark.parametrize(
    ("clock", "utc"),
    [((3, 29, 1, 30), [0]), ((3, 29, 2, 30), [1]), ((3, 29, 3, 30), [1]), ((10, 25, 2, 30), [0, 1]),
     ((10, 25, 3, 30), [2])],
)  # fmt: skip
def test_a_typed_time_that_clocks_skip_is_later_and_one_that_they_repeat_is_both(clock, utc):
    with zone("Europe/Oslo"):
        found = typed(datetime(2026, *clock))  # noqa: DTZ001
        assert found == tuple(datetime(2026, *clock[:2], hour, 30, tzinfo=UTC) for hour in utc)
