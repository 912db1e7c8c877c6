"""The captures of real sessions stay readable, fold into their stored timelines, and reveal nothing of the machine."""

import difflib
import os
import re
from collections import Counter

import pytest

from mcpspy.capture.format import FORMAT
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, Open
from mcpspy.conversation.model import ENDLESS
from mcpspy.spec.revisions import Revision
from mcpspy.timeline import final_rows, to_json
from tests.timelines import CAPTURES, stored, timeline

PATHS = sorted(CAPTURES.glob("*.jsonl"))
WEBS = [path for path in PATHS if Capture(str(path)).header.transport == "http"]
EACH = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
EACH_WEB = pytest.mark.parametrize("path", WEBS, ids=lambda path: path.stem)

METHODS = """
    initialize notifications/initialized server/discover ping tools/list tools/call notifications/tools/list_changed
    resources/list resources/templates/list resources/read resources/subscribe resources/unsubscribe
    notifications/resources/updated prompts/list prompts/get completion/complete logging/setLevel notifications/message
    sampling/createMessage roots/list notifications/roots/list_changed elicitation/create
    notifications/elicitation/complete notifications/progress notifications/cancelled
    subscriptions/listen notifications/subscriptions/acknowledged
    tasks/result tasks/get tasks/list tasks/cancel notifications/tasks/status
"""
# An absolute path in a frame or in a text that a frame quotes. A name between slashes is not a path.
ABSOLUTE = re.compile(r"(?:(?<=[\s\"'`(=,])|(?<=file://))/\w[\w.+-]*(?:/[\w.+@-]+)+")
ADDRESS = re.compile(r"\b\d+\.\d+\.\d+\.\d+\b")
HOST = re.compile(r"127\.0\.0\.1:\d+")
AGENT = re.compile(r"python-httpx2?/[\d.]+|node")
NOWHERE = ("/tmp/mcp-golden", "/srv/peer", "/srv/project")  # noqa: S108 (paths that the captures may name)


def rows(path):
    return list(final_rows(Capture(str(path)).records, live=False))


def records(path, kind):
    return [record for record in Capture(str(path)).records() if isinstance(record, kind)]


def opened_in(path):
    return records(path, Open)


def test_there_is_a_capture_of_every_format_number():
    numbers = {int(path.read_text().partition(",")[0].partition(":")[2]) for path in PATHS}
    assert numbers == set(range(1, FORMAT + 1))


def test_the_captures_hold_every_feature_and_every_revision():
    found = [row for path in PATHS for row in rows(path)]
    assert set(METHODS.split()) - {row.method for row in found} == set()
    assert {revision.value for revision in Revision} == {row.revision for row in found} - {None}
    assert {"ok", "error", "tool-error", "cancelled"} == {row.status for row in found} - {None}
    assert {"stderr", "invalid", "http", "event"} < {row.kind for row in found}
    assert any(b'"input_required"' in row.raw for row in found)
    assert any(b'"inputResponses"' in row.raw for row in found)


def test_the_captures_hold_what_http_has_and_pipes_have_not():
    opens, raws = (
        [opened for path in WEBS for opened in opened_in(path)],
        [row.raw for path in WEBS for row in rows(path)],
    )
    assert {"GET", "POST", "DELETE"} == {opened.head["method"] for opened in opens if opened.role == "request"}
    assert {200, 202, 400} <= {opened.head["status"] for opened in opens if opened.role == "response"}
    assert {"sse", "body"} == {opened.framing for opened in opens}
    names = {name.lower() for opened in opens for name, _ in opened.head["headers"]}
    assert {"mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"} <= names
    assert all(any(raw.startswith(field) for raw in raws) for field in (b"id: ", b"event: endpoint\r\n", b": ping"))
    assert {"eof", "abort"} == {record.how for path in WEBS for record in records(path, Close)}


@EACH
def test_a_capture_folds_into_its_stored_timeline(path):
    """After a change of the fold or of previews, run it with MCPSPY_RENEW=1 and review the difference."""
    after = timeline(path)
    if os.environ.get("MCPSPY_RENEW"):
        stored(path).write_text(after, encoding="utf-8")
    before = stored(path).read_text(encoding="utf-8")
    difference = difflib.unified_diff(before.splitlines(), after.splitlines(), "stored", "folded", n=1, lineterm="")
    assert before == after, "\n".join(difference)


def test_no_timeline_is_left_of_a_capture_that_is_gone():
    assert {file.stem for file in stored(PATHS[0]).parent.glob("*.txt")} == {path.stem for path in PATHS}


@EACH
def test_every_request_of_a_real_session_has_its_answer(path):
    """Exceptions are cancelled requests, a subscription, and errors about a message that could not be parsed."""
    header, found = Capture(str(path)).header, rows(path)
    kinds = Counter(row.kind for row in found)
    unread = [row for row in found if row.kind == "error" and row.id.kind == "null"]
    assert kinds["request"] >= 3
    assert (kinds["gap"], kinds["end"]) == (0, 1)
    assert kinds["invalid"] == len(unread)
    for row in found:
        assert to_json(row, header)
        if row.kind == "request":
            assert row.response or row.status == "cancelled" or row.method == ENDLESS
            assert row.response is None or row.latency >= 0
        elif row.kind in ("result", "error") and row not in unread:
            assert row.request


@EACH
def test_a_session_has_one_revision_the_one_in_the_name(path):
    """The exception is a `server/discover` that was refused, which is a probe."""
    requests = [row for row in rows(path) if row.kind == "request"]
    (revision,) = {row.revision for row in requests if (row.method, row.status) != ("server/discover", "error")}
    assert Revision.of(path.stem[-10:]) in (None, Revision(revision))


@EACH
def test_a_capture_is_small_and_tells_nothing_of_the_machine(path):
    capture, text = Capture(str(path)), path.read_text(encoding="utf-8")
    assert len(text) < 200_000
    assert capture.header.env == (() if path in WEBS else ("HOME", "PATH"))
    assert set(ADDRESS.findall(text)) <= {"127.0.0.1"}
    spoken = "\n".join([*capture.header.argv, *(row.raw.decode() for row in rows(path))]).replace("\\n", "\n")
    assert [found for found in ABSOLUTE.findall(f"{text}\n{spoken}") if not found.startswith(NOWHERE)] == []
    assert "username:password" not in text


@EACH_WEB
def test_a_capture_over_http_knows_no_host_but_the_loopback_and_no_program_but_the_peers(path):
    header = Capture(str(path)).header
    assert re.fullmatch(rf"http://{HOST.pattern}/(mcp|sse)", header.url)
    assert (header.argv, header.cwd) == ((), None)
    requests = [opened for opened in opened_in(path) if opened.role == "request"]
    assert all(HOST.fullmatch(opened.peer) for opened in requests)
    for opened in requests:
        heads = {name.lower(): value for name, value in opened.head["headers"]}
        assert HOST.fullmatch(heads["host"])
        assert AGENT.fullmatch(heads.get("user-agent", "node"))
        sent = {name.lower(): value for name, value in opened.sent["headers"]}
        assert HOST.fullmatch(sent.pop("host"))
        assert set(sent) <= {"accept-encoding"}


@EACH_WEB
def test_every_channel_over_http_has_its_end_and_every_response_its_request(path):
    opens = {opened.ch: opened for opened in opened_in(path)}
    assert sorted(opens) == sorted(closed.ch for closed in records(path, Close))
    answered = [opened.answers for opened in opens.values() if opened.role == "response"]
    assert sorted(answered) == sorted(opened.ch for opened in opens.values() if opened.role == "request")


def test_the_password_of_a_recorded_command_line_is_redacted():
    argv = Capture(str(CAPTURES / "field-stdio.jsonl")).header.argv
    assert argv[:4] == ("cmd", "/c", "npx", "-y")
    assert re.fullmatch(r"mysql://username:«redacted:[0-9a-f]{8}»@localhost:3306/database", argv[-1])
