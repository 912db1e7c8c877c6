"""Texts for people avoid phrases that have to be read twice. The list grows with each phrase that stops a reader.

The test covers the README, the docs (those of commands, rules and keys are generated from tables of the package),
the changelog, the pages for contributors, and every string and docstring of the package.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
AVOIDED = (
    "to blame", "(?<!there )is none", "(?<!there )are none", "of which",
    "as it came", "as they came", "is said", "had gone", "has gone", "be had", "goes by", "lets? go", "lest", "whoever",
    "are said", "was said", "were said", "all the same", "stands between", "stand between", "be the server",
    "be the client", "coded body", "taken apart", "read along", "lets in", "gets along", "slip of the pen",
    "is no name", "is no URI", "may stand", "anybody's guess", "upon which", "may yet be", "said once", "had come",
    "nothing structured", "stands? twice", "takes? no tool", "goes on unrecorded", "what is no",
    "(?<!there )is no (?:JSON|message|method|setting|finding|request|member|table|file|directory)", "(?<!-)anew",
    "stands? (?:at|behind)", "dialled", "what stood", "for it is", "hung up", "hangs? up", "insists? on", "as ever",
    "nobody (?:has )?asked", "as it were", "said so", "in vain", "what (?:is|was) said", "thereof", "upon", "save for",
    "of its own accord",
)  # fmt: skip
PATTERN = re.compile(rf"(?<!\w)(?:{'|'.join(AVOIDED)})(?!\w)", re.IGNORECASE)
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]


def strings(path: Path) -> Iterator[str]:
    """Yield the strings of a module, with its docstrings."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
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
