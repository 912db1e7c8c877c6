"""Chosen clients refuse exactly what `check --client` finds, no matter when they are chosen (P-01)."""

import json
from contextlib import closing

import pytest

from mcpspy.browse.client_limits import GROUP
from mcpspy.browse.timeline import OpenCapture
from mcpspy.report.checked import check
from mcpspy.spec.client_limits import CLIENTS
from tests.timelines import GOLDEN
from tests.transcript import begin, capture, finish, record

ALL = frozenset(CLIENTS)
SCHEMA = {"type": "object", "properties": {}}
BEGIN = """
> {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},\
"clientInfo":{"name":"c","version":"1"}}}
< {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},\
"serverInfo":{"name":"s","version":"1"}}}
> {"jsonrpc":"2.0","method":"notifications/initialized"}
"""


def listed(number, *names, cursor=None, more=None, schema=SCHEMA):
    params = f',"params":{{"cursor":"{cursor}"}}' if cursor else ""
    result = {"tools": [{"name": name, "inputSchema": schema} for name in names]} | (
        {"nextCursor": more} if more else {}
    )
    return (
        f'> {{"jsonrpc":"2.0","id":{number},"method":"tools/list"{params}}}\n'
        f"< {json.dumps({'jsonrpc': '2.0', 'id': number, 'result': result})}\n"
    )


def grown(session):
    for _ in range(3):  # some reads without new records release those that wait for their order
        while session.grow(1.0):
            pass
    return session


def compat(findings):
    return sorted((it.frame, it.rule, it.message) for it in findings if it.rule.startswith(GROUP))


def found(session):
    return compat(finding for group in session.findings.groups.values() for finding in group.findings)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_what_is_refused_in_a_golden_capture_is_what_check_finds(path):
    """P-01: on every transport. All of it disappears when no client is chosen any more."""
    with closing(OpenCapture(str(path))) as session:
        before, counts = found(grown(session)), dict(session.found)
        for clients in (ALL, frozenset(["openai-api"])):
            session.choose(clients)
            expected = compat(check(str(path), clients=clients).findings)
            assert found(grown(session)) == expected
            assert sum(session.found.values()) == sum(counts.values()) + len(expected)
        session.choose(())
        assert (found(grown(session)), dict(session.found)) == (before, counts) == ([], counts)


def test_a_client_may_be_chosen_before_its_tools_are_listed(tmp_path):
    """P-01: new records of a live session are still checked."""
    writer = begin(tmp_path / "a.jsonl")
    record(writer, BEGIN)
    with closing(OpenCapture(str(tmp_path / "a.jsonl"))) as session:
        grown(session).choose(["cursor"])
        assert not grown(session).refusals.tools
        record(writer, "@5 " + listed(1, "x" * 59, "y").replace("< {", "@6 < {"))
        assert list(grown(session).refusals.tools) == ["x" * 59]
        assert session.findings.of(session.index.rows[-1])
        finish(writer)


def test_one_client_replaces_another(tmp_path):
    path = capture(tmp_path / "a.jsonl", BEGIN + listed(1, "a.b"))
    with closing(OpenCapture(str(path))) as session:
        session.choose(["openai-api"])
        assert "(openai-api)" in found(grown(session))[0][2]
        session.choose(["claude-desktop"])
        ((_, _, message),) = found(grown(session))
        assert "(claude-desktop)" in message
        assert session.clients == {"claude-desktop"}
        assert set(session.revised) >= {finding.frame for finding in session.refusals.tools["a.b"]}


def test_a_tool_that_was_mended_is_refused_no_longer(tmp_path):
    """P-01: the finding stays, but the tool is judged by its last listing."""
    text = BEGIN + listed(1, "echo", schema={"type": "object"}) + listed(2, "echo")
    with closing(OpenCapture(str(capture(tmp_path / "a.jsonl", text)))) as session:
        session.choose(["openai-api"])
        assert len(found(grown(session))) == 1
        assert session.refusals.tools == {}


def test_a_tool_that_is_listed_again_stays_refused(tmp_path):
    text = BEGIN + listed(1, "a.b") + listed(2, "a.b")
    with closing(OpenCapture(str(capture(tmp_path / "a.jsonl", text)))) as session:
        session.choose(["openai-api"])
        assert [len(refused) for refused in grown(session).refusals.tools.values()] == [1]


@pytest.mark.parametrize(
    ("pages", "refused"),
    [
        ([129], 1),
        ([129, 129], 1),
        ([129, 1], 0),
        ([1, 129, 1, 129], 1),
    ],
)
def test_too_many_tools_are_refused_as_a_whole(tmp_path, pages, refused):
    text = BEGIN
    for number, count in enumerate(pages, 1):
        text += listed(number, *(f"t{n}" for n in range(count)))
    with closing(OpenCapture(str(capture(tmp_path / "a.jsonl", text)))) as session:
        session.choose(["openai-api"])
        assert len(grown(session).refusals.listing) == refused
        assert session.refusals.tools == {}


def test_the_pages_of_a_listing_count_together(tmp_path):
    names = [f"t{n}" for n in range(130)]
    text = BEGIN + listed(1, *names[:100], more="2") + listed(2, *names[100:], cursor="2")
    with closing(OpenCapture(str(capture(tmp_path / "a.jsonl", text)))) as session:
        session.choose(["openai-api"])
        assert len(grown(session).refusals.listing) == 1


def test_messages_of_one_batch_are_read_once(tmp_path):
    batch = json.dumps([{"jsonrpc": "2.0", "id": n, "method": "tools/list"} for n in (1, 2)])
    answer = json.dumps(
        [{"jsonrpc": "2.0", "id": n, "result": {"tools": [{"name": "a.b", "inputSchema": SCHEMA}]}} for n in (1, 2)]
    )
    text = BEGIN.replace("2025-11-25", "2025-03-26") + f"> {batch}\n< {answer}\n"
    with closing(OpenCapture(str(capture(tmp_path / "a.jsonl", text)))) as session:
        session.choose(["openai-api"])
        assert len(found(grown(session))) == 1


def test_a_tool_without_a_name_is_not_the_whole_list(tmp_path):
    """P-01: an empty name is still a name."""
    path = capture(str(tmp_path / "a.jsonl"), BEGIN + listed(1, ""))
    with closing(OpenCapture(path)) as session:
        session.choose(ALL)
        refusals = grown(session).refusals
    assert [it.rule for it in refusals.tools[""]] == ["compat/tool-name"]
    assert refusals.listing == []
