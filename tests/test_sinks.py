"""A-14: text reaches a screen only through the sinks that make it safe. docs/security-model.md names them.

A command prints to `sys.stdout` and `sys.stderr`, which `cli/output.py` guards. The application draws through the
barrier of `tui/app.py`, and its widgets must not interpret markup.
"""

import ast
import re

import pytest

from tests.each import each
from tests.test_layers import SOURCES

PRINTERS = {
    "demo.client": "a program of its own, started by `mcpspy demo`",
    "demo.server": "the same; prints its own words",
    "gate_files.__main__": "a process of its own, which prints to a pipe",
    "replay.http_mock": "prints its URL",
    "rules.judge": "a bug of ours, made printable",
    "spec.peer_schemas": "a process of its own, which prints to a pipe",
    "tui.terminal": "the terminal of the application, behind its barrier",
    "tui.web.connections": "one notice, of its own words and the system's",
    "tui.web.page": "prints its URL, and notices made printable",
}
"""Modules outside of `cli/` that print."""
STDERR = {"cli", "cli.output"}
"""Modules in `cli/` that print to stderr; others call `say` or `explain`, which make text printable."""
DESCRIPTORS = {
    "cli.wrap": "before anything is imported; only printable characters",
    "relay.reload.server": "stderr of the server, forwarded",
    "relay.stdio.relay": "notices; only printable characters",
    "report.companion": "findings, made printable",
}
"""Modules that write to the descriptors 1 and 2, which must not wait for a lock or an import."""
WIDGETS = {"Static": True, "OptionList": True, "Input": False, "TextArea": False}
"""The widgets that may be used, and whether they interpret markup without `markup=False`."""
RICH = {
    "rich.segment.Segment", "rich.style.Style", "rich.cells.cell_len", "rich.cells.set_cell_size",
    "rich.cells.split_graphemes", "rich.text.Text",
}  # fmt: skip
"""What of rich may be used for the screen; none of it interprets markup."""
TITLES = {"border_title", "border_subtitle", "tooltip", "sub_title", "title"}
"""Attributes of widgets that textual parses as markup, unless they are no strings."""


def faults(module, source):
    """Return the forbidden sinks in a module."""
    tree = ast.parse(source)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            found += _call(module, node)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("sys.__stdout__", "sys.__stderr__"):
            found += [ast.unparse(node)] * (module != "tui.terminal")
    return found + (_screen(tree) if module.startswith("tui.") else [])


def _call(module, node):
    called = ast.unparse(node.func)
    words = {word.arg: ast.unparse(word.value) for word in node.keywords}
    in_cli = module.split(".")[0] == "cli"
    if called == "print":
        aside = words.get("file", "").endswith("stderr") and in_cli and module not in STDERR
        return ["print to stderr"] * aside if in_cli else ["print"] * (module not in PRINTERS)
    if called in ("sys.stdout.write", "sys.stderr.write", "sys.stdout.buffer.write", "sys.stdout.writelines"):
        return [called] * (not in_cli)
    if called == "os.write" and node.args and ast.unparse(node.args[0]) in ("1", "2"):
        return ["os.write"] * (module not in DESCRIPTORS)
    if called == "input":
        return ["input"] * (module != "cli.output")
    return [called] * (called.split(".")[-1] in ("Console", "unguarded") and module != "cli.output")


def _screen(tree):
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found += [name for name in names if name.startswith("rich.") and name not in RICH]
            found += [
                name for name in names
                if (name.startswith("textual.widgets.") and name.rpartition(".")[2] not in WIDGETS)
                or name.startswith(("textual.content", "textual.markup", "textual.visual"))
            ]  # fmt: skip
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).split(".")[-1]
            plain = any(word.arg == "markup" and ast.unparse(word.value) == "False" for word in node.keywords)
            found += [f"{name} with markup"] * ((WIDGETS.get(name, False) or name == "notify") and not plain)
            found += [name] * (name in ("from_markup", "from_ansi", "render_str"))
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            made = ast.unparse(node.value) if node.value else ""
            found += [
                target.attr for target in targets
                if isinstance(target, ast.Attribute) and target.attr in TITLES and not made.startswith("Plain(")
            ]  # fmt: skip
    return found


@each("module", sorted(SOURCES))
def test_text_reaches_a_screen_only_through_the_sinks(module):
    """A-14."""
    assert faults(module, SOURCES[module]) == []


@pytest.mark.parametrize(
    ("module", "source", "fault"),
    [
        ("report.lines", "print(text)", "print"),
        ("timeline", "sys.stdout.write(text)", "sys.stdout.write"),
        ("cli.show", "print(text, file=sys.stderr)", "print to stderr"),
        ("cli.show", "sys.__stdout__.write(text)", "sys.__stdout__"),
        ("cli.show", "os.write(1, text)", "os.write"),
        ("cli.show", "input(text)", "input"),
        ("cli.show", "rich.console.Console().print(text)", "rich.console.Console"),
        ("cli.show", "unguarded(sys.stdout).write(text)", "unguarded"),
        ("tui.app", "yield Static(text)", "Static with markup"),
        ("tui.app", "yield Static(text, markup=True)", "Static with markup"),
        ("tui.app", "self.notify(text)", "notify with markup"),
        ("tui.app", "from textual.widgets import Label", "textual.widgets.Label"),
        ("tui.app", "from textual.content import Content", "textual.content.Content"),
        ("tui.app", "from rich.markup import render", "rich.markup.render"),
        ("tui.app", "Text.from_markup(text)", "from_markup"),
        ("tui.app", "self.border_title = text", "border_title"),
        ("tui.app", "self.tooltip = text", "tooltip"),
    ],
)
def test_a_planted_sink_is_found(module, source, fault):
    assert faults(module, source) == [fault]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("cli.show", "print(text)"),
        ("cli.show", "sys.stdout.buffer.write(text)"),
        ("tui.app", "yield Static(text, markup=False)"),
        ("tui.app", "self.border_title = Plain(text)"),
    ],
)
def test_a_sink_is_let_through(module, source):
    assert faults(module, source) == []


def test_every_exception_is_one_that_the_code_has():
    """An entry that is no longer needed is removed."""
    printers = {module for module, source in SOURCES.items() if re.search(r"\bprint\(", source)}
    assert set(PRINTERS) <= printers
    assert {module for module, source in SOURCES.items() if "os.write(2" in source} == set(DESCRIPTORS)
