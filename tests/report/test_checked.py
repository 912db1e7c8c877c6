"""The findings in a capture, and how much of the capture was checked."""

import gc

import pytest

from benchmarks.check.traffic import write
from mcpspy.errors import CaptureError
from mcpspy.report.checked import THRESHOLDS, check, reaches, totals
from mcpspy.spec.revisions import Revision
from tests.report.captures import FAULTY, faulty, fine
from tests.transcript import begin, finish, record

UNANSWERED = '> {"jsonrpc":"2.0","id":5,"method":"ping"}'


def test_a_capture_is_checked_from_its_file(tmp_path):
    checked = check(faulty(tmp_path / "a"))
    assert (checked.path, checked.frames, checked.revisions) == (str(tmp_path / "a"), 9, ("2025-06-18",))
    assert [(finding.frame, finding.rule) for finding in checked.findings] == [
        (10, "tools/arguments"),
        (11, "schema/invalid"),
        (12, "schema/unknown-method"),
        (13, "jsonrpc/extra-member"),
    ]
    assert totals([checked, checked]) == {"error": 4, "warning": 2, "info": 2}


def test_a_finding_in_a_response_names_its_request(tmp_path):
    by_rule = {finding.rule: finding for finding in check(faulty(tmp_path / "a")).findings}
    assert by_rule["schema/invalid"].related == (10,)
    assert by_rule["tools/arguments"].related == (9,)


def test_findings_stand_in_the_order_of_frames_although_some_come_late(tmp_path):
    text = FAULTY.replace('"id":1,"result":{"tools"', '"method":"a","params":{"b"')  # #8 is unanswered at the end
    frames = [finding.frame for finding in check(str(faulty_with(tmp_path / "a", text))).findings]
    assert frames == sorted(frames)
    assert 8 in frames


def faulty_with(path, text):
    writer = begin(path)
    record(writer, text)
    finish(writer, 10**10)
    return path


def test_of_a_live_capture_nothing_is_called_missing(tmp_path):
    writer = begin(tmp_path / "a")
    record(writer, UNANSWERED)
    assert check(str(tmp_path / "a")).findings == ()
    finish(writer)
    assert [finding.rule for finding in check(str(tmp_path / "a")).findings] == ["pairing/unanswered"]


def test_a_capture_is_judged_by_another_revision(tmp_path):
    checked = check(faulty(tmp_path / "a"), Revision.R2026_07_28)
    assert checked.revisions == ("2026-07-28",)
    rules = {(finding.frame, finding.rule) for finding in checked.findings}
    assert {(5, "schema/method-not-in-revision"), (7, "schema/method-not-in-revision")} <= rules
    assert {(8, "lifecycle/meta-missing"), (9, "schema/invalid")} <= rules
    assert {finding.revision for finding in checked.findings} == {"2026-07-28"}


def test_rules_can_be_left_out(tmp_path):
    checked = check(faulty(tmp_path / "a")).without(["schema/invalid", "tools/arguments"])
    assert totals([checked]) == {"error": 0, "warning": 1, "info": 1}


def test_a_capture_without_a_fault_has_no_finding(tmp_path):
    assert check(fine(tmp_path / "a")).findings == ()


def test_what_is_no_capture_is_refused(tmp_path):
    with pytest.raises(CaptureError):
        check(str(tmp_path / "a"))


@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_finding_reaches_the_threshold_of_its_severity_and_those_below(threshold):
    reached = [severity for severity in ("error", "warning", "info") if reaches(severity, threshold)]
    expected = {"error": 1, "warning": 2, "info": 3, "never": 0}[threshold]
    assert reached == ["error", "warning", "info"][:expected]


def test_what_was_answered_is_freed_at_once_and_not_left_to_the_garbage_collector(tmp_path):
    few, many = str(tmp_path / "few"), str(tmp_path / "many")
    write(few, 20_000)  # more than the bounded memory holds
    write(many, 24_000)
    check(many)  # fill the caches first
    gc.collect()
    gc.disable()
    try:
        left = []
        for path in (few, many):
            check(path)
            left.append(gc.collect())
    finally:
        gc.enable()
    assert abs(left[1] - left[0]) < 2_000  # `many` has 2,000 more exchanges
