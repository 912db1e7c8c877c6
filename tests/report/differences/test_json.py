import json

from mcpspy.report.differences.json import as_json
from tests.report.differences import ALL


def test_programs_read_everything():
    report = json.loads(as_json("c.jsonl", ALL))
    assert [it["outcome"] for it in report["exchanges"]] == ["same", "skipped", "changed", "missing", "extra"]
    assert report["exchanges"][2]["differences"] == [{"pointer": "/result/a~1b/0", "recorded": 1, "observed": "x"}]
    assert report["exchanges"][3]["differences"] == [{"pointer": "", "recorded": {"result": {}}}]
    assert report["exchanges"][3]["reason"] == "no answer within 10 s"
    assert report["totals"] == {"same": 1, "changed": 1, "error-changed": 0, "missing": 1, "extra": 1, "skipped": 1}
