import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcpspy
from mcpspy.spec.revisions import (
    BATCHES,
    HANDSHAKE,
    HTTP_SESSIONS,
    NEWEST_HANDSHAKE,
    PROTOCOL_VERSION,
    R2024_11_05,
    R2025_03_26,
    R2025_06_18,
    R2025_11_25,
    R2026_07_28,
    STATELESS,
    STREAMABLE_HTTP,
    SUBSCRIPTION_ID,
    Era,
    Revision,
    as_of,
    between,
    only,
    since,
    until,
    without,
)
from tests.each import each
from tests.spec.later import LATER, NEWEST, facts

PACKAGE = Path(mcpspy.__file__).parent


def test_there_are_five_revisions():
    assert [revision.value for revision in Revision] == [
        "2024-11-05",
        "2025-03-26",
        "2025-06-18",
        "2025-11-25",
        "2026-07-28",
    ]


def test_the_newest_has_no_handshake_and_the_others_have():
    eras = {revision.value: revision.era for revision in Revision}
    assert eras.pop("2026-07-28") is Era.PER_REQUEST
    assert set(eras.values()) == {Era.HANDSHAKE}
    assert NEWEST_HANDSHAKE is Revision.R2025_11_25


@pytest.mark.parametrize("revision", Revision)
def test_a_revision_is_found_by_its_name(revision):
    assert Revision.of(revision.value) is revision


@pytest.mark.parametrize("name", ["2025-06-19", "", "2025-06-18 ", None, 20250618, True, [], {}, ["2025-06-18"], 1.5])
def test_what_names_no_revision_is_none(name):
    assert Revision.of(name) is None


@given(st.text() | st.none() | st.integers() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
def test_a_peer_may_call_a_revision_anything(name):
    assert Revision.of(name) is None or Revision.of(name).value == name


def test_revisions_are_a_set_without_an_order():
    with pytest.raises(TypeError):
        assert Revision.R2024_11_05 < Revision.R2025_03_26


def test_the_keys_of_meta_are_those_of_the_specification():
    assert PROTOCOL_VERSION == "io.modelcontextprotocol/protocolVersion"
    assert SUBSCRIPTION_ID == "io.modelcontextprotocol/subscriptionId"


def test_the_short_names_are_the_revisions():
    assert list(Revision) == [R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25, R2026_07_28]


@pytest.mark.parametrize(
    ("lifetime", "names"),
    [
        (since(R2024_11_05), "2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28"),
        (since(R2025_11_25), "2025-11-25 2026-07-28"),
        (until(R2025_03_26), "2024-11-05 2025-03-26"),
        (until(R2026_07_28), "2024-11-05 2025-03-26 2025-06-18 2025-11-25 2026-07-28"),
        (between(R2025_03_26, R2025_06_18), "2025-03-26 2025-06-18"),
        (only(R2025_03_26), "2025-03-26"),
        (without(only(R2025_03_26)), "2024-11-05 2025-06-18 2025-11-25 2026-07-28"),
    ],
)
def test_a_lifetime_has_its_revisions_in_the_order_of_publication(lifetime, names):
    assert " ".join(revision.value for revision in lifetime) == names


def test_what_changed_in_a_revision_holds_until_it_changes_again():
    changes = {R2024_11_05: "old", R2025_06_18: "new"}
    assert [as_of(changes, revision) for revision in Revision] == ["old", "old", "new", "new", "new"]


def test_each_revision_begins_by_a_handshake_or_needs_none():
    assert {*HANDSHAKE, *STATELESS} == set(Revision)
    assert not {*HANDSHAKE} & {*STATELESS}
    assert set(HTTP_SESSIONS) == {*STREAMABLE_HTTP} & {*HANDSHAKE}
    assert [revision.value for revision in BATCHES] == ["2025-03-26"]


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The facts of the newest revision, and those of an invented later revision that no code mentions."""
    command = [sys.executable, "-m", "tests.spec.later", tmp_path_factory.mktemp("later")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, cwd=PACKAGE.parent)
    assert done.returncode == 0, done.stderr
    now = json.loads(json.dumps(facts(NEWEST, tmp_path_factory.mktemp("now"))))
    return now, json.loads(done.stdout.replace(LATER, NEWEST))


@each("what", "era traits definitions schema methods rules examples more captures migrations".split())
def test_a_later_revision_has_all_that_the_newest_has(known, what):
    """Every rule, trait and definition; a conversation under the later revision is judged and shown the same."""
    now, later = (json.loads(json.dumps(each[what]).replace(f", {NEWEST}, {NEWEST}", f", {NEWEST}")) for each in known)
    if isinstance(now, dict):
        assert [key for key in now if later.get(key) != now[key]] == []
    assert later == now


def test_the_later_revision_is_there(known):
    now, later = known
    assert len(now["captures"]) >= 2
    assert later["known"] == [*now["known"], NEWEST]
    assert any(found for found, _ in now["examples"].values())
    assert all(now["more"].values())
    assert all(rows for rows, *_ in now["captures"].values())


def asks_for_one(source):
    """Return the expressions that compare with certain revisions, or list revisions in a fixed collection."""
    if "R20" not in source:
        return []
    found = []
    for node in ast.walk(ast.parse(source)):
        parts = {
            ast.Compare: lambda it: [it.left, *it.comparators],
            ast.Tuple: lambda it: it.elts,
            ast.List: lambda it: it.elts,
            ast.Set: lambda it: it.elts,
            ast.MatchValue: lambda it: [it.value],
            ast.Attribute: lambda it: [it.value] if it.attr == "value" else [],
        }.get(type(node), lambda _: [])(node)
        if any(ast.unparse(part).removeprefix("Revision.").startswith("R20") for part in parts):
            found.append(ast.unparse(node))
    return found


@each("path", sorted(PACKAGE.rglob("*.py")))
def test_nothing_asks_for_a_certain_revision(path):
    assert asks_for_one(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "found = message.revision is Revision.R2026_07_28",
        "found = revision is not R2025_11_25",
        "found = revision in (Revision.R2025_06_18, Revision.R2025_11_25)",
        "MODERN = [Revision.R2026_07_28]",
        "MODERN = Revision.R2026_07_28.value",
        "match revision:\n    case Revision.R2026_07_28: pass",
    ],
)
def test_a_planted_question_for_a_certain_revision_is_found(source):
    assert asks_for_one(source)
