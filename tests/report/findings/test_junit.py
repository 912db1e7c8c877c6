import xml.etree.ElementTree as ET

import pytest

from tests.report.captures import faulty
from tests.report.findings import told


def parsed(text):
    return ET.fromstring(text)  # noqa: S314 (it is our own)


@pytest.mark.parametrize(("fail_on", "failures"), [("never", 0), ("error", 2), ("warning", 3), ("info", 4)])
def test_junit_counts_as_failures_what_reaches_the_threshold(tmp_path, fail_on, failures):
    suites = parsed(told("junit", faulty(tmp_path / "a"), fail_on=fail_on))
    assert suites.get("failures") == str(failures) == str(len(suites.findall(".//failure")))
