"""How many requests have failed is the same number wherever it is shown."""

import json
import shutil
from contextlib import closing
from types import SimpleNamespace

import pytest

from mcpspy.browse.library import Library
from mcpspy.browse.timeline import OpenCapture
from mcpspy.capture.reader import Capture
from mcpspy.contract.expectations import Expectations, NoErrors
from mcpspy.report.checked import check
from mcpspy.sharing.page.contents import page_row
from mcpspy.timeline import final_rows
from tests.rules.examples import records
from tests.rules.gate_sessions import TRANSPORTS, save
from tests.rules.test_gate_effects import SCENES
from tests.rules.test_sessions import CLEAN, FAULTY, read
from tests.timelines import CAPTURES

RESPONSES = ("result", "error")
NO_FAILURES = NoErrors(None)
EXPECTED = Expectations((NO_FAILURES,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All golden captures, and all sessions of the rules and of gates as captures."""
    made = tmp_path_factory.mktemp("captures")
    for path in CAPTURES.glob("*.jsonl"):
        shutil.copy(path, made)
    for path in (*CLEAN, *FAULTY):
        save(SimpleNamespace(records=records(read(path)[0])), made / f"{path.stem}.jsonl")
    for transport, start in TRANSPORTS.items():
        for scene in SCENES:
            wire = start("edit")
            scene(wire)
            save(wire, made / f"{scene.__name__}-{transport}.jsonl")
    return made


@pytest.fixture
def objects(run):
    """Run a command and return the JSON objects that it prints."""
    return lambda *words: [json.loads(line) for line in run(*words)[1].split("\n")[:-1]]


def test_every_count_of_failed_requests_is_the_same(folder, objects, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    paths = sorted(folder.glob("*.jsonl"))
    listed = {it["path"]: it["failed"] for it in objects("ls", folder, "--json")}
    tables = objects("sql", "SELECT path, failed FROM captures", folder, "--format", "json")
    library = Library([str(folder)])
    library.look()
    while library.grow(1):
        pass
    counted = {it.path: it.counts.failed for it in library.entries}
    for path in map(str, paths):
        shown = objects("show", path, "--json")
        filtered = objects("show", path, "--json", "--filter", "status:failed")
        found = {
            "ls": listed[path],
            "sql": sum(it["failed"] for it in tables if it["path"] == path),
            "a list of sessions": counted[path],
            "show": sum(it["failed"] and it["kind"] not in RESPONSES for it in shown),
            "a filter": sum(it["kind"] not in RESPONSES for it in filtered),
            "stats": sum(it.get("failed", 0) for it in objects("stats", path, "--json")),
            "while it is recorded": followed(objects("show", path, "--json", "--follow")),
            "an open session": opened(path),
            "an expectation": sum(it.rule == NO_FAILURES.rule for it in check(path, expected=EXPECTED).findings),
            "a shared page": sum(it["failed"] and it["kind"] not in RESPONSES for it in page(path)),
        }
        assert set(found.values()) == {found["show"]}, (path, found)
    assert sum(listed.values()) > 60


def followed(objects):
    """Return the number of failed requests by the latest outcome of each row that is not a response."""
    failed, places = {}, {}
    for it in objects:
        if it["kind"] in RESPONSES and it["request"]:
            own = places.get((it["request"], json.dumps(it["id"])), (it["request"], 0))  # HTTP allows a wrong id
            failed[own] = it["failed"]
        elif "failed" in it and it["kind"] not in RESPONSES:
            place = it["n"], it["part"]
            failed[place] = it["failed"]
            places[it["n"], json.dumps(it.get("id"))] = place
    return sum(failed.values())


def opened(path):
    """Return the number of failed requests in an open session."""
    with closing(OpenCapture(path)) as session:
        while session.grow(1):
            pass
        return session.counts.failed


def page(path):
    """Return the rows of a shared page."""
    capture = Capture(path)
    return [page_row(row, capture.header) for row in final_rows(capture.records, live=False)]
