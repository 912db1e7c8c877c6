"""Rows and findings as lines; the lines of a whole capture are tested in `tests/cli/test_show.py`."""

from mcpspy.report.checked import check
from mcpspy.report.lines import finding_line, line, sentence
from mcpspy.timeline import Row, rows
from tests.report.captures import faulty, hostile
from tests.transcript import records


def test_a_row_is_one_line_of_number_time_direction_and_subject():
    (row,) = rows(records('> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo"}}'))
    assert line(row).split()[2:] == ["→", "tools/call", "echo", "id", "1"]
    assert line(Row(7, 1_500_000_000, "gap", "mcpspy", text="1 lost: no space")) == (
        "#7         1.500 · gap: 1 lost: no space"
    )


def test_a_finding_is_one_line_with_its_rule(tmp_path):
    finding = check(faulty(tmp_path / "a")).findings[1]
    assert finding_line(finding).strip().startswith("✗ #11 server: CallToolResult: expected an array")
    assert finding_line(finding).endswith("(/result/content)  [schema/invalid]")
    assert sentence(finding).startswith("server: CallToolResult: expected an array")


def test_no_text_of_a_peer_reaches_a_line_as_it_is(tmp_path):
    """F-08."""
    for finding in check(hostile(tmp_path / "a")).findings:
        assert finding_line(finding).replace("\ufffe", "").isprintable()
        assert sentence(finding).replace("\ufffe", "").isprintable()
