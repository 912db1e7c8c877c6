"""The capture that `replay --update` writes: only what differs has new lines."""

import difflib
import gzip
import json
import re
import sys
from pathlib import Path

import pytest

from mcpspy.replay.issued_values import reissued
from mcpspy.replay.run import Replayed, replay
from mcpspy.replay.script import load, script_of
from mcpspy.replay.sessions import pair
from mcpspy.replay.tolerance import NO_RULES, Rules, Tolerance
from mcpspy.replay.update import update
from mcpspy.transport.link import Link
from tests.each import each
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result
from tests.timelines import CAPTURES
from tests.transcript import capture

HANDSHAKE = f"> {INITIALIZE}\n< {INITIALIZED}\n"
SERVER = """
import json, sys
answers = json.load(open(sys.argv[1], encoding="utf-8"))
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request or "method" not in request:
        continue
    for answer in answers.get(str(request["id"]), []):
        print(answer, flush=True)
"""


@pytest.fixture(autouse=True)
def _fast(monkeypatch):
    monkeypatch.setattr("mcpspy.replay.run.LEAST", 2)
    monkeypatch.setattr("mcpspy.replay.run.GRACE", 0.2)
    monkeypatch.setattr("mcpspy.transport.link.PATIENCE", 0.5)


def updated(tmp_path, recorded, answers, rules=NO_RULES, name="c.jsonl"):
    """Replay against a server with these answers, update; return whether lines were kept, and which lines differ."""
    path = capture(tmp_path / "c.jsonl", HANDSHAKE + recorded)
    before = Path(path).read_text(encoding="utf-8")
    if name != "c.jsonl":
        path = str(tmp_path / name)
        Path(path).write_bytes(gzip.compress(before.encode()))
    said = {"1": [INITIALIZED]} | {str(number): lines for number, lines in answers.items()}
    (tmp_path / "answers.json").write_text(json.dumps(said), encoding="utf-8")
    command = [sys.executable, "-c", SERVER, str(tmp_path / "answers.json")]
    script = load(path, print)

    def connect(new):
        return Link(command, "server", new, print, script.size)

    replayed = replay(script, connect, str(tmp_path / "new.jsonl"), read_only=False)
    kept = update(replayed, replayed.compared(rules), rules, path)
    raw = Path(path).read_bytes()
    after = (gzip.decompress(raw) if name != "c.jsonl" else raw).decode()
    changes = difflib.ndiff(before.splitlines(), after.splitlines())
    return kept, [line for line in changes if line[0] in "+-"]


def raw(line):
    """Return the sign, the time and the frame of a changed line."""
    record = json.loads(line[2:])
    return line[0], record["t"], record["raw"]


@each("name", ["c.jsonl", "c.jsonl.gz"])
def test_a_changed_answer_is_one_changed_line_with_the_time_of_before(tmp_path, name):
    recorded = f"> {call(2, 'a')}\n< {result(2, 'A')}\n! stderr\n> {call(3, 'b')}\n< {result(3, 'B')}"
    kept, changes = updated(tmp_path, recorded, {2: [result(2, "A")], 3: [result(3, "Ü")]}, name=name)
    (_, t, _), new = map(raw, changes)
    assert (kept, new) == (True, ("+", t, result(3, "Ü")))


def test_an_answer_that_differs_where_that_is_allowed_keeps_its_line(tmp_path):
    recorded = f"> {call(2, 'a')}\n< {result(2, 'at 1')}\n> {call(3, 'b')}\n< {result(3, 'B')}"
    rules = Rules((Tolerance.parse("matches", "/result/content/0/text", "^at [0-9]$|^B|^C"),))
    other = Rules((Tolerance.parse("matches", "tools/call a /result/content/0/text", "^at [0-9]$"),))
    assert updated(tmp_path, recorded, {2: [result(2, "at 2")], 3: [result(3, "C")]}, rules) == (True, [])
    kept, changes = updated(tmp_path, recorded, {2: [result(2, "at 2")], 3: [result(3, "C")]}, other)
    assert (kept, [raw(line)[2] for line in changes]) == (True, [result(3, "B"), result(3, "C")])


def test_a_cursor_that_is_issued_again_stays_as_the_client_returned_it(tmp_path):
    recorded = """
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[],"nextCursor":"old"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"old"}}
        < {"jsonrpc":"2.0","id":3,"result":{"tools":[]}}
    """
    answers = {
        2: ['{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"x","inputSchema":{}}],"nextCursor":"new"}}'],
        3: ['{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}'],
    }
    kept, changes = updated(tmp_path, recorded, answers)
    assert (kept, [raw(line)[2] for line in changes][1:]) == (True, [answers[2][0].replace("new", "old")])


def test_messages_of_the_server_come_and_go(tmp_path):
    told = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    progress = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":%d}}'
    asking = '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":"p"}}}'
    recorded = f"> {asking}\n< {progress % 1}\n< {result(2, 'A')}"
    kept, changes = updated(tmp_path, recorded, {2: [progress % 1, progress % 2, result(2, "A"), told]})
    assert (kept, [raw(line)[::2] for line in changes]) == (True, [("+", progress % 2), ("+", told)])
    kept, changes = updated(tmp_path, f"{recorded}\n< {told}", {2: [progress % 3, result(2, "A")]})
    signs = [raw(line)[::2] for line in changes]
    assert (kept, signs) == (True, [("-", progress % 1), ("+", progress % 3), ("-", told)])


def test_a_request_of_the_server_keeps_the_id_that_the_client_answered(tmp_path):
    def ask(number, text):
        params = f'{{"message":"{text}","requestedSchema":{{}}}}'
        return f'{{"jsonrpc":"2.0","id":{number},"method":"elicitation/create","params":{params}}}'

    answer = '{"jsonrpc":"2.0","id":7,"result":{"action":"decline"}}'
    recorded = f"> {call(2, 'a')}\n< {ask(7, 'old')}\n> {answer}\n< {result(2, 'A')}"
    kept, changes = updated(tmp_path, recorded, {2: [ask(9, "new"), result(2, "A")]})
    assert (kept, [raw(line)[2] for line in changes]) == (True, [ask(7, "old"), ask(7, "new")])


@each("size", [10, 70_000, 200_000])
def test_a_long_answer_is_in_pieces_again(tmp_path, size):
    long = "ä€" * (size // 5)
    recorded = f"> {call(2, 'a')}\n< {result(2, 'A')}\n> {call(3, 'b')}\n< {result(3, 'B')}"
    kept, _ = updated(tmp_path, recorded, {2: [result(2, long)], 3: [result(3, "B")]})
    script = load(str(tmp_path / "c.jsonl"), print)
    assert kept
    assert [turn.response.frame.raw.decode() for turn in script.turns[1:]] == [result(2, long), result(3, "B")]
    lines = (tmp_path / "c.jsonl").read_bytes().splitlines()
    assert max(map(len, lines)) < 140_000


def test_what_does_not_fit_into_the_file_replaces_all_of_it(tmp_path):
    asked = '{"jsonrpc":"2.0","id":7,"method":"roots/list"}'
    recorded = f"> {call(2, 'a')}\n< {result(2, 'A')}"
    kept, changes = updated(tmp_path, recorded, {2: [asked, result(2, "A")]})
    assert (kept, any(asked in line for line in map(json.dumps, changes))) == (False, False)
    assert asked in [message.frame.raw.decode() for message in load(str(tmp_path / "c.jsonl"), print).messages]


def test_values_that_are_issued_again_have_their_place():
    recorded = {"result": {"tasks": [{"taskId": "a"}, {"taskId": "b"}], "nextCursor": "c"}}
    observed = {"result": {"tasks": [{"taskId": "a"}, {"taskId": "x"}], "nextCursor": "y"}}
    assert reissued(recorded, observed) == {("result", "tasks", 1, "taskId"): "b", ("result", "nextCursor"): "c"}
    assert reissued(recorded, {}) == {}


def changed(tmp_path, name, before, after):
    """Update a capture of this repository to one in which a text is another; return the changed lines."""
    text = (CAPTURES / f"{name}.jsonl").read_text(encoding="utf-8")
    old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
    old.write_text(text, encoding="utf-8")
    new.write_text(text.replace(before, after), encoding="utf-8")
    recorded, observed = (script_of(str(path)) for path in (old, new))
    replayed = Replayed(recorded, observed, str(new), pair(recorded, observed), {}, ())
    kept = update(replayed, replayed.compared(NO_RULES), NO_RULES, str(old))
    lines = difflib.ndiff(text.splitlines(), old.read_text(encoding="utf-8").splitlines())
    return kept, [line for line in lines if line[0] in "+-"]


@each(
    "name, before, after, lines",
    [
        ("http-everything-2025-11-25", "Echo: hello", "Echo: good day", 1),  # an event
        ("http-python1-2025-11-25", "failed as asked", "failed", 1),
        ("sse-python1-2024-11-05", "failed as asked", "failed", 1),
        ("http-python2-2026-07-28", "failed as asked", "failed", 2),  # a body of JSON, whose length is in its head
    ],
)
def test_over_http_an_event_keeps_its_other_fields_and_a_head_gets_the_length(tmp_path, name, before, after, lines):
    kept, changes = changed(tmp_path, name, before, after)
    old, new = ([line[2:] for line in changes if line[0] == sign] for sign in "-+")
    assert (kept, len(old), len(new)) == (True, lines, lines)
    assert new[-1] == old[-1].replace(before, after)
    if lines > 1:
        size = str(len(json.loads(new[-1])["raw"].encode()))
        assert new[0] == re.sub('(?<="content-length",")[0-9]+', size, old[0])
    script = load(str(tmp_path / "old.jsonl"), print)
    assert any(after in json.dumps(it.body.value) for it in script.messages)
