"""The sources of the page: the module `names.js` as text, and all sources as one file.

The page must know the names of `mcpspy.filters`, or it would refuse filters that `show --filter` accepts. It shows the
marks and words of the other outputs (`report/words.py`, `conversation/outcomes.py`). So `scripts/write-rules` writes
`names.js`, and a test compares it.

The sources are modules, so that they can be read and checked one by one. The page needs one script, because a page that
is opened from a disk cannot import anything. So the modules are concatenated, each after those that it imports, without
the import lines and without the word `export`; types need no import either. For that, the top-level names of all
modules are unique.

A policy allows only that script and those styles, by their hashes. So no text of a capture can become a script,
wherever it is shown.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import NamedTuple

from mcpspy.conversation.outcomes import EXPECTED
from mcpspy.filters.terms import KINDS, SENDERS, STATUSES
from mcpspy.report.words import ARROWS, MARKS, WAYS
from mcpspy.rules import FORMER, RULES, SEVERITIES
from mcpspy.spec.revisions import Revision

_NAMES = {
    "senders": SENDERS,
    "kinds": KINDS,
    "statuses": STATUSES,
    "revisions": tuple(revision.value for revision in Revision),
    "severities": SEVERITIES,
    "rules": tuple(RULES),
}

_SIGNS = {"ARROWS": ARROWS, "WAYS": WAYS, "MARKS": MARKS, "EXPECTED": EXPECTED}
_WIDTH = 121  # length of a line with its newline


def names_module() -> str:
    """Return the text of `names.js`."""
    members = "".join(_member(key, names) for key, names in _NAMES.items())
    former = "".join(f"  {json.dumps(old)}: {json.dumps(new)},\n" for old, new in FORMER.items())
    return (
        "// The names for filters, and marks. scripts/write-rules writes this module.\n\n"
        f"export const FILTER_NAMES = {{\n{members}}};\n\n"
        "/** By an id that a rule had before: the one that it has now.\n * @type {Record<string, string>} */\n"
        f"export const FORMER_RULES = {{{chr(10) + former if former else ''}}};\n"
        f"\n{''.join(_signs(name, table) for name, table in _SIGNS.items())}"
    )


def _signs(name: str, signs: Mapping[str, str]) -> str:
    members = [f"{key}: {json.dumps(sign, ensure_ascii=False)}" for key, sign in signs.items()]
    line = f"export const {name} = {{ {', '.join(members)} }};\n"
    lines = "".join(f"  {member},\n" for member in members)
    return line if len(line) <= _WIDTH else f"export const {name} = {{\n{lines}}};\n"


def _member(key: str, names: tuple[str, ...]) -> str:
    """Return a list of names, on one line if it fits, as the formatter of the page's sources requires."""
    line = f"  {key}: {json.dumps(names)},\n"
    return line if len(line) <= _WIDTH else f"  {key}: [\n" + "".join(f'    "{name}",\n' for name in names) + "  ],\n"


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
