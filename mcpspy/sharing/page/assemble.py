"""The page as one file: its frame, its styles and its JavaScript modules, joined.

The sources are modules, so that they can be read and checked one by one. The page needs one script, because a page that
is opened from a disk cannot import anything. So the modules are concatenated, each after those that it imports, without
the import lines and without the word `export`; types need no import either. For that, the top-level names of all
modules are unique.

A policy allows only that script and those styles, by their hashes. So no text of a capture can become a script,
wherever it is shown.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple

_IMPORT = re.compile(r'^import\s(?:[^;"]*\sfrom\s)?"\./([\w-]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=async function|function|const|let|class)", re.MULTILINE)
_ALIAS = re.compile(r'^/\*\* @typedef \{import\("\./[\w-]+\.js"\)\.(\w+)\} \1 \*/\n', re.MULTILINE)
_IMPORTED_TYPE = re.compile(r'import\("\./[\w-]+\.js"\)\.')
_FRAME, _STYLES, _FIRST = "page.html", "page.css", "main.js"
_STYLES_PLACE = '<link rel="stylesheet" href="page.css">'
_SCRIPT_PLACE = '<script type="module" src="main.js"></script>'
_POLICY_PLACE = '<meta charset="utf-8">'


class PageFrame(NamedTuple):
    """The text of the page around its embedded elements."""

    before: str
    after: str


def page() -> PageFrame:
    """Return the page; the elements with the capture and the session belong between its two parts."""
    folder = files("mcpspy.sharing.page")
    texts = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir() if each.name.endswith(".js")}
    frame, styles = (folder.joinpath(name).read_text(encoding="utf-8") for name in (_FRAME, _STYLES))
    script = f'"use strict";\n{one_script(texts)}'
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(styles)}'; img-src data:; "
        "media-src data:; base-uri 'none'; form-action 'none'"
    )
    whole = frame.replace(
        _POLICY_PLACE, f'{_POLICY_PLACE}\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    ).replace(_STYLES_PLACE, f"<style>{styles}</style>")
    before, _, after = whole.partition(_SCRIPT_PLACE)
    return PageFrame(before, f"<script>{script}</script>{after}")


def one_script(modules: Mapping[str, str]) -> str:
    """Return modules, by the names of their files, as one classic script."""
    return "\n".join(_bare(modules[name]) for name in _in_order(modules))


def _bare(source: str) -> str:
    for part in (_IMPORT, _ALIAS, _EXPORT, _IMPORTED_TYPE):
        source = part.sub("", source)
    return source.strip() + "\n"


def _in_order(modules: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of all modules that the first one needs, each after those that it imports."""
    done: set[str] = set()

    def visit(name: str) -> Iterator[str]:
        if name not in done:
            done.add(name)
            for other in _IMPORT.findall(modules[name]):
                yield from visit(other)
            yield name

    return visit(_FIRST)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
