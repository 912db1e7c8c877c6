"""Multi-round trips: cases that the rule examples do not cover."""

import pytest

from tests.rules.examples import findings, told

ASKED = '{"resultType":"input_required","inputRequests":{"roots":{"method":"roots/list"}}'
GIVEN = '"inputResponses":{"roots":{"roots":[]}}'


def rounds(*states):
    """Return a call with several rounds of input requests, each with its state and the state that the client echoes."""
    lines = ['> 1 tools/call {META can roots "name":"book"}']
    for n, (state, echoed) in enumerate(states, 1):
        lines.append(f"< {n} = {ASKED}" + (f',"requestState":"{state}"' if state else "") + "}")
        echo = f',"requestState":"{echoed}"' if echoed else ""
        lines.append(f'> {n + 1} tools/call {{META can roots "name":"book",{GIVEN}{echo}}}')
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
        > 1 tools/call {{META can roots "name":"book"}}
        > 2 tools/call {{META can roots "name":"book"}}
        < 2 = {ASKED},"requestState":"b"}}
        < 1 = {ASKED},"requestState":"a"}}
        > 3 tools/call {{META can roots "name":"book",{GIVEN},"requestState":"b"}}
        > 4 tools/call {{META can roots "name":"book",{GIVEN},"requestState":"a"}}
    """
    assert told(text, "mrtr/") == []


def test_a_retry_that_is_recorded_before_the_answer_that_it_continues_is_no_finding():
    text = f"""
        @1.0 > 1 tools/call {{META can roots "name":"book"}}
        @1.1 < 1 = {ASKED},"requestState":"a"}}
        @1.2 > 2 tools/call {{META can roots "name":"book",{GIVEN},"requestState":"a"}}
        @1.4 > 3 tools/call {{META can roots "name":"book",{GIVEN},"requestState":"b"}}
        @1.3 < 2 = {ASKED},"requestState":"b"}}
    """
    assert told(text, "mrtr/") == []


def test_the_sentence_names_the_answer_that_the_client_had():
    (finding,) = [it for it in findings(rounds(("a", "a"), ("b", "c"))) if it.rule.startswith("mrtr/")]
    assert (finding.frame, finding.related) == (5, (4,))
    assert finding.message == "the retry changes the requestState of #4"


def test_a_retry_with_the_id_of_the_first_round_is_one_call_with_one_fault():
    """2026-07-28, mrtr: a retry must use a new id. The answers are still paired with their rounds."""
    text = rounds(("a", "a")).replace("> 2 tools", "> 1 tools") + '\n< 1 = {"resultType":"complete","content":[]}'
    (finding,) = [it for it in findings(text) if it.severity != "info"]
    assert (finding.rule, finding.frame, finding.related) == ("mrtr/same-id", 3, (2,))
    assert finding.message == "the retry reuses the id of the request that #2 answered"


def test_a_retry_with_the_id_of_its_first_round_but_not_of_the_last_is_no_finding():
    assert told(rounds(("a", "a"), ("b", "b")).replace("> 3 tools", "> 1 tools"), "mrtr/") == []


def test_a_retry_under_the_id_of_another_call_like_it_is_no_finding():
    text = f"""
        > 1 tools/call {{META can roots "name":"book"}}
        > 2 tools/call {{META can roots "name":"book"}}
        < 2 = {ASKED},"requestState":"s"}}
        < 1 = {ASKED},"requestState":"s"}}
        > 1 tools/call {{META can roots "name":"book",{GIVEN},"requestState":"s"}}
    """
    assert told(text, "mrtr/") == []


@pytest.mark.parametrize(
    ("can", "asked", "lacking"),
    [
        ("roots", '{"method":"roots/list"}', None),
        ("roots", '{"method":"sampling/createMessage","params":{}}', "sampling"),
        ("elicitation", '{"method":"elicitation/create","params":{"message":"x"}}', None),
        ("elicitation", '{"method":"elicitation/create","params":{"mode":"url"}}', "elicitation.url"),
        ("sampling", '{"method":"sampling/createMessage","params":{"tools":[]}}', "sampling.tools"),
        ("roots", '{"method":"extension/ask"}', None),
        ("roots", '{"method":["roots/list"]}', None),
        ("roots", "5", None),
    ],
)
def test_a_server_asks_only_for_what_the_request_says_its_client_can_give(can, asked, lacking):
    text = f"""
        > 1 tools/call {{META can {can} "name":"book"}}
        < 1 = {{"resultType":"input_required","inputRequests":{{"a/b":{asked},"c":{asked}}}}}
    """
    found = [(it.frame, it.pointer, it.message) for it in findings(text) if it.rule == "mrtr/undeclared-input"]
    expected = f"the client did not declare the capability {lacking}, which "
    assert [(frame, pointer) for frame, pointer, _ in found] == ([(2, "/result/inputRequests/a~1b")] if lacking else [])
    assert all(message.startswith(expected) for *_, message in found)


def test_what_a_client_can_is_told_by_each_request_alone():
    text = f"""
        > 1 tools/call {{META can roots "name":"book"}}
        > 2 tools/call {{META "name":"book"}}
        < 1 = {ASKED}}}
        < 2 = {ASKED}}}
    """
    assert told(text, "mrtr/") == ["#4 mrtr/undeclared-input"]
