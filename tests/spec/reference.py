"""The official schemas, if they are available: `../shared/mcp-spec` beside the repository, or $MCPSPY_SPEC."""

import json
import os
from functools import cache
from itertools import chain
from pathlib import Path

import pytest

from mcpspy.spec.revisions import Revision

FOLDER = Path(os.environ.get("MCPSPY_SPEC") or Path(__file__).parents[3] / "shared" / "mcp-spec")
EXAMPLES = sorted((FOLDER / "2026-07-28" / "examples").glob("*/*.json"))

needed = pytest.mark.skipif(
    not FOLDER.is_dir(),
    reason="the official schemas are not here; set MCPSPY_SPEC to a folder with <revision>/schema.json",
)

DIFFERENCES = {
    "schema.ts, the source of truth, says number where the generator of schema.json wrote integer: a form that asks for"
    " a number could not be answered with 1.5, nor a setting be null": [
        ("2025-06-18", "ElicitResult", "properties content additionalProperties type", "string number boolean"),
        ("2025-11-25", "ElicitResult", "properties content additionalProperties anyOf 1 type", "string number boolean"),
        ("2026-07-28", "ElicitResult", "properties content additionalProperties anyOf 1 type", "string number boolean"),
        ("2026-07-28", "JSONValue", "anyOf 2 type", "string number boolean null"),
    ],
}
"""Intended differences: the reason, and for each place its revision, definition, path, and the types in mcpspy."""


@cache
def corrected(revision: Revision) -> dict:
    """Return the official definitions of a revision in 2020-12 form, with the intended differences applied."""
    schema = json.loads((FOLDER / revision.value / "schema.json").read_text().replace("#/definitions/", "#/$defs/"))
    definitions = schema.get("$defs") or schema["definitions"]
    for where, name, path, ours in chain.from_iterable(DIFFERENCES.values()):
        if where == revision.value:
            *steps, last = path.split()
            place = definitions[name]
            for step in steps:
                place = place[int(step) if isinstance(place, list) else step]
            assert place[last] == ["string", "integer", "boolean"], f"{where} {name}: the official schema has changed"
            place[last] = ours.split()
    return definitions
