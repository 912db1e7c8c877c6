"""The facts that are shown above a message, as safe text."""

from pathlib import Path

import pytest

from mcpspy.capture.records import Frame, Header, Open
from mcpspy.conversation.gate_acts import GateAct
from mcpspy.timeline import final_rows
from mcpspy.tui.message.facts import Around, entries
from tests.browse.test_findings import finding
from tests.cases import check
from tests.test_text import unsafe
from tests.test_timeline import frames
from tests.transcript import records

FACTS = Path(__file__).parent / "cases" / "facts.txt"
"""Transcripts with the facts of each message, in the form of `tests/cases.py`."""
HEADER = Header("9f2c", "2026-11-20T19:15:00.123456Z", "mcpspy 0.1.0", "stdio", "weather")
HOSTILE = ["[/]", "\x1b[2J", "\u202e", "x" * 100_000, "\ud800", "\r\n", ""]


def final(transcript):
    """Return the final rows of a session, without the finding about the missing handshake."""
    found = list(final_rows(lambda: records(transcript), live=False))
    for row in found:
        row.findings = tuple(it for it in row.findings if it.rule != "lifecycle/before-initialize")
    return found


def lines(rows, around=None):
    """Return the lines as text. Lines that are folded at first include the text that they hide."""
    found = []
    for entry in entries(rows, HEADER, around or Around()):
        mark = ("▸ " if entry.folded else "▾ ") if entry.opens else "  " if entry.inside else ""
        found.append(mark + "".join(text for text, _ in entry.pieces))
    return found


EXCHANGE = """
    @1.00 > {"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","arguments":{"n":1.10}}}
    @1.25 < {"jsonrpc":"2.0","id":"x","result":{"content":[],"isError":true}}
"""
CALL = '> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":"1","z":2}}}'
SCHEMA = {"properties": {"n": {"type": "integer", "description": "how many"}, "m": {}, "k": {}}, "required": ["n", "m"]}
HEAD = {"method": "POST", "target": "/mcp", "version": "1.1", "headers": [["Host", "a:1"], ["X", "y"], ["Gone", "z"]]}


def told(row):
    """Return the facts of a message, without the lines that a finding hides at first."""
    return [f"#{row.n} {line}".rstrip() for line in lines([row]) if line and not line.startswith("  ")]


def test_the_facts_of_each_message_are_these():
    assert lines([]) == []
    check(FACTS, lambda text, _: [line for row in final(text) for line in told(row)])


def opened(**more):
    return Open(3, 3, 0, "client", "request", "body", **({"head": HEAD} | more))


def test_what_a_strict_parser_refuses_says_why():
    assert "a byte order mark" in lines(final('< \ufeff{"method":"n"}'))


def test_a_finding_opens_what_its_rule_says_and_where():
    (row,) = final('> {"id":1,"method":"ping"}')
    found = lines([row])
    place = next(n for n, line in enumerate(found) if line.startswith("▸ ✗"))
    assert found[place].endswith("· client · jsonrpc/version-missing")
    assert found[place + 1].startswith("  error: ")
    assert found[place + 2] == '  fix (client): Add `"jsonrpc": "2.0"` to every message.'
    assert found[place + 3].startswith("  https://modelcontextprotocol.io/specification/")


def test_the_arguments_of_a_call_stand_beside_what_the_tool_declares():
    around = Around(tool={"name": "a", "inputSchema": SCHEMA}, listed=7)
    found = lines(final(CALL), around)
    assert found[found.index("▾ 4 arguments as listed later in #7 · 1 wrong · 1 missing · 1 not declared") :][:5] == [
        "▾ 4 arguments as listed later in #7 · 1 wrong · 1 missing · 1 not declared",
        '  ✗ n integer, required "1" "1" is not of type "integer" how many',
        "  ✗ m required          missing ",
        "  · k                   ",
        "  ? z                   2 not declared ",
    ]


def test_a_tool_without_arguments_has_none_to_compare():
    (row,) = final('> {"id":1,"method":"tools/call","params":{"name":"a"}}')
    assert not [line for line in lines([row], Around(tool={"name": "a"}, listed=1)) if "argument" in line]


def test_a_head_opens_its_lines_and_says_what_the_proxy_changed():
    sent = {"target": "/other", "headers": [["host", "b:2"], ["Gone", None], ["New", "n"]]}
    found = lines(final(CALL), Around(request=opened(sent=sent, by="host,encoding")))
    assert found[found.index("▸ HTTP request POST /mcp · changed: host, encoding") + 1 :] == [
        "    ↳ target forwarded as /other · host, encoding",
        "  Host: a:1",
        "    ↳ Host forwarded as b:2 · host, encoding",
        "  X: y",
        "  Gone: z",
        "    ↳ Gone dropped · host, encoding",
        "    ↳ new forwarded as n · host, encoding",
        "",
    ]


def test_a_response_has_its_head():
    head = {"status": 200, "reason": "OK", "headers": [["content-type", "application/json"]]}
    found = lines(final(EXCHANGE)[1:], Around(response=opened(head=head)))
    assert "▸ HTTP response 200 OK application/json" in found


@pytest.mark.parametrize(("sent", "said"), [(None, "dropped · edit"), (b"\xff\x1b", "forwarded as \ufffd\\e · edit")])
def test_a_frame_that_was_forwarded_otherwise_says_so(sent, said):
    assert said in lines(final(CALL), Around(changed=Frame(1, 1, 0, b"", sent=sent, by="edit", dropped=sent is None)))


@pytest.mark.parametrize("head", [{"headers": 5}, {"headers": [5, ["a"], ["b", 5], [None, None]]}, {"status": "x"}, {}])
def test_a_head_out_of_a_damaged_capture_is_shown_as_far_as_it_is_one(head):
    assert any(line.startswith("▸ HTTP request") for line in lines(final(CALL), Around(request=opened(head=head))))


def test_a_response_has_the_findings_of_its_request_and_the_stderr_of_the_call():
    request, response = final(EXCHANGE)
    around = Around(found=(finding(),), stderr=((7, "no such\x1bcity"),))
    found = lines([response], around)
    at = found.index("the request #1 has:")
    assert [line.startswith("▸ ✗ ") for line in found[at - 1 : at + 2]] == [False, False, True]
    assert found[found.index("▾ stderr during the call") + 1] == "  #7 no such\\ecity"
    assert "▾ stderr since the request" in lines([request], Around(stderr=((7, ""),)))


def test_a_failure_that_is_expected_says_why():
    (_, response) = final(EXCHANGE)
    response.expected = "repeated"
    assert "no failure: the client repeated it and got an answer" in lines([response])


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_captured_is_more_than_text(text):
    schema = {"properties": {text: {"type": text, "description": text}, "n": {"enum": [text]}}, "required": [text, "n"]}
    head = {
        "method": text,
        "target": text,
        "reason": text,
        "status": text,
        "headers": [[text, text], ["content-type", text]],
    }
    sent = {"target": text, "headers": [[text, text]]}
    around = Around(
        request=opened(head=head, sent=sent, by=text),
        response=opened(head=head),
        tool={"name": text, "inputSchema": schema},
        changed=Frame(1, 1, 0, b"", sent=text.encode("utf-8", "surrogatepass"), by=text),
    )
    for row in final_rows(lambda: frames(b"x"), live=False):
        row.kind, row.method, row.name, row.text = "request", "tools/call", text, text
        row.value = {"params": {"name": text, "arguments": {text: text, "n": text}}}
        for line in lines([row], around):
            assert not unsafe(line)
            assert len(line) < 3000


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (GateAct(5, 0, "gate g", "edited", sent=b"[\x1b]"), "edited by gate g · forwarded as [\\e]"),
        (GateAct(5, 0, "gate g", "delayed", held=2_000_000_000), "delayed 2.00 s by gate g"),
        (GateAct(5, 0, "gate g", "dropped", dropped=True), "dropped by gate g"),
        (GateAct(5, 0, "gate g", "held"), "held by gate g"),
    ],
)
def test_what_a_gate_did_stands_once_among_the_facts(act, said):
    (row,) = final(CALL)
    row.act = act
    around = Around(changed=Frame(1, 1, 0, b"", by="gate g", sent=act.sent, dropped=act.dropped))
    assert [line for line in lines([row], around) if "gate g" in line] == [said]
