"""One table of marks, arrows and colours: each name has one, and no other module of the package has a second table."""

import ast
import re
from pathlib import Path

import mcpspy
from mcpspy.filters.terms import SENDERS
from mcpspy.report import words
from mcpspy.rules import SEVERITIES
from tests.each import each

PACKAGE = Path(mcpspy.__file__).parent
TABLES = ("report/words.py", "sharing/page/names.js")
"""The table, and the module for pages that is made from it."""
BAD_OUTCOMES = '"error", "tool-error", "refused"'  # how `FAILING` of conversation/outcomes.py begins
SIGNS = re.compile("[→←✗✓▸▾]")
NOT_MARKS = {"sharing/page/keys.js": "names of keys", "sharing/page/page.css": "a style has no access to a script"}
BY_SEVERITY = {
    "cli/options/shared.py": "names for the command line, which imports no rules",
    "report/checked.py": "thresholds",
    "report/findings.py": "levels of SARIF and of GitHub",
    "rules/rule.py": "the severities themselves",
    "telemetry/captured.py": "levels of OpenTelemetry",
    "tui/message/facts.py": "styles of a document",
}


@each(
    "table, keys",
    [
        (words.ARROWS, SENDERS),
        (words.WAYS, SENDERS),
        (words.MARKS, SEVERITIES),
        ({it: words.COLOURS[it] for it in words.COLOURS if it in SEVERITIES}, SEVERITIES),
    ],
)
def test_every_sender_and_every_severity_has_one(table, keys):
    assert tuple(table) == tuple(keys)
    assert len(set(table.values())) == len(keys)


def test_colours_that_are_named_exist():
    assert {*words.KINDS.values(), *words.PREVIEWS.values(), "error"} <= set(words.COLOURS)


def second_tables(sources):
    """Return the modules that write a sign themselves, or have a table by severity or of bad outcomes of their own."""
    found = []
    for name, source in sources.items():
        if name in TABLES:
            continue
        if SIGNS.search(source) and name not in NOT_MARKS:
            found.append(f"{name} has signs")
        if BAD_OUTCOMES in source and name != "conversation/outcomes.py":
            found.append(f"{name} has outcomes")
        displays = ast.walk(ast.parse(source)) if name.endswith(".py") else ()
        keys = [
            {it.value for it in getattr(node, "keys", getattr(node, "elts", ())) if isinstance(it, ast.Constant)}
            for node in displays
            if isinstance(node, ast.Dict | ast.Tuple | ast.List)
        ]
        if any(set(SEVERITIES) <= it for it in keys) and name not in BY_SEVERITY:
            found.append(f"{name} has severities")
    return found


def test_no_module_has_a_second_table():
    files = [it for it in PACKAGE.rglob("*") if it.suffix in (".py", ".js", ".css", ".tcss", ".html")]
    assert second_tables({str(it.relative_to(PACKAGE)): it.read_text(encoding="utf-8") for it in files}) == []


def test_a_planted_second_table_is_found():
    planted = {
        "tui/a.py": 'ARROWS = {"client": "→", "server": "←"}',
        "tui/b.py": 'BAD = ("error", "tool-error", "refused", "broken")',
        "cli/c.py": 'COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}',
        "sharing/page/d.js": 'const ARROWS = { client: "→" };',
        "cli/fine.py": 'print("error", "warning")',
    }
    found = ["tui/a.py has signs", "tui/b.py has outcomes", "cli/c.py has severities", "sharing/page/d.js has signs"]
    assert second_tables(planted) == found
