"""Tests check behaviour: they use no private name or member of the package."""

import ast
import pathlib
import re

import pytest

TESTS = pathlib.Path(__file__).parent
PRIVATE = re.compile(r"_(?!_)\w+")
DOCUMENTED = {"_replace", "_asdict", "_fields", "_make", "_exit"}  # members of named tuples, and `os._exit`
BY_NAME = {"setattr", "delattr", "getattr", "hasattr", "patch", "object"}  # take a member's name as a string
IN_PROGRAM = re.compile(r"(?<![\w.])(?!self\b|cls\b)[\w.]+\.(_(?!_)\w+)")

EXCEPTIONS = {
    "conftest.py": ("_current_frames", "so Python tells the stacks of all threads"),
    "peers/python1/client.py": ("_request_id", "this SDK has no call that cancels"),
    "peers/field/conformance_server.py": (
        "_lowlevel_server _tool_manager",
        "this SDK publishes no call for a schema of a tool or a handler of one's own",
    ),
    "relay/http/aiohttp_internals.py": (
        "_connector _next_keepalive_close_time _process_keepalive _read_timeout_handle",
        "the place for what aiohttp does not publish",
    ),
    "relay/late.py": ("_compiler", "so `re` tells which patterns it compiles"),
    "tui/screen.py": (
        "_compositor _dirty_regions _message_queue _waiters",
        "textual publishes neither the text of a screen, what is to be drawn, nor whether a part waits for a message",
    ),
    "tui/test_textual_internals.py": ("_file _writer_thread", "tests the module that knows these names of textual"),
    "tui/test_textual_serve_internals.py": ("_open_app_process", "tests the module that knows this name"),
}
"""For each file, the private names of others that it uses, and the reason."""


def private_names(source):
    """Return the private names that a test uses: of foreign objects, of modules, and in programs that it runs."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            found += [] if own else [node.attr]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None) or ""
            found += [part for alias in node.names for part in f"{module}.{alias.name}".strip(".").split(".")[1:]]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in BY_NAME:
            words = [it.value for it in node.args if isinstance(it, ast.Constant) and isinstance(it.value, str)]
            found += [word.split(".")[-1] for word in words]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "mcpspy" in node.value:
            found += IN_PROGRAM.findall(node.value)
    return sorted({name for name in found if PRIVATE.fullmatch(name)} - DOCUMENTED)


def test_tests_use_no_private_names():
    sources = {path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8") for path in TESTS.rglob("*.py")}
    del sources[pathlib.Path(__file__).name]
    found = {path: names for path, source in sources.items() if (names := private_names(source))}
    assert found == {path: names.split() for path, (names, _) in EXCEPTIONS.items()}


@pytest.mark.parametrize(
    "source",
    [
        "judge._x.values()",
        "del judge.sessions[0]._x",
        "super()._x()",
        "from mcpspy.cli.show import _x",
        "from mcpspy.cli._x import title",
        "import mcpspy.cli._x",
        "monkeypatch.setattr(module, '_x', 0)",
        "monkeypatch.setattr('mcpspy.cli.demo._x', 0)",
        "with patch('mcpspy.cli.demo._x'): pass",
        "patch.object(module, '_x')",
        "getattr(judge, '_x')",
        "bug('mcpspy.cli.demo._x')",
        "run('from mcpspy.cli import demo; demo._x = 0')",
    ],
)
def test_a_planted_private_name_is_found(source):
    assert private_names(source) == ["_x"]


@pytest.mark.parametrize(
    "source",
    [
        "class A:\n    def f(self): return self._x",
        "row._replace(n=1)",
        "os._exit(0)",
        "monkeypatch.setattr(os, '_exit', end)",
        "value['_meta'], value.__class__",
        "from _thread import allocate_lock",
        "run('from mcpspy.cli import demo\\nclass A:\\n    def f(self): return self._x')",
    ],
)
def test_what_is_allowed_is_let_through(source):
    assert private_names(source) == []
