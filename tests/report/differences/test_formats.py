import json
import xml.etree.ElementTree as ET

import pytest

from mcpspy.replay.compare.sessions import Compared
from mcpspy.replay.compare.values import Difference
from mcpspy.report.differences import FORMATS
from tests.report.captures import HOSTILE


@pytest.mark.parametrize("name", FORMATS)
def test_what_peers_say_breaks_no_report(name):
    difference = Difference((HOSTILE,), HOSTILE, {HOSTILE: [HOSTILE]})
    report = FORMATS[name](HOSTILE, [Compared(5, HOSTILE, HOSTILE, "changed", (difference,), HOSTILE)])
    assert "\x1b" not in report
    assert report.encode()
    if name == "junit":
        ET.fromstring(report)  # noqa: S314 (our own)
    elif name == "json":
        assert json.loads(report)["exchanges"][0]["method"] == HOSTILE
    else:
        assert len(report.splitlines()) == (5 if name == "text" else 1)
