"""Filtering many rows at once by their columns gives the same result as filtering each row."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.reader import Capture
from mcpspy.filters import BlockFilter, Gathered, LineBlock, parse
from mcpspy.timeline import final_rows
from tests.browse.test_columns import GATHERED, folded
from tests.timelines import CAPTURES

STARTED = "2026-01-01T00:00:00.000000Z"
TERMS = (
    "method:tools/*",
    "name:*e*",
    "from:server",
    "kind:request,stderr",
    "status:ok,pending",
    "status:failed,refused",
    "revision:2025-*",
    "session:*",
    "latency:>1ms",
    "size:>200",
    "time:>0.5s",
)
UNKNOWN = ("id:2", "severity:error", "ping")
"""Terms that no column can decide."""


def column(**values):
    """Return a getter of columns; each number in a column is an index into the list of values."""

    def get(name):
        return Gathered(values[name][0], values[name][1].__getitem__) if name in values else None

    return get


@given(data=st.data())
def test_what_columns_tell_is_what_the_rows_tell(data):
    capture = Capture(str(data.draw(st.sampled_from(sorted(CAPTURES.glob("*.jsonl"))))))
    several = data.draw(st.lists(st.sampled_from(TERMS), min_size=1, max_size=3))
    text = data.draw(st.sampled_from((" ", " or "))).join(data.draw(st.sampled_from(("", "-"))) + it for it in several)
    wanted = parse(text, capture.header.started)
    rows = [row for row in final_rows(capture.records, live=False) if row.part == 0]
    columns, _ = folded(list(capture.records()))
    lines = [row.n for row in rows]
    found = BlockFilter(wanted).decide(lines, lambda name: Gathered(*columns.gather(name, lines)))
    decided = [(said, wanted(row)) for said, row in zip(found, rows, strict=True) if said is not None]
    assert decided
    assert all(said == meant for said, meant in decided)


def test_a_value_is_asked_about_once():
    asked = []

    def value(code):
        asked.append(code)
        return ("ping", "tools/list")[code]

    found = BlockFilter(parse("method:ping", STARTED)).decide(
        range(5), lambda name: Gathered([0, 1, 1, 0, None], value)
    )
    assert list(found) == [True, False, False, True, None]
    assert asked == [0, 1]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("method:ping needle", [None, False]),
        ("method:ping or needle", [True, None]),
        ("-method:ping", [False, True]),
        ("-(method:ping needle)", [None, True]),
        ("", [True, True]),
        *((text, [None, None]) for text in UNKNOWN),
    ],
)
def test_what_no_column_tells_is_left_open(text, told):
    get = column(method=([0, 1], ["ping", "tools/list"]))
    assert list(BlockFilter(parse(text, STARTED)).decide((1, 2), get)) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("needle", [True, False, False]),
        ("-needle", [False, True, True]),
        ("method:ping needle", [True, False, False]),
        ("method:tools/list or needle", [True, True, False]),
        ("-(method:ping needle) hay", [False, True, True]),
        ("text:needle,hay", [True, True, True]),
        ("id:2 hay", [False, None, None]),
    ],
)
def test_lines_tell_of_texts_and_columns_of_the_rest(text, told):
    get = column(method=([0, 1, 0], ["ping", "tools/list"]))
    lines = [b'{"kind":"frame","ch":1,"t":5,"raw":"%s"}\n' % raw for raw in (b"a needle", b"hay", b"\\u0068ay")]
    texts = [line.index(b'"raw":') + 6 for line in lines]
    block = LineBlock(1, b"".join(lines), [0, *accumulate(map(len, lines))], texts, exact=True)
    assert BlockFilter(parse(text, STARTED)).decide((1, 2, 3), get, block) == told


def test_only_texts_need_lines():
    assert BlockFilter(parse("method:x or -needle", STARTED)).reads_lines
    assert not BlockFilter(parse("method:x", STARTED)).reads_lines


def test_the_keys_of_columns_are_those_that_rows_have():
    assert {"sender", "t", *(term.partition(":")[0] for term in TERMS)} - {"from", "time"} == set(GATHERED)
