import datetime as dt
import tomllib

import pytest
from hypothesis import given, settings

from mcpspy.clients.toml import read
from mcpspy.clients.tree import Syntax, plain, where
from tests.clients.configurations import Toml, generated
from tests.each import each

EVERYTHING = '''\
# a comment with [brackets] and "quotes"
bare-key_1 = 1
"quoted \\u00e9" = 'C:\\dir'
'literal "key"' = "x # no comment"
a.b."c.d" = true
a . e = 1_000
date = 1979-05-27 07:32:00
times = [ 07:32:00, 1979-05-27T07:32:00Z ] # c
float = -1.5e+3
inf = -inf
multi = """
line "one" \\
   two ""\\"
"""
literal = \'\'\'
it's ''fine''\'\'\'
ends = """"x""""
nested = [ [1, 2], ["a", ], # c
  { x = 1, y.z = [ ] }, {} ]
empty = ""

[ table . "sub.table" ]
k = "v"
[table]
k = "w"
[[array]]
n = 1
[array.inner]
n = 11
[[array]]
n = 2
[[array.deep]]
n = 3
'''


@each("text", [EVERYTHING, EVERYTHING.replace("\n", "\r\n"), EVERYTHING.rstrip()])
def test_toml_is_read_as_tomllib_reads_it(text):
    assert plain(read(text)) == tomllib.loads(text)


@settings(deadline=None)
@given(generated(Toml))
def test_generated_toml_is_read_as_tomllib_reads_it(made):
    _, text = made
    assert plain(read(text)) == tomllib.loads(text)


def test_the_text_at_the_place_of_a_value_is_that_value():
    """If a number replaces the text of a value, tomllib reads the text with exactly that value changed."""
    root = read(EVERYTHING)
    for key, member in root.value.items():
        node = member.node
        if not node.lines:
            changed = EVERYTHING[: node.start] + "42" + EVERYTHING[node.end :]
            assert tomllib.loads(changed) == tomllib.loads(EVERYTHING) | {key: 42}


def test_a_dotted_key_knows_where_its_last_part_begins():
    text = "[t]\n  a . 'b' = 1"
    member = read(text).value["t"].node.value["a"].node.value["b"]
    assert (text[member.start : member.end], text[member.own : member.end]) == ("a . 'b'", "'b'")


def test_a_byte_order_mark_is_passed_over():
    text = "\ufeffa = 1"
    node = read(text).value["a"].node
    assert text[node.start : node.end] == "1"


def test_dates_stay_dates():
    assert plain(read("d = 2026-11-20")) == {"d": dt.date(2026, 11, 20)}


@each(
    "text, place",
    [
        ("a = ", "line 1, column 5"),
        ("a = 1\nb = [1,", "line 2, column 8"),
        ("a = 1\r\nb = = 2", "line 2, column 5"),
        ("\ufeffa = 1\nb", "line 2, column 2"),
        ("[a]\nx = 1\n[a]\n", "line 3, column 3"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, place):
    with pytest.raises(Syntax) as error:
        read(text)
    assert where(text, error.value.offset) == place
    assert "line" not in str(error.value)


@pytest.mark.parametrize("levels", [300, 1000])
@pytest.mark.parametrize("text", ["a = {0}", "{1} = 1", "[{1}]"])
def test_what_nests_too_deeply_is_refused(levels, text):
    with pytest.raises(Syntax, match=r"nested too deeply|more than 32 parts"):
        read(text.format("[" * levels + "]" * levels, ".".join("a" * levels)))


def test_a_number_with_too_many_digits_is_said():
    with pytest.raises(Syntax, match="limit"):
        read("a = " + "9" * 5000)
