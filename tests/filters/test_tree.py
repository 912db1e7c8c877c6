"""A filter gives consistent verdicts for a whole row, for some of its fields, and for its line alone."""

import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.capture.index import Index
from mcpspy.capture.reader import Capture
from mcpspy.filters import KEYS, parse
from mcpspy.filters.terms import row_text, unescaped
from mcpspy.timeline import Row, final_rows
from tests.each import each
from tests.timelines import CAPTURES, GOLDEN
from tests.transcript import begin, finish

STARTED = "2026-11-20T19:15:00Z"
EACH = pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)


def read(text):
    return parse(text, STARTED)


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@cache
def rows_and_lines(path):
    """Return the rows of a capture, and by row number the lines of the rows that are not in pieces."""
    rows = list(final_rows(Capture(str(path)).records, live=False))
    index = Index(str(path))
    while index.grow():
        pass
    content = path.read_bytes().split(b"\n")
    lines = {row.n: content[row.n - 1] for row in rows if not index.in_pieces(row.n)}
    index.close()
    return rows, lines


def agree(wanted, path):
    """Check that a verdict on some fields of a row is the verdict on the whole row, or None."""
    rows, lines = rows_and_lines(path)
    for row in rows:
        verdict = wanted(row)
        line = lines.get(row.n)
        assert wanted.decide(row, KEYS) is verdict
        assert wanted.decide(row, ()) in (None, verdict)
        assert wanted.decide(row, KEYS.keys() - {"text"}, line) in (None, verdict)
        assert wanted.decide(row, {"kind", "from", "status"}, line) in (None, verdict)
        if verdict and line is not None:
            assert wanted.prefilter(line), (str(wanted), row.n)


# Golden captures.

FIXED = [
    "method:tools/call",
    "method:tools/* status:error,tool-error",
    "-method:*",
    "name:*",
    "kind:request or kind:error",
    "result",
    "JSON",
    '"/"',
    '"\\"method\\":\\"tools/call\\""',
    "-ping",
    "not (error or kind:result)",
    "(name:*e* or id:1) -status:ok",
    "rule:* severity:>=warning",
    "size:>100b latency:>1ms",
    "session:* POST",
    "data",
]


@EACH
@each("text", FIXED)
def test_no_partial_answer_contradicts_the_row_in_a_golden_capture(path, text):
    agree(read(text), path)


@EACH
@given(data=st.data())
def test_what_a_golden_row_has_is_found_by_its_line(path, data):
    rows, _ = rows_and_lines(path)
    row = data.draw(st.sampled_from(rows))
    shown = data.draw(st.sampled_from([row_text(row), unescaped(row_text(row))]))
    first = data.draw(st.integers(0, len(shown)))
    piece = shown[first : first + data.draw(st.integers(1, 20))]
    asked = [quoted(data.draw(st.sampled_from([piece, piece.lower()])))]
    for key in ("method", "name", "kind", "status"):
        value = getattr(row, key)
        if value and data.draw(st.booleans()):
            glob = data.draw(st.booleans()) and '"' not in value
            place = data.draw(st.integers(0, len(value)))
            asked.append(f"{key}:{value[:place]}*".replace(" ", "?") if glob else f"{key}:{quoted(value)}")
    wanted = read(data.draw(st.sampled_from([" ", " or "])).join(asked))
    if shown == row_text(row) or row.raw:
        assert wanted(row)
    agree(wanted, path)


# Lines with the JSON spellings of peers and of the writer.

SPELLINGS = [
    json.dumps,
    lambda value: json.dumps(value, ensure_ascii=False),
    lambda value: json.dumps(value, ensure_ascii=False).replace("/", "\\/"),
    lambda value: json.dumps(value).replace("e", "\\u0065") if "\\" not in json.dumps(value) else json.dumps(value),
    lambda value: json.dumps([value, {"jsonrpc": "2.0", "id": 2, "method": "other"}]),
    lambda value: json.dumps(json.dumps(value)),
    lambda value: " " + json.dumps(value, indent=1).replace("\n", "\r") + " ",
]
TEXT = st.text(alphabet='aBÉ天İK"\\/\n\t\x01 \u2028🌍e', max_size=6)


@given(TEXT, TEXT, st.sampled_from(SPELLINGS), st.booleans())
def test_a_line_never_rules_out_what_its_row_has(tmp_path_factory, before, needle, spell, binary):
    path = tmp_path_factory.mktemp("lines") / "a.jsonl"
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": before + needle, "x": needle}}
    raw = spell(message).encode(errors="surrogatepass") + (b"\xff" if binary else b"")
    writer = begin(path)
    writer.open(1, 0, "client", "stdin", "lines")
    writer.frame(1, 1, raw, False, False)
    writer.frame(1, 2, b"", False, False)
    finish(writer, 3)
    for asked in (quoted(needle), quoted(needle.lower()), f"name:{quoted(before + needle)}", f"-{quoted(needle)}"):
        agree(read(asked), path)
    (row, *_), _ = rows_and_lines(path)
    assert binary or '"' in needle or "\\" in needle or spell is SPELLINGS[5] or read(quoted(needle))(row)
    rows_and_lines.cache_clear()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('{"kind":"frame","ch":1,"t":5,"raw":"{\\"id\\":1,\\"method\\":\\"tools/call\\"}"}', True),
        ('{"kind":"frame","ch":1,"t":5,"raw":"{\\"id\\":1,\\"method\\":\\"tools\\\\/call\\"}"}', True),
        ('{"kind":"frame","ch":1,"t":5,"raw":"{\\"id\\":1,\\"method\\":\\"tools/list\\"}"}', False),
        ('{"kind":"frame","ch":1,"t":5,"raw":"{\\"id\\":1,\\"m\\":\\"tools\\\\u002fcal\\\\u006c\\"}"}', True),
        ('{"kind":"frame","ch":1,"t":5,"raw":"{\\"id\\":1,\\"result\\":{}}"}', True),
        ('{"kind":"frame","ch":1,"t":5,"raw":"{\\"id\\":1,\\"error\\":{}}"}', True),
        ('{"kind":"frame","ch":1,"t":5,"raw":"Listening"}', False),
        ('{"kind":"frame","ch":1,"t":5,"raw":""}', True),
        ('{"kind":"frame","ch":1,"t":5,"b64":"/w=="}', True),
        ('{"kind": "frame", "ch": 1, "t": 5, "raw": "x"}', True),
        ('{"kind":"open","ch":1,"t":0,"from":"client","role":"stdin","framing":"lines"}', True),
        ("torn", True),
        ("", True),
    ],
)
def test_a_line_rules_out_a_method_only_if_it_can_know(line, wanted):
    assert read("method:tools/call").prefilter(line.encode()) is wanted


def test_most_lines_of_a_session_need_no_decoding():
    rows, lines = rows_and_lines(CAPTURES / "full-python1-2025-06-18.jsonl")
    kept = [
        row.n for row in rows if row.n in lines and read("method:resources/read kind:request").prefilter(lines[row.n])
    ]
    assert kept
    assert len(kept) < len(lines) / 4


# Verdicts with three values.

ROW = Row(1, 0, "error", "server", status="error", raw=b"needle")


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("status:error", True),
        ("status:ok", False),
        ("needle", None),
        ("status:ok needle", False),
        ("needle status:ok", False),
        ("status:error needle", None),
        ("status:error or needle", True),
        ("needle or status:error", True),
        ("status:ok or needle", None),
        ("-needle", None),
        ("-status:ok", True),
        ("-(status:ok needle)", True),
        ("", True),
    ],
)
def test_a_verdict_is_given_as_soon_as_what_is_known_tells(text, verdict):
    assert read(text).decide(ROW, {"status"}) is verdict


def test_words_are_what_can_be_shown_where_it_stands():
    assert read('one "two three" text:four,five -six (seven or not eight) name:nine').words() == (
        "one",
        "two three",
        "four",
        "five",
        "seven",
    )


def test_the_keys_of_a_filter_are_those_that_it_asks_for():
    assert read("one name:a (name:b or -size:1)").keys == {"text", "name", "size"}
    assert read("").keys == set()
