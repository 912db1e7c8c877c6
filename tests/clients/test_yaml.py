import pytest
from hypothesis import given, settings
from ruamel.yaml import YAML

from mcpspy.clients.tree import Syntax, plain, where
from mcpspy.clients.yaml import read
from tests.clients.configurations import Yaml, generated
from tests.each import each


@settings(deadline=None)
@given(generated(Yaml))
def test_generated_yaml_is_read_as_ruamel_loads_it(made):
    _, text = made
    assert plain(read(text)) == YAML(typ="safe", pure=True).load(text.removeprefix("\ufeff"))


def test_the_text_at_the_place_of_a_scalar_is_that_scalar():
    text = "\ufeffa: x y # c\r\nb:\r\n  - 'q'\r\n  - \"r\"\r\nc: {d: 1}\r\n"
    root = read(text)
    nodes = [root.value["a"].node, *root.value["b"].node.value, root.value["c"].node]
    assert [text[node.start : node.end] for node in nodes] == ["x y", "'q'", '"r"', "{d: 1}"]
    assert [node.lines for node in (root, root.value["b"].node, root.value["c"].node)] == [True, True, False]


def test_values_are_those_of_yaml_1_2():
    assert plain(read("[yes, on, no, 012, 1_000, ~, 2026-11-20, 'x']"))[:3] == ["yes", "on", "no"]
    assert plain(read("a: true\nb: null\nc: 1\n")) == {"a": True, "b": None, "c": 1}


@each(
    "text, fixed",
    [
        ("v: x", ""),
        ("v: &a x", "has a YAML anchor or is an alias"),
        ("o: &a x\nv: *a", "has a YAML anchor or is an alias"),
        ("o: &a {b: 1}\nv: *a", "has a YAML anchor or is an alias"),
        ("v: |\n  x", "is a YAML block of text"),
        ("v: >-\n  x", "is a YAML block of text"),
        ("v:", "is empty"),
        ("v: ~", ""),
    ],
)
def test_what_stands_for_more_than_its_own_text_is_fixed(text, fixed):
    assert read(text).value["v"].node.fixed == fixed


@each("value", ["2026-13-45", "!foo bar", "!!int abc", '!!binary "a"', "9" * 5000])
def test_what_is_no_value_is_its_text_and_fixed(value):
    node = read(f"v: {value}\nw: 1").value["v"].node
    assert isinstance(node.value, str)
    assert node.fixed.startswith("is not a value: ")


def test_aliases_of_aliases_are_not_expanded():
    text = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert len(str(plain(read(text)))) < 20_000


def test_an_empty_file_is_empty():
    assert read("").value is None
    assert read("# only a comment\n").value is None


@each(
    "text, place, reason",
    [
        ("a: [1,\n b: c: d", "line 2, column 6", "expected ',' or ']'"),
        ("a: 1\n---\nb: 2\n", "line 2, column 1", "but found another document"),
        ("a:\n\tb: 1", "line 2, column 1", "found character '\\t'"),
        ("\ufeffa: 'x", "line 1, column 6", "found unexpected end of stream"),
        ("a: \x00", "line 1, column 4", "special characters are not allowed"),
        ("a: *x", "line 1, column 4", "found undefined alias"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, place, reason):
    with pytest.raises(Syntax, match=reason[:20].replace("[", ".").replace("\\", ".").replace("]", ".")) as error:
        read(text)
    assert where(text, error.value.offset) == place


def test_what_nests_too_deeply_is_refused():
    with pytest.raises(Syntax, match="nested too deeply"):
        read("[" * 1000)


def test_a_text_that_would_take_minutes_is_refused():
    """A-21."""
    with pytest.raises(Syntax, match="more than 1,048,576 characters"):
        read("a: 1\n" * 300_000)
