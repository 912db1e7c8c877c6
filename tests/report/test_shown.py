"""What a report shows of a frame; `test_findings.py` tests the whole report."""

import pytest

from mcpspy.report.checked import check
from tests.report.captures import FAULTY, faulty
from tests.transcript import capture


def test_each_finding_has_the_line_of_its_frame_and_the_value_that_is_wrong(tmp_path):
    checked = check(faulty(tmp_path / "a"), show=True)
    assert [(it.line.split()[0], it.value) for it in checked.shown] == [
        ("#10", '{"words":"hello"}'),
        ("#11", '"hello"'),
        ("#12", '"tools/find"'),
        ("#13", '"x"'),
    ]


def test_nothing_is_kept_of_frames_that_nobody_shows(tmp_path):
    assert check(faulty(tmp_path / "a")).shown == ()


def test_what_is_found_late_is_shown_with_its_request_although_that_was_let_go_of(tmp_path):
    """A check that runs a second later may be about a request that was answered meanwhile."""
    text = (
        FAULTY
        + """
        @1 > {"jsonrpc":"2.0","id":20,"method":"tools/list","params":{"cursor":"nobody issued it"}}
        @1.1 < {"jsonrpc":"2.0","id":20,"result":{"tools":[]}}
        @9 > {"jsonrpc":"2.0","id":21,"method":"ping"}
        @9.1 < {"jsonrpc":"2.0","id":21,"result":{}}
    """
    )
    checked = check(capture(tmp_path / "a", text), show=True)
    (late,) = [it for finding, it in zip(checked.findings, checked.shown, strict=True) if "cursor" in finding.rule]
    assert "tools/list" in late.line
    assert late.value == '"nobody issued it"'


@pytest.mark.parametrize("number", [2**64 + 1, -(2**63) - 1])
def test_a_value_keeps_the_digits_of_its_integers(tmp_path, number):
    """R-05."""
    text = f'> {{"jsonrpc":"2.0","id":1,"method":"ping","extra":{{"a":[{number}]}}}}'
    shown = check(capture(tmp_path / "a", text), show=True).shown
    assert {it.value for it in shown} >= {str(number), f'{{"a":[{number}]}}'}


@pytest.mark.parametrize("length", [10, 1_000_000])
def test_the_texts_are_short_however_long_the_frame_is(tmp_path, length):
    text = f'> {{"jsonrpc":"2.0","id":1,"method":"ping","extra":"{"x" * length}"}}'
    (found, *_) = check(capture(tmp_path / "a", text), show=True).shown
    assert len(found.value) <= 160
    assert len(found.line) <= 200
