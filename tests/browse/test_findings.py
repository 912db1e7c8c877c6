"""Findings in groups that fold. A line keeps its identity when sorting moves it."""

import pytest

from mcpspy.browse import findings as model
from mcpspy.browse.findings import Outline, OutlineLine, SessionFindings, about
from mcpspy.rules import Finding


def finding(rule="tools/arguments", severity="error", blame="client", frame=5, **fields):
    told = {"part": 0, "related": (), "pointer": "/params", "message": "it is wrong", "revision": None}
    return Finding(rule, severity, blame, frame, **(told | {"spec": "https://spec/page"} | fields))


def filled(*findings):
    found = SessionFindings()
    for each in findings:
        found.add(each)
    return found


def told(outline):
    """Return each line as text: a rule and its count, or the frame of a finding."""
    lines = [outline.at(line) for line in range(len(outline))]
    return [f"#{at.finding.frame}" if at.finding else f"{at.group.rule} {at.group.count}" for at in lines]


MIXED = [
    finding("a/info", "info", frame=7),
    finding("a/info", "info", frame=8),
    finding("b/rare", frame=9),
    finding("c/often", frame=9),
    finding("c/often", frame=10),
    finding("d/warn", "warning", "server", frame=11),
]


def test_a_frame_knows_what_was_found_of_it_and_how_bad_the_worst_is():
    found = filled(*MIXED)
    assert [each.rule for each in found.of(9)] == ["b/rare", "c/often"]
    assert (found.worst(9), found.worst(11), found.worst(1)) == ("error", "warning", None)
    assert found.counts == {"error": 3, "warning": 1, "info": 2}


def test_the_worst_comes_first_and_of_those_the_most_frequent():
    assert told(Outline(filled(*MIXED).groups.values())) == ["c/often 2", "b/rare 1", "d/warn 1", "a/info 2"]


def test_one_rule_is_as_many_groups_as_there_are_severities_and_sides_to_blame():
    found = filled(finding(), finding(blame="server"), finding(severity="info"), finding())
    assert sorted((group.severity, group.blame, group.count) for group in found.groups.values()) == [
        ("error", "client", 2),
        ("error", "server", 1),
        ("info", "client", 1),
    ]


def test_a_group_unfolds_and_folds():
    outline = Outline(filled(*MIXED).groups.values())
    group = outline.at(0).group
    outline.fold(group, unfold=True)
    assert told(outline)[:4] == ["c/often 2", "#9", "#10", "b/rare 1"]
    assert outline.line_of(OutlineLine(group, 1)) == 2
    outline.fold(group, unfold=False)
    assert len(outline) == 4
    assert outline.line_of(OutlineLine(group, 1)) == 0, "its group, now that it is folded away"
    outline.fold_all(unfold=True)
    assert len(outline) == 10
    outline.fold_all(unfold=False)
    assert len(outline) == 4


def test_a_line_is_found_again_when_the_order_has_changed():
    found = filled(*MIXED)
    outline = Outline(found.groups.values())
    rare = outline.at(1)
    outline.fold(rare.group, unfold=True)
    looked_at = outline.at(2)
    for frame in (20, 21):
        found.add(finding("b/rare", frame=frame))
    found.add(finding("e/new", frame=22))
    outline.arrange()
    assert told(outline)[:5] == ["b/rare 3", "#9", "#20", "#21", "c/often 2"]
    assert outline.line_of(looked_at) == 1
    assert outline.line_of(OutlineLine(rare.group)) == 0


def test_what_is_too_much_is_counted_and_not_kept(monkeypatch):
    monkeypatch.setattr(model, "FRAMES", 3)
    monkeypatch.setattr(model, "OF_ONE", 2)
    found = filled(*(finding(frame=frame) for frame in (1, 1, 1, 2, 3, 4, 5)))
    assert found.counts["error"] == 7
    assert [len(found.of(frame)) for frame in (1, 2, 3, 4, 5)] == [2, 1, 1, 0, 0]
    outline = Outline(found.groups.values())
    outline.fold_all(unfold=True)
    assert told(outline) == ["tools/arguments 7", "#1", "#1", "#2", "#3", "tools/arguments 7"]
    assert outline.at(5).finding is None
    assert outline.at(5).number == 4


def test_what_a_group_of_rules_has_found_can_be_forgotten():
    """P-01: this happens when other clients are chosen."""
    refused = [finding("compat/tool-name", frame=frame) for frame in (1, 2, 2)]
    found = filled(*refused, finding("tools/arguments", frame=2))
    outline = Outline(found.groups.values())
    outline.fold_all(unfold=True)
    place = outline.at(3)
    assert place.finding is refused[2]
    assert found.drop("compat/") == [1, 2]
    assert [it.rule for it in found.of(2)] == ["tools/arguments"]
    assert (found.of(1), found.worst(1), found.counts["error"]) == ((), None, 1)
    outline.arrange()
    assert told(outline) == ["tools/arguments 1", "#2"]
    assert outline.line_of(place) == 0, "it is gone"
    found.add(refused[0])
    outline.arrange()
    assert outline.line_of(place) == outline.line_of(place._replace(number=0)), "another has taken its place"


def test_a_finding_is_explained_with_its_place_and_its_page():
    group = filled(finding("schema/unknown-method", related=(1, 2))).groups.popitem()[1]
    lines = about(OutlineLine(group, 0))
    assert lines[0] == "#5: it is wrong at /params, see #1, #2"
    assert lines[1] == "schema/unknown-method · error · client"
    assert lines[2].startswith("No revision and no known extension has this method")
    assert lines[3].startswith("fix (client): Correct the name")
    assert lines[4].startswith("meanwhile (server): Answer the request with the error -32601")
    assert lines[5] == "see https://spec/page"
    assert about(OutlineLine(group))[-1].startswith("see https://modelcontextprotocol.io/specification/")


@pytest.mark.parametrize("text", ["\x1b[31m", "\u202e", "\ud800", "x" * 100_000])
def test_captured_text_in_an_explanation_is_made_harmless(text):
    group = filled(finding(message=text, pointer=f"/{text}")).groups.popitem()[1]
    line = about(OutlineLine(group, 0))[0]
    assert line.isprintable()
    assert len(line) < 1000


def test_opinions_about_the_run_are_shown_where_somebody_asks_for_them():
    found = filled(finding("ops/loop", "warning", frame=5), finding("b/rare", frame=9))
    assert (list(found.groups), found.of(5), found.counts["warning"]) == ([("error", "b/rare", "client")], (), 0)
    assert found.show_operational(wanted=True) == [5]
    assert found.show_operational(wanted=True) == []
    assert (found.worst(5), found.counts["warning"]) == ("warning", 1)
    assert found.add(finding("ops/loop", "warning", frame=6))
    assert found.show_operational(wanted=False) == [5, 6]
    assert (found.of(6), found.counts["warning"]) == ((), 0)
    assert not found.add(finding("ops/loop", "warning", frame=7))
    assert found.show_operational(wanted=True) == [5, 6, 7]
