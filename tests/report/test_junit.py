import xml.etree.ElementTree as ET

from mcpspy.report.junit import Case, document
from tests.report.captures import HOSTILE


def parsed(*suites):
    return ET.fromstring(document("mcpspy", suites))  # noqa: S314 (our own)


CASES = [Case("fine"), Case("noted", "system-out", lines=["a", "b"]), Case("left out", "skipped", "why")]
FAILED = Case("wrong", "failure", "it is not", "changed", ["recorded 1", "observed 2"])


def test_cases_are_counted_in_their_suite_and_in_all():
    root = parsed(("a.jsonl", CASES), ("b.jsonl", [FAILED, FAILED]))
    assert root.attrib == {"name": "mcpspy", "tests": "5", "failures": "2", "errors": "0", "skipped": "1"}
    assert [(it.get("name"), it.get("tests"), it.get("failures"), it.get("skipped")) for it in root] == [
        ("a.jsonl", "3", "0", "1"),
        ("b.jsonl", "2", "2", "0"),
    ]


def test_a_case_says_how_it_went():
    fine, noted, left_out, wrong = parsed(("a.jsonl", [*CASES, FAILED]))[0]
    assert (fine.attrib, len(fine)) == ({"name": "fine", "classname": "a.jsonl"}, 0)
    assert (noted[0].tag, noted[0].attrib, noted[0].text) == ("system-out", {}, "a\nb")
    assert (left_out[0].tag, left_out[0].get("message")) == ("skipped", "why")
    assert (wrong[0].tag, wrong[0].attrib) == ("failure", {"message": "it is not", "type": "changed"})
    assert wrong[0].text == "recorded 1\nobserved 2"


def test_whatever_peers_say_the_report_is_xml():
    case = Case(HOSTILE, "failure", HOSTILE, HOSTILE, [HOSTILE, "\ufffe\x00]]>"])
    assert len(parsed((HOSTILE, [case])).findall(".//failure")) == 1
