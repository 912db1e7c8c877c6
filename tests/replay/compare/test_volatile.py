"""Differences that look volatile; the tests of `mcpspy replay` cover the advice about them."""

import pytest

from mcpspy.replay.compare.values import ABSENT, Difference
from mcpspy.replay.compare.volatile import looks_volatile

TEXT = ("result", "content", 0, "text")


@pytest.mark.parametrize(
    ("recorded", "observed"),
    [
        ("2026-11-20T19:15:00.123Z", "2026-11-22T08:00:00.5Z"),
        ("It is 19:15 in Oslo", "It is 08:01 in Oslo"),
        ("2026-11-20 19:15:00+01:00", "2026-11-22 08:00:00+01:00"),
        ("Fri, 20 Nov 2026 19:15:00 GMT", "Sun, 22 Nov 2026 08:00:00 GMT"),
        ("done in 12.5 ms", "done in 9 ms"),
        ("1764000000123456789", "1764000000223456789"),
        ("job 3f0c2b1e-8a44-4f0e-9d3c-2b1e8a444f0e", "job 00000000-8a44-4f0e-9d3c-2b1e8a444f0f"),
        ("commit 3f0c2b1e8a", "commit 9d3c2b1e84"),
        ("token dGhpcyBpcyBub3QgYSB0b2tlbg1", "token aGhpcyBpcyBub3QgYSB0b2tlbg2"),
        (1764000000, 1764000123),
        (1764000000.25, 1764000123.5),
        (0.8444218515250481, 0.7579544029403025),
    ],
)
def test_times_and_ids_and_random_values_look_volatile(recorded, observed):
    """R-15."""
    assert looks_volatile(Difference(TEXT, recorded, observed))


@pytest.mark.parametrize(
    "text", ["a-" * 49_000, "a1-" * 30_000, "1 " * 49_000, "1" * 99_000, "ab" * 49_000, "Mon " * 20_000]
)
def test_a_text_of_any_form_is_looked_at_in_a_moment(text):
    """R-15: servers may send any text."""
    assert looks_volatile(Difference(TEXT, f"{text} 12:00", f"{text} 12:01"))


@pytest.mark.parametrize("name", ["createdAt", "time", "request_id", "elapsedMs", "pid", "uptime"])
def test_the_name_of_a_member_can_tell_it(name):
    """R-15."""
    assert looks_volatile(Difference(("result", name), 5, 7))
    assert looks_volatile(Difference(("result", name), "a", "b"))
    assert not looks_volatile(Difference(("result", name, 0), 5, 7))


@pytest.mark.parametrize(
    ("recorded", "observed"),
    [
        ("12 °C, light rain", "13 °C, light rain"),
        ("yes", "no"),
        ("It is 19:15 in Oslo", "It is 19:15 in Bergen"),
        (5, 7),
        (1.5, 2.5),
        (True, False),
        ("2026-11-20", 5),
        ("2026-11-20", ABSENT),
        (ABSENT, "2026-11-20"),
        ({"a": 1}, {"a": 2}),
        (None, "2026-11-20"),
        ("internationalization", "internationalisations"),
        ("x" * 1_000_000, "y" * 1_000_000),
    ],
)
def test_a_change_does_not_look_volatile(recorded, observed):
    """R-15."""
    assert not looks_volatile(Difference(TEXT, recorded, observed))


def test_a_revision_is_a_date_and_yet_not_volatile():
    path = ("result", "protocolVersion")
    assert not looks_volatile(Difference(path, "2025-06-18", "2025-11-25"))
