"""Hooks for MkDocs: they set the order of the pages, and add pages outside of `docs/`.

The navigation is read from docs/index.md, so there is only one list of pages. Pages at the top level that docs/ links
to, such as SECURITY.md, become pages of the site.
"""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"(?<=\]\()([^()\s:#]+\.md)(?=[)#])")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Set the navigation: the sections of docs/index.md with the pages that each lists, and the pages outside."""
    sections = re.split(r"^## (.+)$", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    nav = [{title: LINK.findall(text)} for title, text in zip(sections[::2], sections[1::2], strict=True)]
    config.nav = [{"Documentation": "index.md"}, *nav, {"Project": outside()}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside of docs/."""
    for place in outside():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / place)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Change the links between docs/ and the pages outside, because on the site all pages are in one tree."""
    source = page.file.src_uri
    folder = posixpath.dirname(source if source in outside() else f"docs/{source}")

    def on_site(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1])).removeprefix("docs/")
        return posixpath.relpath(target, posixpath.dirname(source) or ".")

    return LINK.sub(on_site, markdown)


def outside() -> list[str]:
    """Return the pages outside of docs/ that its pages link to, as paths from the top level."""
    found = set()
    for path in (ROOT / "docs").rglob("*.md"):
        for link in LINK.findall(path.read_text(encoding="utf-8")):
            target = (path.parent / link).resolve()
            if not target.is_relative_to(ROOT / "docs") and target.is_file():
                found.add(target.relative_to(ROOT).as_posix())
    return sorted(found)
