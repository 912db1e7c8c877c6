"""The names that the page's filter knows, as the module of JavaScript that has them (`names.js`).

The page must know what `mcpspy.filters` knows, or it would refuse filters that `show --filter` takes. So that module is
written by `scripts/write-rules`, and a test compares it.
"""

import json

from mcpspy.filters.terms import KINDS, SENDERS, STATUSES
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

_WIDTH = 121  # of a line with its end


def module() -> str:
    """The text of `names.js`."""
    members = "".join(_member(key, names) for key, names in _NAMES.items())
    former = "".join(f"  {json.dumps(old)}: {json.dumps(new)},\n" for old, new in FORMER.items())
    return (
        "// The names that filters know. scripts/write-rules writes this module.\n\n"
        f"export const FILTER_NAMES = {{\n{members}}};\n\n"
        "/** By an id that a rule had before: the one that it has now.\n * @type {Record<string, string>} */\n"
        f"export const FORMER_RULES = {{{chr(10) + former if former else ''}}};\n"
    )


def _member(key: str, names: tuple[str, ...]) -> str:
    """A list of names, on one line where that has room, as the formatter of the page's sources wants it."""
    line = f"  {key}: {json.dumps(names)},\n"
    return line if len(line) <= _WIDTH else f"  {key}: [\n" + "".join(f'    "{name}",\n' for name in names) + "  ],\n"
