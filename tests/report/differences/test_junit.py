import xml.etree.ElementTree as ET

from mcpspy.report.differences.junit import as_junit
from tests.report.differences import ALL


def test_junit_has_a_case_for_each():
    suite = ET.fromstring(as_junit("c.jsonl", ALL))[0]  # noqa: S314 (our own)
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "3",
        "errors": "0",
        "skipped": "1",
    }
    assert [(case.get("name"), [child.tag for child in case]) for case in suite] == [
        ("initialize #5", []),
        ("tools/call write #7", ["skipped"]),
        ("tools/call read #9", ["failure"]),
        ("ping #11", ["failure"]),
        ("a line that is not a message", ["failure"]),
    ]
    assert "/result/a~1b/0" in suite[2][0].text
