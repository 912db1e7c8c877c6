"""The context of a message: its partner, the HTTP heads, the tool that it calls."""

from mcpspy.browse.timeline import OpenCapture
from mcpspy.tui.message.facts import around
from mcpspy.tui.model.merged import Merged
from tests.timelines import CAPTURES
from tests.transcript import capture

LISTED = (
    '{"jsonrpc":"2.0","id":%d,"result":{"tools":[5,{"name":"a","inputSchema":{"type":"object","required":["%s"]}}]}}'
)
CALLS = f"""
    > {{"jsonrpc":"2.0","id":1,"method":"tools/list"}}
    < {LISTED % (1, "x")}
    > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"a","arguments":{{}}}}}}
    < {{"jsonrpc":"2.0","id":2,"result":{{"content":[]}}}}
    > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"b"}}}}
    > {{"jsonrpc":"2.0","id":4,"method":"tools/list"}}
    < {LISTED % (4, "y")}
    > {{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"a","arguments":{{"y":1}}}}}}
"""


def of(session, n):
    return around(session, session.index.row_of(n))


def test_a_call_has_the_tool_that_it_is_judged_by(tmp_path, read):
    session = read(capture(tmp_path / "a.jsonl", CALLS))
    first, unknown, last = of(session, 7), of(session, 9), of(session, 12)
    assert (first.listed, first.tool["inputSchema"]["required"]) == (6, ["x"]), "a finding says which listing it was"
    assert (last.listed, last.tool["inputSchema"]["required"]) == (11, ["y"])
    assert (unknown.listed, unknown.tool) == (0, None)
    assert of(session, 8).tool is None, "that is for the request to have"


def test_a_call_has_the_tool_as_it_was_listed_last_before_it(tmp_path, read):
    call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"a","arguments":{"%s":1}}}'
    without = '{"jsonrpc":"2.0","id":4,"result":{"tools":[]}}'
    asked = '> {"jsonrpc":"2.0","id":4,"method":"tools/list"}'
    session = read(
        capture(
            tmp_path / "a.jsonl",
            f"""
            > {call % (2, "x")}
            {asked}
            < {LISTED % (4, "x")}
            > {call % (3, "x")}
            {asked}
            < {without}
            > {call % (5, "x")}
            {asked}
            < {LISTED % (4, "y")}
            """,
        )
    )
    found = [(it.listed, it.tool["inputSchema"]["required"]) for it in (of(session, n) for n in (8, 11))]
    assert found == [(7, ["x"])] * 2
    assert of(session, 5).listed == 13, "there is none before it"


def test_each_half_of_a_pair_has_the_other(tmp_path, read):
    session = read(capture(tmp_path / "a.jsonl", CALLS))
    ((answer,), around_it) = of(session, 7).partner()
    assert answer.n == 8
    ((asked,), _) = around_it.partner()
    assert asked.n == 7
    assert of(session, 9).partner() is None


def test_over_http_a_message_has_the_heads_that_carried_it_and_is_there_as_it_came(read):
    session = read(CAPTURES / "http-everything-2025-11-25.jsonl")
    asked, answered = of(session, 60), of(session, 64)
    assert asked.request.head["method"] == "POST"
    assert asked.request.sent["headers"][0][0] == "host"
    assert (asked.response.head["status"], asked.response.answers) == (200, asked.request.ch)
    assert (answered.request, answered.response) == (asked.request, asked.response)
    assert asked.tool["name"] == "get-sum", "it was listed in an SSE event"
    (event,) = answered.pieces(64)
    assert event.startswith(b"event: message\n"), "the SSE event, not only its data"
    assert answered.size(64) == len(event)
    assert list(answered.pieces(60)) == [session.index.record(60).raw]
    assert (answered.size(2), list(answered.pieces(2))) == (None, [])
    place = next(place for place in range(len(session)) if session.line(place).text.startswith("202"))
    found = around(session, place)  # an HTTP row has its own head and the one that it answers
    assert found.response.head["status"] == 202
    assert found.request.ch == found.response.answers


def test_what_was_forwarded_otherwise_is_there(tmp_path, read):
    path = tmp_path / "a.jsonl"
    lines = (CAPTURES / "field-sse.jsonl").read_text(encoding="utf-8").splitlines()
    place = next(n for n, line in enumerate(lines) if '"kind":"frame"' in line)
    changed = lines[place].removesuffix("}") + ',"sent":"event: endpoint","by":"endpoint"}'
    path.write_text("\n".join([*lines[:place], changed, *lines[place + 1 :]]), encoding="utf-8")
    assert of(read(path), place + 1).changed.sent == b"event: endpoint"


def test_every_row_of_the_golden_captures_has_surroundings(read):
    for path in sorted(CAPTURES.glob("*.jsonl")):
        session = read(path)
        for place in range(len(session)):
            found = around(session, place)
            other = found.partner()
            assert (other is None) == (session.partner(place) is None)
            assert session.header.transport == "stdio" or found.request or session.line(place).kind in ("gap", "end")


def test_in_a_merge_a_message_has_what_is_around_it_in_its_own_session(tmp_path):
    paths = [capture(tmp_path / f"{name}.jsonl", CALLS, name=name) for name in "ab"]
    merged = Merged([OpenCapture(path) for path in paths])
    while not merged.complete:
        merged.grow(1)
    calls = [place for place in range(len(merged)) if merged.messages(place)[0].n == 7]
    assert len(calls) == 2
    for place in calls:
        found = around(merged, place)
        assert found.session is merged.of(place)[0]
        assert found.tool["inputSchema"]["required"] == ["x"]
        assert b"".join(found.pieces(7)) == found.session.index.record(7).raw
        ((answer,), around_it) = found.partner()
        assert (answer.n, around_it.session) == (8, found.session)
    merged.close()
