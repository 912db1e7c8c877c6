"""The syntax: how terms are joined, and that a printed filter parses to the same filter.

`cases.json` has the mistakes, with their columns.
"""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.errors import FilterError
from mcpspy.filters import parse
from tests.cases import pairs
from tests.each import each

STARTED = "2026-11-20T19:15:00.123456Z"


def read(text):
    return parse(text, STARTED)


@each("text, printed", [*pairs(Path(__file__).parent / "printed.txt"), ("", ""), ("   ", "")])
def test_a_filter_is_printed_as_what_it_means(text, printed):
    assert str(read(text)) == printed
    assert str(read(printed)) == printed


WORDS = st.one_of(
    st.sampled_from(
        ["kind:error", "name:a*,b", 'id:"1"', "id:1", "latency:>200ms", "time:1..2s", "rule:schema", "-", "-5"]
    ),
    st.text(alphabet='ab"\\ é*,:-()', max_size=6).map(
        lambda text: '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    ),
    st.text(alphabet="abcé*-,.", min_size=1, max_size=6),
)
TREES = st.recursive(
    WORDS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({' '.join(parts)})"),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"({' or '.join(parts)})"),
        inner.map(lambda part: f"not {part}"),
        inner.map(lambda part: f"-({part})"),
    ),
    max_leaves=12,
)


@given(TREES)
def test_what_is_printed_is_read_as_the_same_filter(text):
    found = read(text)
    assert read(str(found)) == found
    assert str(read(str(found))) == str(found)


@given(st.text(alphabet='ab:-()",\\ \n*ornt1', max_size=30) | st.text(max_size=10))
def test_any_text_is_a_filter_or_a_mistake_at_a_column(text):
    try:
        found = read(text)
    except FilterError as wrong:
        error = wrong
    else:
        assert read(str(found)) == found
        return
    assert 1 <= error.column <= len(text) + 1
    assert f"at column {error.column}" in str(error)
