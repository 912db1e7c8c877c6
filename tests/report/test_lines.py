"""Rows and findings as lines; `tests/cli/test_show.py` tests the lines of a whole capture."""

import re

import pytest

from mcpspy.report.checked import check
from mcpspy.report.lines import finding_line, line, sentence
from mcpspy.text import columns
from mcpspy.timeline import Row
from tests.each import each
from tests.report.captures import hostile
from tests.transcript import records, rows

CALL = """
    > {"id":1,"method":"tools/call","params":{"name":"forecast","arguments":{"city":"東京都","days":3}}}
    < {"id":1,"result":{"content":[{"type":"text","text":"3 °C\\n\\u001b[2J %s"}]}}
"""


@each("width", [200, 160, 120, 100, 99, 80, 70, 60])
def test_a_preview_takes_the_columns_that_the_rest_leaves_and_no_more(width):
    asked, answered = rows(records(CALL % ("word " * 100)))
    assert columns(line(answered, width)) == width
    assert "tools/call forecast  3 °" in line(answered, max(width, 80))
    assert "\x1b" not in line(answered, width)
    assert "…" in line(answered, width)
    assert columns(line(asked, width)) <= width
    assert ' forecast  city="東京都" days=3' in line(asked, max(width, 80))
    assert "B" in line(answered, width)[-2:] if width >= 100 else "id 1" not in line(answered, width)


def test_the_http_status_of_an_error_leaves_the_other_columns_where_they_are():
    _, answered = rows(records(CALL % "x"))
    answered.http = {"status": 200}
    fine = line(answered, 100)
    answered.http = {"status": 400}
    assert " HTTP 400 id 1 " in line(answered, 100)
    assert line(answered, 100).partition(" id 1")[2] == fine.partition(" id 1")[2]


@pytest.mark.parametrize("width", [120, 80, 60])
@pytest.mark.parametrize("status", [200, 404])
def test_a_line_is_no_wider_than_the_terminal(status, width):
    row = Row(7, 5, "error", "server", method="tools/call", name="東京" * 40, status="tool-error", latency=2_000_000)
    row.value, row.http = {"error": {"code": -32602, "message": "no"}}, {"status": status}
    assert columns(line(row, width)) == width
    invalid = Row(7, 5, "invalid", "server", text="neither method nor result nor error " * 3, raw=b"{}" * 100)
    assert columns(line(invalid, width)) <= width


def test_a_long_name_is_shortened_in_the_middle():
    name = "_".join(["get_the_forecast_of_a_place_in_the_north"] * 2)
    asked, _ = rows(records(CALL.replace("forecast", f"{name}_today") % "x"))
    assert " tools/call get_the_forecast_of_a_place_i…_of_a_place_in_the_north_today  city=" in line(asked)
    assert columns(line(asked, 70)) <= 70
    assert "_today" in line(asked, 70)


def test_a_preview_has_colours_where_the_row_has_none():
    asked, _ = rows(records(CALL % "x"))
    shown = line(asked, colours=True)
    assert '\x1b[90mcity=\x1b[0m\x1b[32m"東京都"\x1b[0m' in shown
    assert re.sub(r"\x1b\[\d*m", "", shown) == line(asked)


def test_what_is_said_besides_stands_at_the_end_within_the_width():
    _, answered = rows(records(CALL % ("word " * 100)))
    assert line(answered, 120, extra="  gate slow").endswith(" B  gate slow")
    assert columns(line(answered, 120, extra="  gate slow")) == 120


def test_no_text_of_a_peer_reaches_a_line_as_it_is(tmp_path):
    """F-08."""
    for finding in check(hostile(tmp_path / "a")).findings:
        assert finding_line(finding).replace("\ufffe", "").isprintable()
        assert sentence(finding).replace("\ufffe", "").isprintable()
