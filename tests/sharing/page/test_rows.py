"""Rows as the scripts of the page get them."""

import orjson
import pytest

from mcpspy.capture.reader import Capture
from mcpspy.sharing.page.rows import page_row
from mcpspy.timeline import final_rows, to_json
from tests.timelines import GOLDEN
from tests.transcript import capture


def rows(path):
    """Yield each row as the page has it, together with the row of `show --json`."""
    read = Capture(str(path))
    for row in final_rows(read.records, live=False):
        yield orjson.loads(orjson.dumps(page_row(row, read.header))), orjson.loads(to_json(row, read.header))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_a_row_is_that_of_show_json_without_what_the_capture_has(path):
    for given, shown in rows(path):
        own = {name: given.pop(name) for name in ("preview", "text", "token") if name in given}
        message = {name: shown.pop(name) for name in ("message", "text", "tail") if name in shown}
        assert given == shown
        assert own.get("text") in (None, message.get("text"))


def test_an_id_that_javascript_would_write_otherwise_is_given_digit_for_digit(tmp_path):
    ids = ["1", "1.0", "1e3", "12345678901234567890", "null", '"1"', "-5", "0", "true"]
    path = capture(
        tmp_path / "a.jsonl", "\n".join(f'> {{"jsonrpc":"2.0","id":{each},"method":"ping"}}' for each in ids)
    )
    given = [row.get("token") for row, _ in rows(path)]
    assert given[: len(ids)] == [None, "1.0", "1e3", "12345678901234567890", "null", None, None, None, None]


def test_a_text_is_given_where_there_is_no_frame_and_else_a_short_one_to_show(tmp_path):
    path = capture(tmp_path / "a.jsonl", f"! {'x' * 1000}\n< |\n> = 2025-06-18\n< | no JSON")
    found = [(row["kind"], row.get("text"), len(row.get("preview", ""))) for row, _ in rows(path)]
    assert found[:2] == [("stderr", None, 300), ("invalid", "a blank line", 0)]
    assert ("end", "the server exited with code 0", 0) in found
