"""docs/field.md explains every requirement id that code, tests, benchmarks and docs cite."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
CITED = re.compile(r"\b(?:S|F|H|O|M|I|T|CF|R|C|X|P|A|V|W)-[0-9]{2}\b")
EXPLAINED = re.compile(r"^- \*\*([A-Z]{1,2}-[0-9]{2})\*\* \S", re.MULTILINE)
FOLDERS = {"mcpspy": "*.py", "tests": "*.py", "benchmarks": "*.py", "docs": "*.md"}


def unexplained(texts, page):
    """Return, by path, the ids that the texts cite and that the page does not explain."""
    known = set(EXPLAINED.findall(page))
    return {path: missing for path, text in texts.items() if (missing := sorted(set(CITED.findall(text)) - known))}


def test_every_cited_id_is_explained_once():
    page = (ROOT / "docs" / "field.md").read_text(encoding="utf-8")
    files = [path for folder, glob in FOLDERS.items() for path in (ROOT / folder).rglob(glob)]
    texts = {str(path): path.read_text(encoding="utf-8") for path in files if path != Path(__file__)}
    assert not unexplained(texts, page)
    explained = EXPLAINED.findall(page)
    assert len(explained) == len(set(explained))


def test_a_planted_id_is_found():
    page = "- **S-01** Disks fill up.\n- **S-02**\nS-03 stands in a sentence.\n"
    texts = {"a.py": "S-01, S-02; S-03", "b.md": "S-01; UTF-16, XS-04, S-123"}
    assert unexplained(texts, page) == {"a.py": ["S-02", "S-03"]}
