import os

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.exporters.source import ExportSource
from tests.transcript import capture


@pytest.fixture
def path(tmp_path):
    return capture(str(tmp_path / "made.jsonl"), "@1 > 1 ping\n@2 < 1 = {}")


def test_rows_are_final_and_the_time_of_the_last_record_is_known_before_the_first(path):
    source = ExportSource(Capture(path))
    rows = source.rows()
    assert next(rows).status == "ok"
    assert source.last == 10_000_000_000


def test_every_byte_is_counted_each_time_that_it_is_read(path):
    counts = []
    source = ExportSource(Capture(path), read=counts.append)
    list(source.rows())
    assert sum(counts) == 2 * os.path.getsize(path)


def test_a_filter_decides_on_rows(path):
    rows = list(ExportSource(Capture(path)).rows())
    assert all(map(ExportSource(Capture(path)).wanted, rows))
    source = ExportSource(Capture(path), lambda row: row.kind == "result")
    assert [row.n for row in filter(source.wanted, rows)] == [6]


def test_its_name_is_that_of_the_file(path):
    assert ExportSource(Capture(path)).name == "made"
