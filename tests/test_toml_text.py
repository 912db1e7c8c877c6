"""A-21: a small TOML file takes neither gigabytes nor minutes, whatever command reads it."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mcpspy
from mcpspy.clients import toml
from mcpspy.clients.tree import Syntax
from mcpspy.contract import expectations
from mcpspy.errors import ConfigError, GateError, UsageError
from mcpspy.gate_files import file as gate_file
from mcpspy.replay import settings as replay_settings
from mcpspy.report import waivers
from mcpspy.toml_text import LONGEST, MOST_PARTS, MOST_VALUES, toml_values
from tests.limits import proportionate

DEEP = ".".join("a" * (MOST_PARTS + 1))
ENOUGH = ".".join("a" * MOST_PARTS)
READERS = [
    (lambda path: toml.read(Path(path).read_text(encoding="utf-8")), Syntax),
    (waivers.read, UsageError),
    (expectations.read, UsageError),
    (replay_settings.read, ConfigError),
    (lambda path: gate_file.compile_file(path, "stdio"), GateError),
]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"\n{DEEP} = 1", rf"a key has more than 32 parts \(at line 2, column {2 * MOST_PARTS}\)"),
        (DEEP.replace(".", " \t. ") + " = 1", "32 parts"),
        (DEEP.replace("a", '"a.\\".b"') + " = 1", "32 parts"),
        (DEEP.replace("a", "'a'") + " = 1", "32 parts"),
        (f"[{DEEP}]", "32 parts"),
        (f"[[{DEEP}]]", "32 parts"),
        (f"x = {{a = 1, {DEEP} = 1}}", "32 parts"),
        (f"x = [\n# '\n{{ {DEEP} = 1 }}]", "32 parts"),
        (f'x = """\n" \\""" \\\\"""""\n{DEEP} = 1', r"32 parts \(at line 3"),
        (f"x = ''' '' '''''\n{DEEP} = 1", r"32 parts \(at line 2"),
        (f"x = '\\' # '\r\n{DEEP} = 1", r"32 parts \(at line 2"),
        (f'x = "\\\\"\n{DEEP} = 1', r"32 parts \(at line 2"),
        ("".join(f"[a{number}]\n" for number in range(MOST_VALUES + 1)), "more than 100,000 values, tables"),
        ("x = [" + "{}," * MOST_VALUES + "]", "more than 100,000 values, tables"),
        ("x = [" + "1," * MOST_VALUES + "]", "more than 100,000 values, tables"),
        ("".join(f"a{number}.{ENOUGH[:-2]} = 1\n" for number in range(5000)), "more than 100,000 values, tables"),
        ("x = " + "1" * (LONGEST + 1), r"a key or a number has more than 5,000 characters \(at line 1, column 5\)"),
        ("x = 1." + "1" * (LONGEST + 1), "5,000 characters"),
        ("x = 0x" + "_1" * LONGEST, "5,000 characters"),
    ],
)
def test_what_would_take_much_memory_is_refused_with_its_place(monkeypatch, text, why):
    """A-21: before `tomllib` sees it."""
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("tomllib parsed it"))
    with pytest.raises(ValueError, match=why):
        toml_values(text)


@pytest.mark.parametrize(
    "text",
    [
        f"{ENOUGH} = 1\n[b]\n{ENOUGH} = 1",
        f"x = \"{DEEP}\"\ny = '{DEEP}' # {DEEP}\n# {DEEP}",
        f'x = """\n{DEEP}"" \\"""\n{DEEP}\\\\"""""\ny = \'\'\'\n{DEEP}\'\'{DEEP}\'\'\'\'\'',
        "x = [" + "1.5, " * 100 + "]",
        "".join(f"a{number} = 1.5\n" for number in range(100)),
        f'x = "{"1" * (LONGEST + 1)}"',
        "x = \"\"\ny = \"\"\"\"\"\"\nz = ''\nu = ''''''",
    ],
)
def test_other_text_is_parsed_as_it_was(text):
    assert toml_values(text) == tomllib.loads(text)


PIECES = ["a.", "\r\n", '"""', "'''", *"a.\"'\\\n# =[]{},1", f"\n{DEEP}=1\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=24))
@settings(deadline=None)
def test_what_tomllib_accepts_has_no_long_key(pieces):
    """A-21: no quote or comment hides a key from the scan."""
    text = "".join(pieces)
    try:
        found = toml_values(text)
    except (ValueError, RecursionError):
        return
    assert depth(found) <= 2 * MOST_PARTS


@given(st.lists(st.sampled_from([*PIECES[:-1], "\nb=", "\n"]), max_size=16))
@settings(deadline=None)
def test_what_is_not_long_is_accepted_and_refused_as_by_tomllib(pieces):
    text = "".join(pieces)
    assert outcome(toml_values, text) == outcome(tomllib.loads, text)


def depth(value):
    if isinstance(value, dict | list):
        return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)
    return 0


def outcome(parse, text):
    try:
        return parse(text)
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("text", [".".join("a" * 100_000) + "=1", "x=" + "1" * 1_000_000, "a=1\n" + "[b]\n" * 200_000])
@pytest.mark.parametrize(("read", "error"), READERS)
def test_each_reader_of_toml_refuses_it_at_once(tmp_path, read, error, text):
    """A-21: a key of 100,000 parts took 9 GB."""
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    with proportionate(5), pytest.raises(error, match=r"more than|Cannot declare|cannot declare"):
        read(str(path))


@pytest.mark.parametrize("token", ['"', "'", '"""', "'''", "#", "\n", " ", "a ", "'' ", '\\"', '"\\', "\n\n#", "''''"])
def test_the_scan_takes_time_in_proportion_to_the_text(monkeypatch, token):
    """A-21."""
    monkeypatch.setattr(tomllib, "loads", lambda _: {})
    with proportionate(5):
        toml_values(token * 300_000)


def test_toml_is_parsed_in_one_module_only():
    """A-21: any other use of `tomllib` would parse what the scan refuses."""
    package = Path(mcpspy.__file__).parent
    users = {
        path.name
        for path in package.rglob("*.py")
        if "tomllib" in (source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom) and re.search(r"\btomllib\b", ast.unparse(node))
    }
    assert users == {"toml_text.py"}
