import json
import os
from itertools import islice, pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.reading.content import content_lines, parse, pointed, value_of
from tests.limits import proportionate

CASES = Path(__file__).with_name("cases.txt")
"""Messages and their lines, which the page must show as well (tests/sharing/page). MCPSPY_RENEW=1 writes the lines."""


def shown(line):
    """Return a line as cases.txt has it."""
    label = f"{line.label}{'' if line.label == '-' else ':'} " if line.label else ""
    fold = ("▸" if line.folded else "▾") if line.opens else ""
    return f"{'  ' * line.depth}{label}{line.text} {fold}".rstrip() or "."


def cases():
    """Return (comment, message, lines) of each case."""
    for block in CASES.read_text(encoding="utf-8").strip().split("\n\n"):
        lines = block.split("\n")
        comments = [line for line in lines if line.startswith("# ")]
        yield comments, lines[len(comments)], lines[len(comments) + 1 :]


def test_messages_are_shown_as_people_read_them():
    found = [
        (comments, text, [shown(line) for line in content_lines(parse(text))], wanted)
        for comments, text, wanted in cases()
    ]
    if os.environ.get("MCPSPY_RENEW"):
        blocks = ["\n".join([*comments, text, *lines]) for comments, text, lines, _ in found]
        CASES.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    for _, text, lines, wanted in found:
        assert lines == wanted, text


def test_the_path_of_a_line_leads_to_its_value():
    for _, text, _ in cases():
        message = parse(text)
        for line in content_lines(message):
            value = value_of(message, line.path)
            if line.kind == "text":
                assert value.startswith(line.text, line.start)
            elif line.kind in ("string", "number"):
                assert value == line.text
            assert all(step != "\0" for step in pointed(line.path))


@given(st.text())
def test_no_character_of_a_text_is_lost(text):
    lines = [
        it for it in content_lines({"result": {"content": [{"type": "text", "text": text + "\n" * 2}]}}) if not it.label
    ]
    joined = "".join(text[one.start : two.start] for one, two in pairwise([*lines, lines[0]._replace(start=len(text))]))
    assert joined == text


def test_a_long_line_continues_after_a_blank():
    text = "word " * 1000
    lines = [it.text for it in content_lines(text)][1:]
    assert "".join(lines) == text
    assert {line[-1] for line in lines} == {" "}


def test_hostile_nesting_is_shown_without_an_error():
    text = "x\ny"
    for _ in range(12):
        text = json.dumps([text])
    deep = json.dumps("[" * 100_000 + "]" * 100_000)
    for hostile in (f'{{"result":{text}}}', deep, "[" * 900 + "1" + "]" * 900):
        assert list(content_lines(parse(hostile)))


def test_the_first_lines_of_a_large_message_need_no_others():
    message = {"result": {"content": [{"type": "text", "text": "a line of text\n" * 1_000_000}]}}
    with proportionate(1):
        assert len(list(islice(content_lines(message), 100))) == 100


def test_many_members_around_a_result_take_no_longer_than_their_number():
    many = ",".join(f'"{n}":0' for n in range(200_000))
    with proportionate(2):
        assert len(list(content_lines(parse(f'{{{many},"result":{{"a":1}},"1":1,"result":{{}}}}')))) == 3
