"""Cache hints: missing, negative, contradictory, ignored (X-04)."""

import sys

import pytest

from mcpspy.conversation.model import Session
from mcpspy.rules.cache import FreshAnswers
from tests.rules.examples import findings, messages, told

COMPLETE = '"resultType":"complete"'
RESULTS = {
    "server/discover": '"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{},"prompts":{}}',
    "tools/list": '"tools":[]',
    "prompts/list": '"prompts":[]',
    "resources/list": '"resources":[]',
    "resources/templates/list": '"resourceTemplates":[]',
    "resources/read": '"contents":[]',
}
PARAMS = {"resources/read": '"uri":"a:b"'}


def asked(method, hints, number=1, params="", at=0):
    params = params or PARAMS.get(method, "")
    meta = f"{{META {params}}}" if params else "{META}"
    return f"""
        @{at} > {number} {method} {meta}
        @{at} < {number} = {{{COMPLETE},{RESULTS[method]}{hints}}}
    """


FRESH = ',"ttlMs":60000,"cacheScope":"public"'


@pytest.mark.parametrize("method", RESULTS)
@pytest.mark.parametrize(
    ("hints", "sentence"),
    [
        ("", 'expected the members "ttlMs" and "cacheScope"'),
        (',"ttlMs":0', 'expected the member "cacheScope"'),
        (',"ttlMs":-1,"cacheScope":"public"', "expected at least 0, got -1"),
        (',"ttlMs":"1","cacheScope":"public"', "expected an integer"),
        (',"ttlMs":0,"cacheScope":"shared"', 'expected "public" or "private"'),
    ],
)
def test_x_04_missing_and_negative_hints_are_errors(method, hints, sentence):
    (found,) = findings(asked(method, hints))
    assert (found.rule, found.severity, found.blame) == ("schema/invalid", "error", "server")
    assert sentence in found.message


@pytest.mark.parametrize("method", RESULTS)
def test_x_04_any_time_and_scope_are_right(method):
    for hints in (',"ttlMs":0,"cacheScope":"public"', ',"ttlMs":9007199254740991,"cacheScope":"private"'):
        assert told(asked(method, hints)) == []


@pytest.mark.parametrize("method", [method for method in RESULTS if method.endswith("list")])
def test_x_04_pages_have_one_scope_and_any_time(method):
    first = asked(method, ',"nextCursor":"b","ttlMs":0,"cacheScope":"private"')
    right = asked(method, ',"ttlMs":5,"cacheScope":"private"', 2, '"cursor":"b"')
    wrong = asked(method, ',"ttlMs":5,"cacheScope":"public"', 2, '"cursor":"b"')
    assert told(first + right) == []
    assert told(first + wrong) == ["#4 cache/page-scope"]


@pytest.mark.parametrize("method", RESULTS)
def test_x_04_who_asks_again_within_the_time_is_told_once(method):
    text = "".join(asked(method, FRESH, n, at=n) for n in (1, 2, 3))
    (found,) = findings(text)
    assert (found.rule, found.severity, found.blame, found.frame) == ("cache/ignored", "info", "client", 3)
    assert f"{method} is requested again after 1.00 s; its last result is fresh for 60.00 s" in found.message


def test_x_04_a_change_costs_the_same_however_many_other_answers_are_fresh():
    """Measure the lines of Python that run, not the time."""

    def lines_of_a_change(answers):
        fresh = FreshAnswers(Session())
        reads = "".join(asked("resources/read", FRESH, n, f'"uri":"a:{n}"') for n in range(answers))
        *found, changed = messages(reads + "@0 < notifications/tools/list_changed")
        for message in found[1::2]:
            fresh.learn(message)
        ran = []

        def trace(frame, event, _):
            ran.append(event)
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            fresh.learn(changed)
        finally:
            sys.settrace(before)
        return len(ran)

    assert lines_of_a_change(99) == lines_of_a_change(9)
