"""The shapes agree with the types that the Python SDK derives from the official schemas (PyPI `mcp-types`)."""

import json
import subprocess

import pytest

from mcpspy.spec.definitions import definitions
from mcpspy.spec.revisions import Revision
from tests.optional import require_peers
from tests.peers import prepare

KNOWN = {"2025-11-25": 120, "2026-07-28": 124}
"""The number of definitions with members that have the same name in the package and in the specification."""


@pytest.fixture(scope="module")
def theirs():
    require_peers("python2")
    script = f"{prepare.HERE}/python2/shapes.py"
    run = subprocess.run([prepare.python("python2"), script], capture_output=True, check=True, timeout=60)
    return json.loads(run.stdout)


@pytest.mark.parametrize("revision", KNOWN)
def test_every_class_has_the_members_of_our_definition(theirs, revision):
    ours = definitions(Revision(revision))
    shared = {name: shape for name, shape in theirs[revision].items() if name in ours and "properties" in ours[name]}
    different = {name: found for name, shape in shared.items() if (found := difference(shape, ours[name]))}
    assert different == {}
    assert len(shared) >= KNOWN[revision]


def difference(theirs, ours):
    """Return the members that only one side has or requires; constants are ignored, as classes give them defaults."""
    members, required = ours["properties"], ours.get("required", [])
    mine = {name: name in required and "const" not in members[name] for name in members}
    their = {name: needed and "const" not in members.get(name, {}) for name, needed in theirs.items()}
    return {
        name: (their.get(name), mine.get(name)) for name in their.keys() | mine if their.get(name) != mine.get(name)
    }
