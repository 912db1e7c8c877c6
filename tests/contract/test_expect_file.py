"""Expectation files: how they are parsed, and one line for every mistake."""

import pytest

from mcpspy.contract.expectations import LARGEST, expectations, read
from mcpspy.errors import UsageError
from tests.each import each

WHOLE = """
server = "weather"
order = ["login", "get_forecast"]

[[tool]]
name = "get_forecast"
times = ">=1"
arguments = { city = "Oslo" }
schema = { type = "object", required = ["city"] }
max_duration = "2s"

[[tool]]
name = "delete_*"
server = "files"
never = true

[session]
max_duration = "30s"
max_tokens = 5000
no_errors = true
stderr_without = ["Traceback", "panic:*"]
started_within = "500ms"

[ops]
slow_call = "5s"
"""


def test_a_whole_file_becomes_expectations(tmp_path):
    file = tmp_path / "expect.toml"
    file.write_text(WHOLE, encoding="utf-8-sig")
    found = read(str(file))
    assert found.slow_call == 5_000_000_000
    assert [it.title.removesuffix(", of server weather") for it in found.every] == [
        'get_forecast with /city "Oslo" is called',
        'the arguments of get_forecast with /city "Oslo" satisfy the schema',
        'get_forecast with /city "Oslo" takes at most 2.00 s',
        "delete_* is never called, of server files",
        "login, then get_forecast are called in this order",
        "the session takes at most 30.00 s",
        "definitions and results of tools take at most 5,000 tokens",
        "no request fails",
        'no line of stderr holds "Traceback"',
        'no line of stderr holds "panic:*"',
        "the server answers within 500.0 ms of its start",
    ]


def test_an_empty_table_of_operations_has_the_usual_threshold(tmp_path):
    file = tmp_path / "expect.toml"
    file.write_text("[ops]\n")
    assert read(str(file)).slow_call == 10_000_000_000


A = '[[tool]]\nname = "a"\n'
MISTAKES = [
    ("", "expects nothing; write a [[tool]], order, [session] or [ops]"),
    ("# nothing\n", "expects nothing"),
    ("[session]\n", "expects nothing"),
    ("x", "is not TOML"),
    ("\x00", "is not TOML"),
    ("tool = 5", ": tool must be a table in an array; write [[tool]] above each"),
    ("[tool]\nname = 'a'", ": tool must be a table in an array"),
    ("session = []", ": session must be a table; write [session]"),
    ("ops = 5", ": ops must be a table; write [ops]"),
    ("[sesion]", ": the file has no key \"sesion\"; did you mean 'session'?"),
    ("[[tool]]", ', tool 1: it has no name; write name = "NAME", where * is any text'),
    ("[[tool]]\nname = 5", ", tool 1: name: it is 5; write a text in quotes"),
    (f'{A}[[tool]]\nname = ""', ", tool 2: name: it is"),
    (f"{A}time = 5", ", tool 1: a tool has no key \"time\"; did you mean 'times'?"),
    (f"{A}times = -1", ', tool 1: times: it is -1; write a number, or a text such as ">=1", "<=3" or "2-4"'),
    (f"{A}times = true", ", tool 1: times: it is true; write a number"),
    (f'{A}times = "4-2"', ', tool 1: times: it is "4-2", which matches no number'),
    (f'{A}times = "<0"', ', tool 1: times: it is "<0", which matches no number; write "<1", or never = true'),
    (f"{A}never = false", ", tool 1: never: it is false; write true, or leave it out"),
    (f"{A}never = true\ntimes = 2", ", tool 1: times cannot be met by a tool that is never called"),
    (f'{A}times = 0\nmax_duration = "2s"', ", tool 1: max_duration cannot be met by a tool that is never called"),
    (f"{A}never = true\n{A}times = 2", ": no session can meet both: a is never called; a is called 2 times. Take out"),
    (
        f'{A}times = "2-4"\n{A}times = ">4"',
        ": no session can meet both: a is called 2 to 4 times; a is called at least 5",
    ),
    (f'{A}arguments = {{ "/a~3" = 1 }}', ', tool 1: arguments: "/a~3" is not a JSON Pointer: after ~ must be 0 or 1'),
    (f"{A}arguments = {{}}", ", tool 1: arguments: it is {}; write a table such as"),
    (f"{A}arguments = {{ a = 2020-01-01 }}", ", tool 1: arguments: it holds a date or time"),
    (f'{A}arguments = {{ type = "object", properties = {{}} }}', ", tool 1: arguments: it looks like a JSON Schema"),
    (f"{A}schema = 5", ", tool 1: schema: it is 5; write a JSON Schema as a table"),
    (f"{A}schema = {{ type = 5 }}", ", tool 1: schema: it cannot be used as a JSON Schema"),
    (f'{A}schema = {{ pattern = "(" }}', ", tool 1: schema: it cannot be used as a JSON Schema"),
    (f'{A}schema = {{ "$ref" = "https://example.com/a" }}', ", tool 1: schema: it cannot be used as a JSON Schema"),
    (f'{A}max_duration = "2m"', ', tool 1: max_duration: it is "2m"; write a time with its unit'),
    (f'{A}max_duration = "0s"', ', tool 1: max_duration: it is "0s"; it must be more than 0'),
    ("order = ['a']", ": order: it is an array of 1; write an array of two names or more"),
    ("order = 'a'", ': order: it is "a"; write an array'),
    ("server = 5", ": server: it is 5; write a text in quotes"),
    ("[session]\nmax_tokens = 0", ", session: max_tokens: it is 0; write a whole number"),
    ("[session]\nstderr_without = []", ", session: stderr_without: it is []; write an array of texts"),
    ("[session]\nno_error = true", ", session: a session has no key \"no_error\"; did you mean 'no_errors'?"),
    ("[ops]\nslow = '1s'", ", ops: ops has no key \"slow\"; did you mean 'slow_call'?"),
    ("[ops]\nslow_call = 5", ", ops: slow_call: it is 5; write a time"),
]


@each("text, told", MISTAKES)
def test_a_mistake_is_one_line_that_names_file_place_and_what_to_do(tmp_path, text, told):
    file = tmp_path / "expect.toml"
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read(str(file))
    assert str(caught.value).startswith(str(file))
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


CONTENTS = {
    "is not TOML: it is not UTF-8": b"\xff",
    "is larger than 1 MiB": b"#" * (LARGEST + 1),
    "is nested too deeply": b"a=" + b"[" * 90_000,
}


@each("told", CONTENTS)
def test_what_is_no_file_of_expectations_is_one_line(tmp_path, told):
    file = tmp_path / "expect.toml"
    file.write_bytes(CONTENTS[told])
    with pytest.raises(UsageError, match=told):
        read(str(file))


def test_a_file_that_cannot_be_read_is_named():
    for path in ("", "\0", "missing.toml"):
        with pytest.raises(UsageError, match="cannot read"):
            read(path)


def test_a_catastrophic_pattern_in_a_schema_takes_no_time():
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert expectations({"tool": [{"name": "x", "schema": schema}]}, "x").every


def test_expectations_that_one_session_can_meet_are_no_contradiction():
    tools = [
        {"name": "a", "times": ">=1"},
        {"name": "a", "times": "<=3"},
        {"name": "a", "arguments": {"b": 1}, "never": True},
        {"name": "a", "server": "other", "never": True},
        {"name": "a*", "times": 9},
    ]
    assert len(expectations({"tool": tools}, "x").every) == 5
