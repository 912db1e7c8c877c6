"""The facts and findings of mcpspy for one revision, to compare the newest revision with an invented later one.

`python -m tests.spec.later FOLDER` adds the later revision in its own process, by the one line in
`mcpspy/spec/revisions.py` that a maintainer would add, and prints its facts as JSON.
"""

import dataclasses
import importlib.util
import json
import re
import sys
from contextlib import closing
from pathlib import Path

SPEC = importlib.util.find_spec("mcpspy.spec.revisions")  # find_spec does not import the module
SOURCE = Path(SPEC.origin).read_text(encoding="utf-8")
LAST = list(re.finditer(r'^    R[0-9_]+ = "([0-9-]+)"\n', SOURCE, re.MULTILINE))[-1]
NEWEST, LATER = LAST[1], "2999-01-01"
MORE = {  # conversations with findings that depend on the revision, and that no rule example covers
    "a request without a session in a session": """
        = 2025-06-18
        > 2 tools/list {META}
    """,
    "a schema that only an older dialect allows": """
        > 1 tools/list {META}
        < 1 = {"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{"name":"plot","inputSchema":\
{"type":"object","properties":{"point":{"type":"array","items":[{"type":"number"},{"type":"number"}]}}}}]}
    """,
}


def add_revision():
    """Replace the enumeration of revisions by one with one more member, before any module imports it."""
    assert SPEC.name not in sys.modules
    module = importlib.util.module_from_spec(SPEC)
    sys.modules[SPEC.name] = sys.modules["mcpspy.spec"].revisions = module
    source = f'{SOURCE[: LAST.end()]}    R2999_01_01 = "{LATER}"\n{SOURCE[LAST.end() :]}'
    exec(compile(source, SPEC.origin, "exec"), module.__dict__)  # noqa: S102 (our own source)


def facts(name, folder):
    """Return all facts that depend on the revision `name`; captures that use it are written to `folder`."""
    from mcpspy.rules import RULES
    from mcpspy.spec import revisions
    from mcpspy.spec.definitions import definitions, schema
    from mcpspy.spec.methods import methods
    from tests.findings import MIGRATIONS
    from tests.timelines import CAPTURES

    captures = sorted(CAPTURES.glob("*.jsonl"))
    revision = revisions.Revision.of(name)
    lifetimes = {key: value for key, value in vars(revisions).items() if key.isupper() and isinstance(value, tuple)}
    return {
        "known": [each.value for each in revisions.Revision],
        "era": revision.era.value,
        "traits": {key: revision in value for key, value in lifetimes.items()},
        "definitions": definitions(revision),
        "schema": schema(revision),
        "methods": {key: dataclasses.asdict(value) for key, value in methods(revision).items()},
        "rules": {rule.id: [revision in rule.revisions, rule.url(revision)] for rule in RULES.values()},
        "examples": {rule.id: [_examined(text, name) for text in (rule.fails, rule.passes)] for rule in RULES.values()},
        "more": {key: _examined(text, name) for key, text in MORE.items()},
        "captures": {path.stem: _spoken(path, name, folder) for path in captures if NEWEST in path.read_text()},
        "migrations": {path.stem: _findings(path, revision) for path in captures if path.stem in MIGRATIONS},
    }


def _examined(text, name):
    """Return the findings in an example, with the newest revision renamed to `name`."""
    from tests.rules import examples, notation

    notation.META["io.modelcontextprotocol/protocolVersion"] = name
    return [dataclasses.asdict(finding) for finding in examples.findings(text.replace(NEWEST, name))]


def _spoken(path, name, folder):
    """Return rows, findings, peers and lanes of a capture, with the newest revision renamed to `name`."""
    from mcpspy.browse.timeline import OpenCapture
    from mcpspy.tui.model.lanes import Lanes
    from tests.browse.test_timeline import grow
    from tests.timelines import timeline

    copy = Path(folder) / path.name
    copy.write_bytes(path.read_bytes().replace(NEWEST.encode(), name.encode()))
    with closing(grow(OpenCapture(str(copy)))) as session:
        lanes = Lanes(session)
        while lanes.grow(10.0):
            pass
        announced = session.announced
        peers = [peer and dataclasses.asdict(peer) for peer in (announced.client, announced.server)]
        waits = [repr(lanes.at(place)) for place in range(len(lanes))]
    return [timeline(copy), _findings(copy, None), peers, waits]


def _findings(path, revision):
    """Return the findings in a capture; judged by `revision`, if it is given."""
    from mcpspy.report.checked import check

    return [dataclasses.asdict(finding) for finding in check(str(path), revision).findings]


if __name__ == "__main__":
    add_revision()
    print(json.dumps(facts(LATER, sys.argv[1])))
