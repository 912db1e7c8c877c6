"""A capture checked against expectations: the rule examples, captures that are still recorded, servers by name."""

import pytest

from mcpspy.contract.watch import Failure, SeenCall, Watcher, is_about
from mcpspy.rules import RULES
from tests.contract.examples import EXPECTED, failures, watched
from tests.each import each

OF_EXPECTATIONS = [rule for rule in RULES.values() if rule.id.startswith("expect/")]


def test_every_rule_has_an_example():
    assert EXPECTED.keys() == {rule.id for rule in OF_EXPECTATIONS}


@each("rule", OF_EXPECTATIONS, ids=lambda rule: rule.id)
def test_the_example_that_fails_fails_and_the_one_that_passes_passes(rule):
    found, outcomes = watched(rule.fails, EXPECTED[rule.id])
    assert {it.rule for it in found} == {rule.id}
    assert {it.severity for it in found} == {"error"}
    assert False in [it.passed for it in outcomes]
    found, outcomes = watched(rule.passes, EXPECTED[rule.id])
    assert [it for it in found if it.rule == rule.id] == []
    assert all(it.passed for it in outcomes if it.rule == rule.id)


@pytest.mark.parametrize("live", [False, True])
def test_of_a_capture_that_is_being_written_nothing_is_missing(live):
    text = '= 2025-06-18\n> 2 tools/call {"name":"bad"}'
    toml = '[[tool]]\nname = "good"\n[[tool]]\nname = "bad"\nnever = true\n'
    found, outcomes = watched(text, toml, live=live)
    assert [it.rule for it in found] == (["expect/never"] if live else ["expect/never", "expect/called"])
    assert [it.passed for it in outcomes] == [None if live else False, False]


def test_a_finding_is_about_one_expectation():
    text = '= 2025-06-18\n> 2 tools/call {"name":"a"}'
    found, outcomes = watched(text, '[[tool]]\nname = "b"\n[[tool]]\nname = "c"\n')
    assert [[is_about(it, met) for met in outcomes] for it in found] == [[True, False], [False, True]]
    assert [it.title for it in outcomes] == ["b is called", "c is called"]


def test_expectations_are_about_a_server_where_they_name_one():
    toml = '[[tool]]\nname = "a"\nserver = "wea*"\n[[tool]]\nname = "b"\nserver = "files"\n'
    assert [message for *_, message in failures("= 2025-06-18", toml)] == [
        "expected that a is called; there was no call"
    ]
    assert [it.title for it in watched("= 2025-06-18", toml, name="files")[1]] == ["b is called, of server files"]
    assert failures("= 2025-06-18", toml, name="other") == []
    whole = 'server = "weather"\n[session]\nno_errors = true\n'
    assert len(watched("= 2025-06-18", whole)[1]) == 1
    assert watched("= 2025-06-18", whole, name="other") == ([], ())


def test_the_title_of_an_expectation_cannot_break_out():
    _, (outcome,) = watched("= 2025-06-18", '[[tool]]\nname = "a\\u001b[2J\\n"\n')
    assert outcome.title.isprintable()


def test_a_watcher_that_looks_at_nothing_finds_nothing():
    watcher = Watcher()
    found = [watcher.add(None), watcher.called(SeenCall(1, 0, "a", {})), watcher.answered(None, 1), watcher.end()]
    assert [list(it) for it in found] == [[], [], [], []]


def test_a_failure_is_about_the_whole_capture_unless_it_names_a_frame():
    assert Failure("x").frame == 1
