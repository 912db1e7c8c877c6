"""The form that people read: rows, folds, places, values, files, and searches."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.filters.terms import occurrences
from mcpspy.tui.message.content import Content, content_of
from mcpspy.tui.message.document import Document, Folds, Text, Tree
from tests.limits import proportionate
from tests.test_text import unsafe
from tests.test_timeline import JSON
from tests.tui.screen import texts

PNG = "iVBORw0KGgoAAAANSUhEUgAABQAAAALQAAAA" + "A" * 64
RESULT = {
    "content": [
        {"type": "text", "text": "# Title\n\n\tdone 東京\x1b[2J"},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "text", "text": json.dumps({"rows": [{"n": 1}], "log": "one\ntwo"})},
    ],
    "structuredContent": {"price": 1, "list": [True, None]},
    "_meta": {"a": {"b": "needle"}},
}


def document(result, width=60, folds=None):
    body = content_of(json.dumps({"id": 1, "result": result}).replace('"price": 1', '"price": 1.10'))
    return Document([], body, width=width, folds=folds or Folds(), sections={})


def row_of(shown, text):
    return next(row for row, line in enumerate(texts(shown)) if text in line)


def test_a_result_is_shown_as_people_read_it():
    assert texts(document(RESULT)) == [
        "▾ text:",
        "    # Title",
        "",
        "            done 東京\\e[2J",
        "  image: PNG 1280 × 720, 75 B  ⏎ opens it, s saves it",
        "▾ text: JSON in a string",
        "  ▾ rows:",
        "    ▾ -",
        "        n: 1",
        "  ▾ log:",
        "      one",
        "      two",
        "▾ structuredContent:",
        "    price: 1.10",
        "  ▾ list:",
        "      - true",
        "      - null",
        "▸ _meta: 1 member",
    ]


def test_what_is_folded_says_how_much_is_hidden_and_is_folded_in_the_next_message_too():
    folds = Folds()
    shown = document(RESULT, folds=folds)
    shown.fold(row_of(shown, "▾ text:"), folded=True)
    shown.fold(row_of(shown, "▾ structuredContent"), folded=True)
    shown.fold(row_of(shown, "▸ _meta"), folded=False)
    assert texts(document(RESULT, folds=folds))[0] == "▸ text: # Title… 3 lines"
    assert texts(shown)[-5:] == [
        "      two", "▸ structuredContent: … 4 lines", "▾ _meta: 1 member", "  ▾ a:", "      b: needle",
    ]  # fmt: skip
    shown.fold_all(folded=True)
    assert [line[0] for line in texts(shown)] == list("▸ ▸▸▸")
    shown.fold_all(folded=False)
    assert texts(shown)[-1] == "      b: needle"


def test_a_row_has_its_place_its_value_and_the_value_around_it():
    shown = document(RESULT)
    texts(shown)

    def found(text):
        row = row_of(shown, text)
        return shown.place(row), shown.body.value(shown.at(row)), texts(shown)[shown.above(row)].strip()

    assert found("Title") == ("/result/content/0/text", json.dumps(RESULT["content"][0]["text"], ensure_ascii=False),
                              "▾ text:")  # fmt: skip
    assert found("n: 1") == ("/result/content/2/text", "1", "▾ -")
    assert found("rows:") == ("/result/content/2/text", '[{"n":1}]', "▾ text: JSON in a string")
    assert found("price") == ("/result/structuredContent/price", "1.10", "▾ structuredContent:")
    assert found("list:")[1] == "[true,null]"
    assert shown.body.decoded(shown.at(row_of(shown, "done"))) == RESULT["content"][0]["text"]


def test_a_file_is_found_in_the_content_and_in_the_tree():
    shown = document(RESULT)
    texts(shown)
    files = [shown.body.media(line) for line in range(len(shown.body))]
    assert [line for line, text in enumerate(files) if text] == [row_of(shown, "image:")]
    tree = Tree(json.dumps(RESULT))
    while tree.grow(10):
        pass
    assert [text for line in range(len(tree)) if (text := tree.media(line))] == [PNG]


def test_lines_are_made_as_far_as_somebody_looks():
    body = Content([[1]] * 500_000)
    assert body.grow(10)
    assert len(body) == 10
    shown = Document([], body, width=40, folds=Folds(), sections={})
    shown.grow(10)
    shown.fold(0, folded=True)
    shown.grow(10)
    assert (len(shown), len(body) < 1000) == (1, True), "the end of a large value is looked for in steps"


def search(shown, text, step=1):
    """Go to the next place; return its row, and the highlighted text."""
    for place in shown.search(occurrences([text]), step):
        if place is not None:
            shown.reveal(place)
            texts(shown)
            row = shown.row_of(place)
            return texts(shown)[row].strip(), "".join(text for text, kind in shown.pieces(row) if kind == "match")
    return None


def test_a_search_unfolds_and_highlights_each_place_in_both_directions():
    shown = document(RESULT | {"_meta": {"a": {"b": "Needle, needle"}, "needle": ["x " * 60 + "needle"]}})
    first, last = ("b: Needle, needle", "Needle"), ("x x x needle", "needle")
    assert search(shown, "needle") == first
    assert search(shown, "needle") == ("b: Needle, needle", "needle")
    assert search(shown, "needle") == ("▾ needle:", "needle")
    row, word = search(shown, "needle")
    assert (row[-12:], word) == last
    assert search(shown, "needle") is None
    assert search(shown, "needle", -1)[0] == "▾ needle:"
    shown.found = None
    assert search(shown, "needle", -1)[0][-12:] == last[0]
    shown.found = None
    assert search(shown, "Needle") == first, "with a capital, case counts"
    assert search(shown, "Needle") is None


def test_a_search_through_megabytes_has_pauses():
    shown = document({"content": [{"type": "text", "text": "a line of a text\n" * 20_000 + "needle"}]})
    steps = list(shown.search(occurrences(["needle"]), 1))
    assert len(steps) > 20
    assert next(it for it in steps if it).line == 20_001


def test_the_time_for_many_files_in_the_json_of_a_string_grows_with_their_number():
    files = json.dumps([{"data": PNG}] * 8000 + ["needle"])
    shown = document({"content": [{"type": "text", "text": files}]})
    with proportionate(5):
        assert [it for it in shown.search(occurrences(["needle"]), 1) if it]
        assert len(texts(shown)) == 16_002


def test_text_is_wrapped_below_its_beginning_and_no_letter_is_lost():
    words = "東京の天気は晴れです。最高気温は二十五度👨\u200d👩\u200d👧で、傘は要りません"
    rows = texts(document({"content": [{"type": "text", "text": words * 3}]}, width=21))
    assert "".join(row.strip() for row in rows[1:]) == words * 3
    assert all(row.startswith("    ") for row in rows[1:])


@pytest.mark.parametrize("text", ['{"result":', "[1,]", "", '{"a":1} {}', "[" * 100_000])
def test_what_is_no_json_has_no_content(text):
    assert content_of(text) is None


@given(JSON | st.text(st.characters() | st.sampled_from("\x1b\x9b\u202e\u2028\u200b\n\t日"), max_size=60))
def test_no_message_can_hijack_a_terminal(value):
    """F-08."""
    for shown in (document({"x": value}, width=20), document(value, width=7)):
        for folded in (False, True):
            shown.fold_all(folded=folded)
            assert not unsafe("".join(texts(shown)))
            assert all(shown.body.value(line) is not None for line in range(len(shown.body)))


def test_a_dump_is_not_searched_and_a_text_is():
    shown = Document([], Text("one\ntwo"), width=20, folds=Folds(), sections={})
    assert search(shown, "two") == ("two", "two")
