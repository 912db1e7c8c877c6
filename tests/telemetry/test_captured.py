"""A capture as telemetry, read in portions."""

import os

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.telemetry.captured import CapturedTelemetry
from tests.timelines import CAPTURES


def told(name, size):
    """Return the telemetry of a capture that is read in portions of `size` records."""
    capture = Capture(os.path.join(CAPTURES, name))
    folded, records = CapturedTelemetry(capture.header, str, lambda _: {}), list(capture.records())
    portions = [records[at : at + size] for at in range(0, len(records), size)]
    return [*(it for portion in portions for it in folded.feed(portion)), *folded.end()]


@pytest.mark.parametrize("name", ["features-python1-2025-11-25.jsonl", "http-python2-2026-07-28.jsonl"])
def test_the_same_comes_out_in_any_portions(name):
    """T-03: reading again from the beginning gives the same spans."""
    whole = told(name, 10**6)
    assert {type(it).__name__ for it in whole} == {"ExchangeSpan", "LogEntry", "Measure"}
    assert told(name, 1) == told(name, 7) == whole
