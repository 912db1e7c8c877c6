"""Every golden capture gives exactly its stored findings. A migration report names all that has to change."""

import difflib
import json
import re
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from mcpspy.report.checked import check
from mcpspy.spec.revisions import Revision
from tests import findings
from tests.findings import CAPTURES, MIGRATIONS, texts


def test_each_capture_has_its_stored_findings_and_none_are_left_of_one_that_is_gone():
    """After a change of the rules, run `scripts/write-rules` and review the difference."""
    found = {path.name: text for path, text in texts().items()}
    stored = {path.name: path.read_text(encoding="utf-8") for path in Path(findings.__file__).parent.glob("*.txt")}
    difference = []
    for name in sorted(found):
        before, after = stored.get(name, "").splitlines(), found[name].splitlines()
        difference += difflib.unified_diff(before, after, f"stored {name}", f"found {name}", n=0, lineterm="")
    assert not difference, "\n".join(difference)
    assert stored == found


DELIBERATE = {  # mistakes that the scenarios of tests/peers make on purpose
    ("tools/unknown-tool", 'the server lists no tool "missing"'),
    ("schema/unknown-method", 'no revision has the method "peer/unknown"'),
    ("tools/arguments", 'arguments of get-sum violate its inputSchema: "b" is a required property'),
}


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*-20*.jsonl")), ids=lambda path: path.stem)
def test_a_session_between_official_sdks_has_nothing_above_info_but_what_is_wrong_on_purpose(path):
    above = [finding for finding in check(str(path)).findings if finding.severity != "info"]
    assert above
    assert {(finding.rule, finding.message) for finding in above} <= DELIBERATE


def messages(name):
    for record in Capture(str(CAPTURES / f"{name}.jsonl")).records():
        if isinstance(record, Frame) and record.ch < 3:
            yield record.n, "client" if record.ch == 1 else "server", json.loads(record.raw)


@pytest.mark.parametrize("name", MIGRATIONS)
def test_a_migration_report_names_what_has_to_change(name):
    """It names each removed method, request without `_meta`, result without `resultType`, and server request."""
    found = {}
    for finding in check(str(CAPTURES / f"{name}.jsonl"), Revision.R2026_07_28).findings:
        found.setdefault(finding.frame, []).append(f"{finding.rule} {finding.message}")
    removed = {"initialize", "notifications/initialized", "ping", "logging/setLevel"}
    kept = {"tools/list", "tools/call", "resources/read", "prompts/get", "completion/complete"}
    rounds = {"sampling/createMessage", "elicitation/create", "roots/list"}
    methods, named = {}, set()
    for n, sender, message in messages(name):
        told = " ".join(found.get(n, ()))
        method = message.get("method")
        if sender == "client" and "id" in message:
            methods[message["id"]] = method
        if method in removed:
            assert f"{method} was removed after 2025-11-25" in told
        elif sender == "server" and method in rounds:
            assert f"the server sends {method} as a request; expected an `input_required` result" in told
        elif sender == "client" and method in kept:
            assert "lifecycle/meta-missing" in told
        elif sender == "server" and "result" in message and methods[message["id"]] in kept:
            method = "result"
            assert re.search(r'expected the members? "resultType"', told)
        named.add(method)
    expected = removed | rounds | kept | {"result"}
    assert named >= (expected if name.startswith("features") else {"initialize", "notifications/initialized", "result"})
