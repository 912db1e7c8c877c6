"""Cache hints: missing, negative, contradictory, ignored (X-04)."""

import sys

import pytest

from mcpspy.conversation.history import SessionHistory
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
        ("", 'expected the member "ttlMs"'),
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


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_x_04_older_revisions_have_no_hints(revision):
    assert told(f'= {revision}\n> 2 tools/list\n< 2 = {{"tools":[]}}') == []


@pytest.mark.parametrize("method", [method for method in RESULTS if method.endswith("list")])
def test_x_04_pages_have_one_scope_and_any_time(method):
    first = asked(method, ',"nextCursor":"b","ttlMs":0,"cacheScope":"private"')
    right = asked(method, ',"ttlMs":5,"cacheScope":"private"', 2, '"cursor":"b"')
    wrong = asked(method, ',"ttlMs":5,"cacheScope":"public"', 2, '"cursor":"b"')
    assert told(first + right) == []
    assert told(first + wrong) == ["#4 cache/page-scope"]


def test_x_04_listings_that_share_a_cursor_may_have_different_scopes():
    """Over HTTP without sessions, clients cannot be told apart; on stdio a client may send two listings at once."""
    scopes, rest = ("private", "public"), ',"ttlMs":0,"cacheScope":"%s"'
    first = "".join(asked("tools/list", ',"nextCursor":"2"' + rest % scope, n) for n, scope in enumerate(scopes))
    last = [asked("tools/list", rest % scope, n, '"cursor":"2"') for n, scope in enumerate(scopes, 5)]
    web = (first + "".join(last)).replace("@0 > ", ">> ").replace("@0 < ", "<< 200 ")
    for text in (first + "".join(last), first + "".join(reversed(last)), web):
        assert told(text, "cache/page-scope") == []


@pytest.mark.parametrize("scope", ["", ',"cacheScope":"shared"', ',"cacheScope":["public"]'])
def test_x_04_a_page_without_a_scope_may_have_given_any_cursor(scope):
    given = (f',"nextCursor":"2","ttlMs":0{scope}', ',"nextCursor":"2","ttlMs":0,"cacheScope":"private"')
    first = "".join(asked("tools/list", hints, n) for n, hints in enumerate(given))
    assert told(first + asked("tools/list", FRESH, 5, '"cursor":"2"'), "cache/page-scope") == []
    wrong = asked("tools/list", given[1]) + asked("tools/list", f',"ttlMs":0{scope}', 5, '"cursor":"2"')
    assert told(wrong, "cache/page-scope") == []


def test_x_04_a_page_that_was_lost_may_have_given_any_cursor():
    given = ',"nextCursor":"2","ttlMs":0,"cacheScope":"private"'
    first, last = asked("tools/list", given), asked("tools/list", FRESH, 5, '"cursor":"2"')
    assert told(first + last, "cache/page-scope") == ["#4 cache/page-scope"]
    assert told(first + "@0 ~ 1" + last, "cache/page-scope") == []


def test_x_04_a_question_carries_no_hints():
    text = '> 1 resources/read {META "uri":"a:b"}\n< 1 = {"resultType":"input_required","requestState":"s"%s}'
    assert told(text % "") == []
    assert told(text % FRESH) == ["#2 cache/interim-result"]


@pytest.mark.parametrize("method", RESULTS)
def test_x_04_who_asks_again_within_the_time_is_told_once(method):
    text = "".join(asked(method, FRESH, n, at=n) for n in (1, 2, 3))
    (found,) = findings(text)
    assert (found.rule, found.severity, found.blame, found.frame) == ("cache/ignored", "info", "client", 3)
    assert f"{method} is requested again after 1.00 s; its last result is fresh for 60.00 s" in found.message


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (asked("tools/list", FRESH) + asked("tools/list", FRESH, 2, at=61), "the time is over"),
        (asked("tools/list", ',"ttlMs":0,"cacheScope":"public"') + asked("tools/list", FRESH, 2, at=1), "never fresh"),
        (asked("tools/list", FRESH) + asked("prompts/list", FRESH, 2, at=1), "something else"),
        (asked("resources/read", FRESH) + asked("resources/read", FRESH, 2, '"uri":"a:c"', at=1), "another resource"),
        (asked("tools/list", FRESH) + asked("tools/list", FRESH, 2, "with a/b", at=1), "other capabilities"),
        (asked("tools/list", ',"nextCursor":"b"' + FRESH) + asked("tools/list", FRESH, 2, at=1), "the pages again"),
        (
            asked("tools/list", FRESH)
            + '> 5 tools/call {META "name":"a"}\n< 5 ! {"code":-32602,"message":"no"}'
            + asked("tools/list", FRESH, 2, at=1),
            "an error that the list may explain",
        ),
        (
            '> 9 subscriptions/listen {META "notifications":{"toolsListChanged":true}}\n'
            '< notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":9},'
            '"notifications":{"toolsListChanged":true}}'
            + asked("tools/list", FRESH)
            + '< notifications/tools/list_changed {"_meta":{"io.modelcontextprotocol/subscriptionId":9}}'
            + asked("tools/list", FRESH, 2, at=1),
            "the list has changed",
        ),
    ],
)
def test_x_04_who_has_a_reason_to_ask_again_is_not_told(text, why):
    assert "cache/ignored" not in {it.rule for it in findings(text)}, why


def test_x_04_a_change_costs_the_same_however_many_other_answers_are_fresh():
    """Measure the lines of Python that run, not the time."""

    def lines_of_a_change(answers):
        fresh = FreshAnswers(SessionHistory())
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


def test_x_04_the_time_is_kept_for_as_long_as_anybody_says():
    text = asked("tools/list", f',"ttlMs":{10**30},"cacheScope":"public"') + asked("tools/list", FRESH, 2, at=1)
    assert "cache/ignored" not in {it.rule for it in findings(text)}


def test_x_04_over_http_clients_that_nothing_tells_apart_may_ask_the_same():
    one = f"""
        >> 1 tools/list {{META}}
        << 200 1 = {{{COMPLETE},"tools":[]{FRESH}}}
    """
    assert "cache/ignored" not in {it.rule for it in findings(one + one.replace(" 1 ", " 2 "))}
