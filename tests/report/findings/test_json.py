import json

from tests.report.captures import faulty
from tests.report.findings import told


def test_json_is_what_the_design_says(tmp_path):
    """docs/json.md."""
    path = faulty(tmp_path / "a")
    text = told("json", path)
    assert text.count("\n") == 1
    found = json.loads(text)
    assert list(found) == ["captures", "totals"]
    assert found["totals"] == {"error": 2, "warning": 1, "info": 1}
    (capture,) = found["captures"]
    assert list(capture) == ["path", "frames", "revisions", "findings", "live"]
    assert (capture["path"], capture["frames"], capture["revisions"]) == (path, 9, ["2025-06-18"])
    assert capture["findings"][0] == {
        "rule": "tools/arguments",
        "severity": "error",
        "blame": "client",
        "frame": 10,
        "part": 0,
        "related": [9],
        "pointer": "/params/arguments",
        "message": 'arguments of echo violate its inputSchema: "text" is a required property',
        "revision": "2025-06-18",
        "spec": "https://modelcontextprotocol.io/specification/2025-06-18/server/tools#tool",
        "count": 1,
        "also": [],
    }
