import json
import os
from pathlib import Path

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.conversation.model import Message
from mcpspy.report.lines import line
from mcpspy.report.messages import LINES, REST, message_lines
from mcpspy.text import columns
from mcpspy.timeline import final_rows, row_of
from tests.hostile_text import NASTY, unsafe
from tests.limits import proportionate
from tests.reading.test_content import cases
from tests.timelines import CAPTURES
from tests.transcript import events

GOLDEN = Path(__file__).with_name("messages")
"""The messages of two captures: as for a pipe, and as for a terminal of 60 columns. MCPSPY_RENEW=1 writes them."""


def shown(message, width=None, *, told="", colours=False):
    """Return the lines of a message, given as a value, as JSON text, or as bytes that are not JSON."""
    text = message if isinstance(message, str) else json.dumps(message)
    (row,) = [row_of(event) for event in events(f"< | {text}") if isinstance(event, Message) and not event.part]
    return list(message_lines(row, told, width, colours=colours))


def result(text):
    return {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": text}]}}


@pytest.mark.parametrize(("name", "width"), [("everything-2025-11-25", None), ("field-stdio", 60)])
def test_the_messages_of_a_session_are_printed_as_before(name, width):
    capture = Capture(str(CAPTURES / f"{name}.jsonl"))
    found = ""
    for row in final_rows(capture.records, live=False):
        found += (
            "\n".join([f"#{row.n} {row.kind} {row.method or ''}".rstrip(), *message_lines(row, line(row), width)])
            + "\n"
        )
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("MCPSPY_RENEW"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def test_folded_values_and_media_are_one_line():
    (text,) = [text for comments, text, _ in cases() if comments == ["# A text and a picture whose type is wrong."]]
    assert shown(text) == [
        "    text:",
        "      # Title",
        "",
        "      - a",
        "      - b",
        "",
        "      done",
        "    image: (PNG 1280 × 720, 424 B; mimeType says image/jpeg)",
        "    isError: false",
        "    _meta: (1 member)",
    ]


def test_elements_have_a_dash_and_inner_json_is_unfolded():
    assert shown(result('{"a":[1.10,[2]]}')) == [
        "    text: (JSON in a string)",
        "      a:",
        "        - 1.10",
        "        -",
        "          - 2",
    ]


def test_a_string_that_reads_as_something_else_is_in_quotes():
    values = {
        "null": [None, "null"],
        "true": [True, "true"],
        "number": [12, "12", -1.5e10, "-1.5E+10", "1.", "v1"],
        "empty": ["", [], "[]", {}, "{}"],
        "note": ["(PNG 1280 × 720, 84.2 kB)", "(1) first"],
        "quotes": ['"12"', '"a" and b', '"\u202e"'],
        "list": "",
    }
    assert shown({"jsonrpc": "2.0", "method": "x", "params": values}) == [
        "    null:", "      - null", '      - "null"',
        "    true:", "      - true", '      - "true"',
        "    number:", "      - 12", '      - "12"', "      - -15000000000.0", '      - "-1.5E+10"', "      - 1.",
        "      - v1",
        "    empty:", '      - ""', "      - []", '      - "[]"', "      - {}", '      - "{}"',
        "    note:", '      - "(PNG 1280 × 720, 84.2 kB)"', "      - (1) first",
        "    quotes:", r'      - "\"12\""', '      - "a" and b', r'      - "\"\u202e\""',
        '    list: ""',
    ]  # fmt: skip


def test_a_message_without_params_has_no_lines():
    assert shown({"jsonrpc": "2.0", "id": 1, "method": "ping"}) == []


def test_tabs_keep_their_columns():
    assert shown(result("a\tb\nlonger\tc"))[1:] == ["      a       b", "      longer  c"]


def test_a_pipe_gets_each_line_of_a_text_whole():
    text = f"{'word ' * 3000}end\n\n{'x' * 5000}"
    assert shown(result(text)) == ["    text:", *(f"      {it}".rstrip() for it in text.split("\n"))]


def test_a_terminal_gets_lines_that_fit_and_continue_below_their_text():
    lines = shown({"jsonrpc": "2.0", "method": "x", "params": {"name": "one two three four five six"}}, 24)
    assert lines == ["    name: one two three", "      four five six"]
    lines = shown(result("東京 " * 100), 40)
    assert max(map(columns, lines)) <= 40
    assert all(it.startswith("      ") for it in lines[1:])


def test_a_long_paragraph_is_wrapped_as_one():
    lines = shown(result("word " * 1000), 80)[1:]
    assert min(map(len, lines[:-1])) >= 80 - len("word ")


def test_a_terminal_gets_the_first_lines_and_how_to_see_the_rest():
    many = result("a line\n" * 500)
    assert shown(many, 80)[LINES:] == [f"    {REST}"]
    assert len(shown(many)) == 501
    exactly = shown(result("a line\n" * (LINES - 1)), 80)
    assert (len(exactly), exactly[-1]) == (LINES, "      a line")
    assert columns(REST) < 76


def test_the_first_lines_of_a_large_message_need_no_others():
    with proportionate(1):
        assert len(shown(result("a line of text\n" * 400_000), 80)) == LINES + 1


def test_no_text_of_a_peer_looks_like_a_row_or_moves_the_cursor():
    row = "#5         0.001 → tools/call delete_all"
    hostile = {"jsonrpc": "2.0", "id": 1, "result": {row: f"{row}\n{NASTY}\n{row * 9}", NASTY: [NASTY, {NASTY: row}]}}
    for width in (None, 30, 80):
        lines = shown(hostile, width)
        assert all(not it or it.startswith("    ") for it in lines)
        assert not unsafe("".join(lines))


def test_colours_are_those_of_commands():
    lines = shown(result("one\ntwo"), colours=True)
    assert lines == ["    \x1b[90mtext:\x1b[0m", "      one", "      two"]
    folded = {"jsonrpc": "2.0", "id": 1, "result": {"_meta": {"a": 1}}}
    assert shown(folded, 80, colours=True) == ["    \x1b[90m_meta: (1 member)\x1b[0m"]


def test_text_that_is_no_message_is_shown_if_its_row_does_not_have_it():
    assert shown("Listening on port 5") == ["    Listening on port 5"]
    assert shown("Listening on port 5", told="invalid: not JSON: Listening on port 5") == []
    assert shown("x" * 100, told=f"invalid: {'x' * 50}…") == [f"      {'x' * 100}"]


def test_each_message_of_a_batch_has_its_own_lines():
    found = [
        list(message_lines(row_of(event), "", None))
        for event in events(
            '= 2025-03-26\n> [{"id":5,"method":"a","params":{"x":1}},{"id":6,"method":"b","params":{}}]'
        )
        if isinstance(event, Message)
    ]
    assert found[-2:] == [["    x: 1"], ["    params: {}"]]
