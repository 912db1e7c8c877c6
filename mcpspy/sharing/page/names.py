"""The names that the page's filter knows, and the words and signs it shows, as the JavaScript module `names.js`.

The page must know the names of `mcpspy.filters`, or it would refuse filters that `show --filter` accepts. It shows the
marks and words of the other outputs (`report/words.py`, `conversation/outcomes.py`). So `scripts/write-rules` writes
that module, and a test compares it.
"""

import json
from collections.abc import Mapping

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


def module() -> str:
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
