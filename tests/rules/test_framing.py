"""Frames that are not messages: which fault each one has, and which lines belong together."""

import pytest

from mcpspy.capture.records import Frame
from mcpspy.rules.framing import MultilineJson, Spread
from mcpspy.rules.judge import Judge
from tests.memory import objects_in
from tests.rules.examples import findings, told
from tests.transcript import OPENS

SPREAD = """
    = 2025-06-18
    > 2 ping
    < | {
    < |   "jsonrpc": "2.0", "id": 2,
    < |   "result": {}
    < | }
"""


def test_a_message_over_several_lines_is_one_finding_with_its_lines():
    (finding,) = [it for it in findings(SPREAD) if it.rule.startswith(("framing/", "jsonrpc/"))]
    assert (finding.rule, finding.frame, finding.related) == ("framing/multiline-json", 5, (4, 6, 7, 8))


def test_what_else_is_written_between_the_lines_of_the_other_side_does_not_matter():
    text = SPREAD.replace('<|   "result"', "").replace('< |   "result": {}', '> 3 ping\n    < |   "result": {}')
    assert told(text, "framing/") == ["#5 framing/multiline-json"]


def test_lines_that_never_become_a_message_are_told_each_by_itself():
    text = """
        < | { this is
        < | no JSON
        < | at all }
    """
    assert told(text) == ["#1 framing/not-json", "#2 framing/not-json", "#3 framing/not-json"]


def test_a_message_among_lines_that_were_thought_to_be_one_is_judged_by_itself():
    text = """
        < | {
        < notifications/tools/list_changed
        < | still no JSON
    """
    assert told(text, "framing/") == ["#1 framing/not-json", "#3 framing/not-json"]


def test_a_bracket_that_stays_open_is_told_at_the_end():
    assert told("< | [", "framing/") == ["#1 framing/not-json"]


def test_an_array_may_be_spread_too():
    text = """
        = 2025-03-26
        > | [
        > | {"jsonrpc":"2.0","id":2,"method":"ping"}
        > | ]
    """
    assert "#4 framing/multiline-json" not in told(text)  # one of its lines is a message of its own
    assert "#4 framing/not-json" in told(text)


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("", ["framing/blank-line"]),
        ("\\r", ["framing/blank-line", "framing/crlf"]),
        ("hello", ["framing/not-json"]),
        ("\\x00\\x00", ["framing/null-byte"]),
        ("\\xff", ["framing/invalid-utf8", "framing/not-json"]),
        ("\\xef\\xbb\\xbf", ["framing/blank-line", "framing/bom"]),
        ("null", ["jsonrpc/not-an-object"]),
        ("[]", ["jsonrpc/not-an-object"]),
        ("NaN", ["jsonrpc/not-a-number"]),
        ("{}", ["jsonrpc/neither-result-nor-error"]),
    ],
)
def test_a_line_that_is_no_message_is_called_what_it_is(line, rules):
    assert sorted(finding.rule for finding in findings(f"< | {line}")) == rules


def test_what_is_said_once_is_said_once_for_each_side():
    text = "\n".join(['> | {"jsonrpc":"2.0","method":"x"}\\r', '< | {"jsonrpc":"2.0","method":"x"}\\r'] * 3)
    assert told(text, "framing/") == ["#1 framing/crlf", "#2 framing/crlf"]


@pytest.mark.parametrize(("lines", "size", "kept"), [(99, 0, True), (100, 0, False), (9, 49, True), (9, 50, False)])
def test_lines_are_not_collected_for_ever(monkeypatch, lines, size, kept):
    monkeypatch.setattr("mcpspy.rules.framing.MOST_LINES", 100)
    monkeypatch.setattr("mcpspy.rules.framing.LONGEST", 50)
    frames = [Frame(n, 2, n, b"{".ljust(size) if n == 1 else b"") for n in range(1, lines + 1)]
    judge = Judge()
    [list(judge.feed(record)) for record in (*OPENS, *frames)]
    (check,) = objects_in(judge, MultilineJson)
    assert bool(objects_in(check, Spread)) == kept


def test_a_line_that_was_cut_is_called_unterminated_alone():
    assert told('= 2025-06-18\n< |… {"jsonrpc":"2.0","id":2,"re') == ["#4 framing/unterminated"]


def test_the_closing_line_of_a_spread_message_may_close_several_brackets():
    text = """
        = 2025-06-18
        > 2 ping
        < | {
        < |   "jsonrpc": "2.0", "id": 2, "result": {"a": {
        < |   "b": 1}}}
    """
    assert told(text, "framing/") == ["#5 framing/multiline-json"]
    assert told(text + "< | nonsense", "framing/") == ["#5 framing/multiline-json", "#8 framing/not-json"]


def test_a_bracket_that_closes_nothing_is_not_json():
    assert told("< | }") == ["#1 framing/not-json"]


PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.parametrize("sender", "<>")
def test_content_length_framing_is_named_once_for_all_its_lines(sender):
    """C-05, R-07: the headers, the blank lines, and the message with the next header on the same line."""
    lines = ("content-length: 40\\r", "Content-Type: application/json\\r", "\\r", f"{PING}Content-Length:40\\r", "\\r")
    text = "".join(f"{sender} | {line}\n" for line in lines) + f"{sender} |… {PING}"
    assert told(text, "framing/", "jsonrpc/") == ["#1 framing/content-length"]


def test_headers_that_a_server_prints_hide_no_other_line():
    text = """
        < | Content-Length: 40
        <
        = 2025-06-18
        < | Fetching forecast for Oslo
    """
    assert told(text, "framing/") == ["#1 framing/content-length", "#6 framing/not-json"]


def test_a_message_about_content_length_is_no_framing():
    """C-05."""
    text = """
        > 1 tools/call {"name":"head","arguments":{"header":"Content-Length: 40"}}
        < | the server said Content-Length: 40
        < | {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
    """
    assert "framing/content-length" not in {it.rule for it in findings(text)}
