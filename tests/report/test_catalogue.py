"""The explanations of the rules; `docs/rules.md` matches the table of rules."""

import re
from pathlib import Path

import pytest

from mcpspy.report.catalogue import NOTATION, document, explanation, overview
from mcpspy.rules import RULES
from tests.each import each

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "rules.md"
EACH = each("rule", RULES.values(), ids=lambda rule: rule.id)


@pytest.fixture(scope="module")
def written():
    return document()


def test_the_document_is_current(written):
    """After a change of the rules, run `scripts/write-rules`."""
    assert DOCUMENT.read_text(encoding="utf-8") == written


def test_the_overview_has_every_rule_once_below_its_group():
    lines = overview().splitlines()
    assert [line.split()[0] for line in lines if line.startswith("  ")] == sorted(RULES)
    assert {line for line in lines if line and "/" not in line and " " not in line} == {
        rule.partition("/")[0] for rule in RULES
    }


@EACH
def test_a_rule_is_explained_with_both_examples_and_its_fix(rule, written):
    text = explanation(rule)
    assert text.startswith(f"{rule.id}: {rule.severity}\n")
    for expected in (rule.explanation, rule.url(None), "this fails", "this passes", "revisions  ", "blame      "):
        assert expected in text
    for example in (rule.fails, rule.passes):
        for line in filter(None, map(str.strip, example.splitlines())):
            assert f"  {line}\n" in text
            assert f"\n{line}\n" in written
    advice = rule.advice()
    assert len(advice) == 1 + bool(rule.meanwhile)
    for title, fix in advice:
        assert f"\n{title}\n  {fix}\n" in text
        assert f"\n- {title}: {fix}\n" in written


@each(
    "rule, words",
    [
        ("tools/arguments", "the client"),
        ("tools/structured-content", "the server"),
        ("tools/structured-content", "2025-06-18 and later"),
        ("lifecycle/initialize-twice", "2024-11-05 to 2025-11-25"),
        ("jsonrpc/batch", "every revision except 2025-03-26"),
        ("mrtr/state-missing", "2026-07-28 and later"),
        ("pairing/unanswered", "the responder"),
        ("http/accept", "the client"),
        ("jsonrpc/id-null", "the sender"),
        ("jsonrpc/id-null", "every revision"),
    ],
)
def test_a_rule_says_when_it_holds_and_who_is_to_blame(rule, words):
    assert f"  {words}\n" in explanation(RULES[rule])


def test_the_overview_is_wrapped_below_its_column():
    lines = overview(80).splitlines()
    assert all(len(line) <= 80 or " " not in line[45:] for line in lines)
    assert [line.split()[0] for line in lines if line[:3].strip()[:1] and "/" in line[:40]] == sorted(RULES)
    assert overview(80).split() == overview().split()
    assert overview(40) == overview(), "the terminal does as it can"


@EACH
def test_prose_is_wrapped_at_the_width_of_a_terminal(rule):
    narrow, examples = explanation(rule, 60), explanation(rule).partition("\nthis fails\n")[2]
    assert all(len(line) <= 60 for line in narrow.splitlines() if line not in examples and "https:" not in line)
    assert narrow.split() == explanation(rule).split()


def test_every_line_of_an_example_is_in_the_notation_that_is_explained():

    def marks_of(text):
        return {re.sub(r"^@\d+", "@", line.split()[0]) for line in text.splitlines() if line.strip()}

    marks = marks_of(NOTATION.rpartition("\n\n")[0])
    for rule in RULES.values():
        for example in (rule.fails, rule.passes):
            assert marks_of(example) <= marks
