"""The rows of a message: wrapped at a width, folded, and made only as far as they are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from mcpspy.tui.message.document import Document, Folds, HexDump, SummaryLine, Text, Tree
from tests.test_text import unsafe
from tests.tui.screen import texts

NESTED = '{"a":[1,{"b":null}],"c":"x"}'
ENTRIES = [
    SummaryLine([("#1 ping", "label")]),
    SummaryLine([("two faults", "warning")], "faults", folded=True),
    SummaryLine([("one", "plain")], inside=True),
    SummaryLine([("two", "plain")], inside=True),
    SummaryLine([]),
]


def document(body, entries=(), width=40, **more):
    kept = {"folds": Folds(), "sections": {}} | more
    return Document(list(entries), body, width=width, **kept)


def row_of(shown, text):
    """Return the number of the row that begins with a text."""
    return next(row for row, line in enumerate(texts(shown)) if line.strip(" ▾▸").startswith(text))


def test_the_message_stands_below_what_is_known_of_it():
    shown = document(Tree(NESTED), ENTRIES)
    assert texts(shown) == [
        "#1 ping",
        "▸ two faults",
        "",
        "{",
        '▾ "a": [',
        "    1,",
        "  ▾ {",
        '      "b": null',
        "    }",
        "  ],",
        '  "c": "x"',
        "}",
    ]
    assert [shown.is_message(row) for row in (0, 2, 3)] == [False, False, True]


def test_what_is_folded_takes_no_rows():
    shown = document(Tree(NESTED), ENTRIES)
    shown.fold(row_of(shown, '"a"'), folded=True)
    assert texts(shown)[3:] == ["{", '▸ "a": […] 2 elements', '  "c": "x"', "}"]
    shown.fold(row_of(shown, "two faults"), folded=False)
    assert texts(shown)[1:5] == ["▾ two faults", "  one", "  two", ""]
    shown.fold(row_of(shown, '"a"'), folded=False)
    assert len(texts(shown)) == 14


def test_a_fold_is_there_in_the_next_message_of_the_same_kind():
    folds, sections = Folds(), {}
    first = document(Tree(NESTED), ENTRIES, folds=folds, sections=sections)
    first.fold(row_of(first, '"a"'), folded=True)
    first.fold(row_of(first, "two faults"), folded=False)
    second = document(Tree('{"a":[2,3],"b":[4]}'), ENTRIES, folds=folds, sections=sections)
    assert texts(second)[1:] == [
        "▾ two faults", "  one", "  two", "", "{", '▸ "a": […] 2 elements', '▾ "b": [', "    4", "  ]", "}",
    ]  # fmt: skip


def test_all_is_folded_but_the_outermost_levels_and_unfolded():
    shown = document(Tree('{"params":{"a":{"b":{"c":1}}}}'))
    shown.fold_all(folded=True)
    assert texts(shown) == ["{", '▾ "params": {', '  ▸ "a": {…} 1 member', "  }", "}"]
    shown.fold_all(folded=False)
    assert len(texts(shown)) == 9


def test_of_a_large_message_the_inner_levels_are_folded_until_somebody_unfolds_them():
    deep = Tree('{"result":{"tools":[{"inputSchema":{"type":"object"}}]}}' + " " * 5000)
    shown = document(deep)
    assert '      ▸ "inputSchema": {…} 1 member' in texts(shown)
    shown.fold(row_of(shown, '"inputSchema"'), folded=False)
    assert '          "type": "object"' in texts(shown)


@pytest.mark.parametrize("at", ['"a"', "1", "{", '"b"', "}"])
def test_above_a_row_stands_what_its_value_stands_in(at):
    shown = document(Tree(NESTED), ENTRIES)
    rows = texts(shown)
    above = {'"a"': "{", "1": '"a"', "{": "{", '"b"': "{", "}": "{"}[at]
    place = row_of(shown, at)
    assert rows[shown.above(place)].strip(" ▾▸").startswith(above)
    assert shown.above(place) <= place


def test_above_a_line_of_a_section_stands_its_title():
    shown = document(Tree("{}"), ENTRIES, sections={"faults": False})
    assert shown.above(row_of(shown, "two")) == 1
    assert shown.above(row_of(shown, "#1")) == 0


def test_a_row_has_its_pointer_and_its_value():
    shown = document(Tree('{"a":[1,{"b/c":"long words that are wrapped"}]}'), ENTRIES, width=20)
    first, second = row_of(shown, '"b/c"'), row_of(shown, "words")
    assert shown.place(first) == shown.place(second) == "/a/1/b~1c"
    assert shown.body.value(shown.at(second)) == '"long words that are wrapped"'
    assert (shown.place(0), shown.at(0)) == ("", None)


def test_of_a_dump_a_row_has_its_offset():
    shown = document(HexDump(b"x" * 40, 80), width=80)
    assert len(texts(shown)) == 3
    assert shown.place(2) == "0x20"
    assert (shown.body.value(2), shown.is_folded(2), shown.above(2)) == (None, None, 2)


def test_text_is_wrapped_after_blanks_and_where_there_is_none_anywhere():
    assert texts(document(Text("aaa bbb ccc\n" + "d" * 25 + "\n\n"), width=10)) == [
        "aaa bbb", "ccc", "d" * 10, "d" * 10, "d" * 5, "", "",
    ]  # fmt: skip


@given(st.lists(st.text(st.characters() | st.sampled_from("日 \x1b\u202e\u2028"), max_size=80)), st.integers(2, 40))
def test_no_row_is_wider_than_the_pane_and_nothing_is_lost(lines, width):
    text = "\n".join(lines)
    rows = texts(document(Text(text), width=width))
    for row in rows:
        assert not unsafe(row)
        assert cell_len(row) <= width
    if text.isascii() and text.replace("\n", "").isprintable():
        assert "".join(rows).replace(" ", "") == text.replace("\n", "").replace(" ", "")


@given(st.integers(1, 60), st.integers(0, 40), st.integers(1, 9))
def test_rows_do_not_depend_on_how_many_are_made_at_once(width, fold, step):
    text = '{"a":[[1,2],{"k":"v v v v v v v v v v v"}],"b":{"c":{"d":{}}},"e":"日本日本日本日本"}'
    whole = document(Tree(text), ENTRIES, width=width)
    texts(whole)
    row = fold % len(whole)
    if whole.is_folded(row) is None:
        return
    pieces = document(Tree(text), ENTRIES, width=width)
    texts(pieces)
    for shown in (whole, pieces):
        shown.fold(row, folded=not shown.is_folded(row))
    while pieces.grow(step):
        pass
    assert texts(pieces) == texts(whole)


def test_rows_are_made_as_far_as_somebody_looks():
    tree = Tree("[" + "1," * 500_000)
    shown = document(tree)
    assert shown.grow(10)
    assert len(shown) == 10
    assert len(tree) < 100


def test_the_end_of_a_large_fold_is_looked_for_in_steps():
    tree = Tree('{"a":[' + "1," * 10_000 + '1],"b":2}')
    folds = Folds()
    folds.say(("a",), folded=True)
    shown = document(tree, folds=folds)
    shown.grow(100)
    assert len(shown) == 2
    assert len(tree) < 2000
    assert texts(shown) == ["{", '▸ "a": […] 10,001 elements', '  "b": 2', "}"]


def test_a_fold_without_an_end_hides_the_rest():
    shown = document(Tree('{"a":[1,2'))
    shown.grow(100)
    shown.fold(1, folded=True)
    assert texts(shown) == ["{", '▸ "a": […] 2 elements']
