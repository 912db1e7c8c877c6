"""What goes on over several messages: what the examples of the rules leave open."""

import pytest

from tests.protocol.rules.examples import findings, told

SLOW = """
    = 2025-06-18
    > 2 tools/call {"name":"slow","_meta":{"progressToken":"t"}}
"""


def report(value, token='"t"'):  # noqa: S107 (a progress token)
    return f'< notifications/progress {{"progressToken":{token},"progress":{value}}}\n'


def test_progress_is_told_apart_by_the_type_of_its_token():
    assert told(SLOW + report(1, token="5"), "progress/") == ["#5 progress/unknown-token"]
    assert told(SLOW.replace('"t"', "5") + report(1, token='"5"'), "progress/") == ["#5 progress/unknown-token"]
    assert told(SLOW.replace('"t"', "5") + report(1, token="5"), "progress/") == []


@pytest.mark.parametrize(("values", "found"), [((1, 2.5, 3), 0), ((1, 1), 1), ((2, 1), 1), ((5, 4, 3), 2)])
def test_progress_has_to_grow(values, found):
    assert len(told(SLOW + "".join(map(report, values)), "progress/not-increasing")) == found


def test_progress_after_a_cancellation_is_an_allowed_race():
    text = SLOW + '> notifications/cancelled {"requestId":2}\n' + report(1) + '< 2 = {"content":[]}\n' + report(2)
    assert told(text, "progress/") == []


def test_the_progress_of_a_task_goes_on_after_the_answer_that_creates_it():
    text = SLOW.replace("2025-06-18", "2025-11-25")
    task = '{"task":{"taskId":"1","status":"working","createdAt":"x","lastUpdatedAt":"x","ttl":null}}'
    assert told(f"{text}< 2 = {task}\n{report(1)}", "progress/") == []
    assert told(f'{text}< 2 = {{"content":[]}}\n{report(1)}', "progress/") == ["#6 progress/after-completion"]


def test_a_cursor_belongs_to_the_listing_that_issued_it():
    text = """
        = 2025-06-18
        > 2 tools/list
        < 2 = {"tools":[],"nextCursor":"a"}
        > 3 prompts/list {"cursor":"a"}
    """
    assert told(text, "paging/") == ["#6 paging/unknown-cursor"]


ASKED = '{"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}'
GIVEN = '"inputResponses":{"roots":{"roots":[]}}'


def rounds(*states):
    """A call that is answered by a question in several rounds, each with its state, echoed or not."""
    lines = ['> 1 tools/call {META "name":"book"}']
    for n, (state, echoed) in enumerate(states, 1):
        lines.append(f"< {n} = {ASKED}" + (f',"requestState":"{state}"' if state else "") + "}")
        echo = f',"requestState":"{echoed}"' if echoed else ""
        lines.append(f'> {n + 1} tools/call {{META "name":"book",{GIVEN}{echo}}}')
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ([("a", "a"), ("b", "b")], []),
        ([("", ""), ("", "")], []),
        ([("a", "")], ["#3 mrtr/state-missing"]),
        ([("a", "b")], ["#3 mrtr/state-changed"]),
        ([("", "b")], ["#3 mrtr/state-changed"]),
        ([("a", "a"), ("b", "c")], ["#5 mrtr/state-changed"]),
        ([("a", "a"), ("b", "")], ["#5 mrtr/state-missing"]),
    ],
)
def test_each_round_echoes_the_state_that_it_was_given(states, found):
    assert told(rounds(*states), "mrtr/") == found


def test_the_same_call_may_be_in_flight_twice_each_with_a_state_of_its_own():
    text = f"""
        > 1 tools/call {{META "name":"book"}}
        > 2 tools/call {{META "name":"book"}}
        < 2 = {ASKED},"requestState":"b"}}
        < 1 = {ASKED},"requestState":"a"}}
        > 3 tools/call {{META "name":"book",{GIVEN},"requestState":"b"}}
        > 4 tools/call {{META "name":"book",{GIVEN},"requestState":"a"}}
    """
    assert told(text, "mrtr/") == []


def test_a_retry_that_is_recorded_before_the_answer_that_it_continues_is_no_finding():
    text = f"""
        @1.0 > 1 tools/call {{META "name":"book"}}
        @1.1 < 1 = {ASKED},"requestState":"a"}}
        @1.2 > 2 tools/call {{META "name":"book",{GIVEN},"requestState":"a"}}
        @1.4 > 3 tools/call {{META "name":"book",{GIVEN},"requestState":"b"}}
        @1.3 < 2 = {ASKED},"requestState":"b"}}
    """
    assert told(text, "mrtr/") == []


def test_the_sentence_names_the_answer_that_the_client_had():
    (finding,) = [it for it in findings(rounds(("a", "a"), ("b", "c"))) if it.rule.startswith("mrtr/")]
    assert (finding.frame, finding.related) == (5, (4,))
    assert finding.message == "the retry has another requestState than #4"


def test_a_subscription_is_told_of_by_the_exact_id():
    text = """
        > 1 subscriptions/listen {META "notifications":{}}
        < notifications/subscriptions/acknowledged {"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}
    """
    assert told(text, "subscription/") == ["#2 subscription/unknown-id"]


def test_a_token_is_not_unknown_after_so_many_that_some_were_forgotten():
    others = "".join(
        f'> {n} tools/call {{"name":"a","_meta":{{"progressToken":{n}}}}}\n< {n} = {{"content":[]}}\n'
        for n in range(3, 4400)
    )
    assert told(SLOW + others + report(1), "progress/") == []
    assert told(SLOW + others + report(2) + report(1), "progress/") == ["#8800 progress/not-increasing"]  # still known
    assert told(SLOW + others + report(1, token='"never"'), "progress/") == []
