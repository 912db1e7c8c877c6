"""Texts for people avoid phrases that have to be read twice. The list grows with each phrase that stops a reader.

The test covers the README, the docs (those of commands, rules and keys are generated from tables of the package),
the changelog, and every string of the package that is not a docstring.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AVOIDED = (
    "to blame", "(?<!there )is none", "(?<!there )are none", "of which", "as it came", "as they came", "is said",
    "are said", "was said", "were said", "all the same", "stands between", "stand between", "be the server",
    "be the client", "coded body", "taken apart", "read along", "lets in", "gets along", "slip of the pen",
    "is no name", "is no URI", "may stand", "anybody's guess", "upon which", "may yet be", "said once", "had come",
    "nothing structured", "stands? twice", "takes? no tool", "goes on unrecorded", "what is no",
    "(?<!there )is no (?:JSON|message|method|setting|finding|request|member|table|file|directory)",
)  # fmt: skip
PATTERN = re.compile(rf"(?<!\w)(?:{'|'.join(AVOIDED)})(?!\w)", re.IGNORECASE)
MEASURED = ("performance.md", "conformance.md")  # records of measurements
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name not in MEASURED),
]


def docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Yield the docstrings of modules, classes, functions and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def strings(path: Path) -> Iterator[str]:
    """Yield the strings of a module that are not docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    left_out = set(map(id, docstrings(tree)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
            yield " ".join(node.value.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_is_written_plainly(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert [text[max(0, it.start() - 40) : it.end() + 20] for it in PATTERN.finditer(text)] == []


def test_texts_of_the_package_are_written_plainly():
    found = [
        f"{path.relative_to(ROOT)}: {text[:80]}"
        for path in sorted((ROOT / "mcpspy").rglob("*.py"))
        for text in strings(path)
        if PATTERN.search(text)
    ]
    assert found == []


def test_a_turn_to_avoid_is_found():
    assert PATTERN.search("Who is to blame?")
    assert not PATTERN.search("The answer is nonetheless said.")
