"""Each request with its response: in one session, in a batch, and in several sessions."""

import time
from contextlib import closing

import pytest

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.model.calls import Calls
from mcpspy.tui.model.merged import Merged
from mcpspy.tui.model.sorting import SORTS
from tests.browse.test_timeline import grow
from tests.each import each
from tests.limits import LIMIT
from tests.timelines import GOLDEN
from tests.transcript import begin, finish
from tests.tui.model import test_merged

CALL = '{"id":%d,"method":"tools/call","params":{"name":"%s","arguments":{"n":%d},"_meta":{"progressToken":"p%d"}}}'


def test_a_batch_that_is_too_large_to_be_decoded_is_shown_as_one(tmp_path):
    batch = f'[{CALL % (1, "a", 5, 1)},{{"id":2,"method":"{"x" * (3 << 20)}"}}]'.encode()
    writer = begin(tmp_path / "a.jsonl")
    for at in range(0, len(batch), 1 << 16):
        writer.frame(1, 10**9, batch[at : at + (1 << 16)], more=at + (1 << 16) < len(batch), cut=False)
    finish(writer)
    with closing(grow(OpenCapture(str(tmp_path / "a.jsonl")))) as session:
        assert [Calls(session).at(place).request.kind for place in range(2)] == ["batch", "batch"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_request_of_a_golden_capture_is_a_call(path):
    with closing(grow(OpenCapture(str(path)))) as session:
        calls = Calls(session)
        rows = [session.line(place) for place in range(len(session))]
        requests = [row.n for row in rows if row.kind == "request"]
        found = [calls.at(place) for place in range(len(calls))]
        assert sorted(call.request.n for call in found) == sorted(requests)
        for call in found:
            partner = session.partner(session.index.row_of(call.request.n))
            assert (call.response.n if call.response else None) == (
                None if partner is None else session.index.rows[partner]
            )


def test_the_calls_of_a_merge_stand_in_the_order_of_their_requests(tmp_path):
    one = test_merged.capture(tmp_path / "one.jsonl", 0, "@1 > 1 ping\n@2 < 1 = {}\n@3 > 2 ping\n@3.5 < 2 = {}")
    two = test_merged.capture(tmp_path / "two.jsonl", 0.5, "@1 > 1 tools/list\n@4 < 1 = {}")
    with closing(test_merged.grown(Merged([OpenCapture(str(path)) for path in (one, two)]))) as merged:
        calls = Calls(merged)
        assert len(calls) == 0
        assert not calls.grow(1.0)
        found = [calls.at(place) for place in range(3)]
        assert [(call.request.source.name, call.request.source.n, call.request.t / 1e9) for call in found] == [
            ("one", 5, 1),
            ("two", 5, 1.5),
            ("one", 7, 3),
        ]
        assert [call.response.t / 1e9 for call in found] == [2, 4.5, 3.5]
        assert [merged.index.source(call.request.n)[1] for call in found] == [5, 5, 7]


def test_the_calls_of_a_merge_are_placed_in_slices(tmp_path):
    text = "\n".join(f"> {n} ping\n< {n} = {{}}" for n in range(200))
    paths = [test_merged.capture(tmp_path / f"{n}.jsonl", n, text) for n in range(2)]
    with closing(test_merged.grown(Merged([OpenCapture(str(path)) for path in paths]))) as merged:
        calls, slices, deadline = Calls(merged), 0, time.monotonic() + LIMIT
        while calls.grow(0.0):
            slices += 1
            assert time.monotonic() < deadline
        assert (len(calls), slices > 1) == (400, True)
        numbers = [calls.at(place).request.n for place in range(400)]
        assert numbers == sorted(numbers)


VALUES = {
    "time": lambda call: 0,
    "latency": lambda call: call.request.latency,
    "size": lambda call: call.response.size if call.response else None,
    "status": lambda call: (call.request.failed, call.request.status),
    "name": lambda call: call.request.name or call.request.method or "",
}


def check_orders(shown):
    """Check the order of the calls by each column."""
    calls = Calls(shown)
    while calls.grow(1.0):
        pass
    assert len(calls)
    for column in SORTS["calls"][1:]:
        values = [VALUES[column.name](calls.at(place)) for place in calls.order(column)]
        known = [value for value in values if value is not None]
        assert known == sorted(known, reverse=column.falling), column.name
        assert values == known + [None] * (len(values) - len(known))
        assert sorted(calls.order(column)) == list(range(len(calls)))


@each("path", GOLDEN)
def test_the_calls_of_golden_captures_are_sorted_by_each_column_and_those_without_a_value_are_last(path):
    with closing(grow(OpenCapture(str(path)))) as session:
        check_orders(session)


def test_the_calls_of_a_merge_are_sorted_by_each_column(tmp_path):
    no = '{"id":1,"error":{"code":-1,"message":"no"}}'
    texts = ("@1 > 1 tools/list\n@2 < 1 = {}\n@3 > 2 ping", f"@1.5 > 1 b\n@1.6 < {no}\n@4 > 2 a\n@4.1 < 2 = {{}}")
    paths = [test_merged.capture(tmp_path / f"{n}.jsonl", n, text) for n, text in enumerate(texts)]
    with closing(test_merged.grown(Merged([OpenCapture(str(path)) for path in paths]))) as merged:
        check_orders(merged)
