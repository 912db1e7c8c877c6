import xml.etree.ElementTree as ET

import pytest

from tests.report.captures import faulty, fine
from tests.report.findings import told


def parsed(text):
    return ET.fromstring(text)  # noqa: S314 (it is our own)


def test_junit_has_a_suite_for_each_capture_and_a_failure_for_what_makes_the_check_fail(tmp_path):
    suites = parsed(told("junit", faulty(tmp_path / "a"), fine(tmp_path / "b")))
    assert suites.attrib == {"name": "mcpspy", "tests": "5", "failures": "2", "errors": "0", "skipped": "0"}
    first, second = suites
    assert first.attrib == {"name": str(tmp_path / "a"), "tests": "4", "failures": "2", "errors": "0", "skipped": "0"}
    assert [case.get("name") for case in first] == [
        "tools/arguments #10",
        "schema/invalid #11",
        "schema/unknown-method #12",
        "jsonrpc/extra-member #13",
    ]
    assert [case[0].tag for case in first] == ["failure", "failure", "system-out", "system-out"]
    assert first[0][0].get("type") == "tools/arguments"
    assert "line 10" in first[0][0].text
    assert [case.get("name") for case in second] == ["nothing found"]


@pytest.mark.parametrize(("fail_on", "failures"), [("never", 0), ("error", 2), ("warning", 3), ("info", 4)])
def test_junit_counts_as_failures_what_reaches_the_threshold(tmp_path, fail_on, failures):
    suites = parsed(told("junit", faulty(tmp_path / "a"), fail_on=fail_on))
    assert suites.get("failures") == str(failures) == str(len(suites.findall(".//failure")))
