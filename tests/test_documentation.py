"""The pages: docs/index.md lists each page once, and no link is dead.

A heading has the anchor that GitHub gives it.
"""

import re
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
INDEX = DOCS / "index.md"
PAGES = sorted(DOCS.rglob("*.md"))
FENCED = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^()\s]+)\)")


def prose(text):
    """Return a page without its fenced blocks, which have no links and headings."""
    return FENCED.sub("", text)


def slug(heading):
    """Return the anchor of a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).replace("`", "").lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(path):
    """Return the anchors of a page's headings. A repeated anchor gets a number."""
    text = prose(path.read_text(encoding="utf-8"))
    seen, found = Counter(), set(re.findall(r'<a (?:id|name)="([^"]+)"', text))
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", text, re.MULTILINE):
        name = slug(heading)
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return found


def links(text):
    """Return the targets of the links of a page."""
    return LINK.findall(re.sub(r"`[^`]*`", "code", prose(text)))


def dead_links(path, text):
    """Return the relative links of a page to a missing file, or to a missing heading."""
    found = []
    for link in links(text):
        if re.match(r"[a-z][a-z+.-]*:", link):
            continue
        place, _, anchor = unquote(link).partition("#")
        target = (path.parent / place).resolve() if place else path
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("path", [ROOT / "README.md", *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_link_is_dead(path):
    assert dead_links(path, path.read_text(encoding="utf-8")) == []


def test_dead_links_are_found():
    text = """
[a](limits.md) [b](limits.md#stdio) [c](https://example.com/x) [two
lines](no.md) [![picture](no.png)](limits.md#nothing) [`code`](no-code.md) `[d](not-a-link.md)`
```sh
mcpspy [e](not-a-link.md)
```
"""
    assert dead_links(DOCS / "x.md", text) == ["no.md", "no.png", "limits.md#nothing", "no-code.md"]


def test_the_index_lists_each_page_once():
    listed = Counter(link for link in links(INDEX.read_text(encoding="utf-8")) if not link.startswith("#"))
    pages = {str(path.relative_to(DOCS)): 1 for path in PAGES if path != INDEX}
    assert listed == pages


def test_the_index_has_the_four_kinds():
    headings = re.findall(r"^## (.+)$", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["Tutorial", "How-to", "Reference", "Explanation"]


def test_new_pages_are_short_and_narrow():
    """These pages are written to be read from top to bottom."""
    limits = {INDEX: 100, DOCS / "transparency.md": 100, DOCS / "security-model.md": 100}
    limits |= dict.fromkeys((DOCS / "how-to").glob("*.md"), 80)
    for path, most in limits.items():
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= most, path
        assert max(map(len, lines)) <= 120, path
