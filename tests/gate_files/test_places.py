import tomllib

import pytest

from mcpspy.gate_files.file import Places

TEXT = '''\
# [[gate]]
seed = 7
"note" = """
[[gate]]
drop = true
"""

[[ gate ]]   # the first
name = "a#b" # not here: drop
when
  = 1
[[gate]]
when = [ 1, # ]
  2 ]
drop=true
answer.result = {}
[gate.more.inner]
drop = 1
[[gate.edit]]
op = "x"
'''.replace("when\n  = 1\n", "when = 1\n")


@pytest.mark.parametrize(
    ("gate", "name", "key", "value"),
    [
        (None, "seed", (2, 1), (2, 8)),
        (None, "note", (3, 1), (3, 10)),
        (0, "name", (9, 1), (9, 8)),
        (0, "when", (10, 1), (10, 8)),
        (0, "", (8, 1), (8, 1)),
        (0, "drop", (8, 1), (8, 1)),
        (1, "when", (12, 1), (12, 8)),
        (1, "drop", (14, 1), (14, 6)),
        (1, "answer", (15, 1), (15, 17)),
        (1, "more", (16, 1), (16, 1)),
        (1, "edit", (18, 1), (18, 1)),
        (7, "edit", (8, 1), (8, 1)),
    ],
)
def test_keys_have_places(gate, name, key, value):
    assert tomllib.loads(TEXT)
    places = Places(TEXT)
    found = places.key(gate, name), places.value(gate, name)
    assert tuple(map(places.line_and_column, found)) == (key, value)


def test_a_gate_in_an_inline_array_has_the_place_of_the_array():
    places = Places("\ngate = [{drop = true}]\n")
    assert places.line_and_column(places.key(0, "drop")) == (2, 1)
    assert Places("").key(0, "drop") == 0


@pytest.mark.parametrize(
    "written",
    [
        "'abcX'",
        '"abcX"',
        '"\\u0061\\tcX"',
        '"\\U00000061\\\\cX"',
        "'''abcX'''",
        "'''\nabcX'''",
        '"""\na\\\n   bcX"""',
        '"""abc\\\n  X"""',
        '"""a"bX"""',
        "'''a\nbX'''",
    ],
)
def test_a_place_in_a_text_is_found_however_that_is_written(written):
    text = f"[[gate]]\nwhen = {written}\n"
    count = tomllib.loads(text)["gate"][0]["when"].index("X")
    assert text[Places(text).inside(0, "when", count)] == "X"


def test_a_place_beyond_a_text_is_its_end():
    text = "[[gate]]\nwhen = 'abc' # x\n"
    assert text[: Places(text).inside(0, "when", 99)].endswith("'abc")
    text = "[[gate]]\nwhen = 5\n"
    assert text[Places(text).inside(0, "when", 3)] == "5"
