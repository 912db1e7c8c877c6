"""The cases that every implementation of the filter language must pass: `cases.json`, over the golden captures."""

import functools
import json
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.errors import FilterError
from mcpspy.filters import KEYS, parse
from mcpspy.timeline import final_rows
from tests.each import each
from tests.timelines import CAPTURES
from tests.zones import zone

CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))
STARTED = "2026-11-20T19:15:00.123456Z"
"""The start of the capture for the cases with a mistake."""


@functools.cache
def read(name):
    """Return the start and the rows of a golden capture."""
    capture = Capture(str(CAPTURES / name))
    return capture.header.started, list(final_rows(capture.records, live=False))


@each("case", [case for case in CASES if "rows" in case])
def test_a_filter_selects_these_rows(case):
    started, rows = read(case["capture"])
    with zone(case.get("zone", "UTC")):
        wanted = parse(case["filter"], started)
    assert [row.n for row in filter(wanted, rows)] == case["rows"]


@each("case", [case for case in CASES if "error" in case])
def test_a_mistake_is_told_like_this(case):
    with pytest.raises(FilterError) as error:
        parse(case["filter"], STARTED)
    assert (str(error.value), error.value.column) == (case["error"], case["column"])


def test_the_cases_hold_every_key_and_both_outcomes():
    for key in KEYS:
        asked = [case for case in CASES if f"{key}:" in case["filter"]]
        assert any(case.get("rows") for case in asked) or key == "session", key
    assert sum(bool(case.get("rows")) for case in CASES) >= 120
    assert sum("error" in case for case in CASES) >= 40
