"""Pairing of responses with requests: each fault has the right finding, and an allowed race has none."""

import pytest

from tests.rules.examples import findings, told


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ('< | {"jsonrpc":"2.0","id":2,"result":{}}', None),
        ('< | {"jsonrpc":"2.0","id":"2","result":{}}', "pairing/id-loose-match"),
        ('< | {"jsonrpc":"2.0","id":2.0,"result":{}}', "pairing/id-loose-match"),
        ('< | {"jsonrpc":"2.0","id":3,"result":{}}', "pairing/orphan-response"),
        ('< | {"jsonrpc":"2.0","id":0,"result":{}}', "pairing/duplicate-response"),
        ('> | {"jsonrpc":"2.0","id":2,"result":{}}', "pairing/response-by-wrong-side"),
        ('< | {"jsonrpc":"2.0","id":"NaN","result":{}}', "pairing/orphan-response"),
        ('< | {"jsonrpc":"2.0","id":1e999,"result":{}}', "pairing/orphan-response"),
    ],
)
def test_a_response_is_told_what_it_is(answer, rule):
    """F-06."""
    found = [it.rule for it in findings(f"= 2025-06-18\n> 2 ping\n{answer}") if it.severity == "error"]
    assert [name for name in found if name.startswith("pairing/")] == ([rule] if rule else [])


def test_both_sides_may_use_one_id():
    assert told("= 2025-06-18\n> 2 ping\n< 2 ping\n< 2 = {}\n> 2 = {}", "pairing/") == []


def test_a_request_without_an_answer_is_a_warning_only_where_the_session_went_on_for_a_minute():
    """F-07."""
    later = "\n> 3 ping\n@{} < 3 = {{}}"
    for rest, severity in (("", "info"), (later.format(59), "info"), (later.format(61), "warning")):
        (finding,) = [it for it in findings(f"= 2025-06-18\n> 2 ping{rest}") if it.rule == "pairing/unanswered"]
        assert (finding.severity, finding.blame) == (severity, "server")


ASKS = """
    = 2025-06-18
    > 2 tools/call {"name":"book"}
    < 1 elicitation/create {"message":"Which floor?","requestedSchema":{"type":"object","properties":{}}}
"""
RESULT = """
    = 2025-11-25
    > 2 tasks/result {"taskId":"t"}
"""
REPORTED = """
    = 2025-06-18
    > 2 tools/call {"name":"slow","_meta":{"progressToken":2}}
    @50 < notifications/progress {"progressToken":2,"progress":1}
"""
FELL_BACK = """
    > 1 server/discover {META}
    @5 = 2025-06-18
"""
LEFT = "@100 . stdin closed\n. exit 0"
LATER = '@100 > 3 prompts/list\n@101 < 3 = {"prompts":[]}'


@pytest.mark.parametrize("end", [LEFT, LATER], ids=["left", "later"])
@pytest.mark.parametrize("text", [ASKS, RESULT, FELL_BACK], ids=["a person", "a task", "an earlier server"])
def test_a_request_may_wait_long_for_what_takes_long(text, end):
    """F-07, R-07: it waits for a person or for the end of a task, or it is a probe that an earlier server ignores."""
    found = [it for it in findings(text + end) if it.rule == "pairing/unanswered"]
    assert found
    assert {it.severity for it in found} == {"info"}


@pytest.mark.parametrize("end", [LEFT, LATER], ids=["left", "later"])
def test_a_request_that_is_reported_on_is_not_given_up(end):
    """F-07: each progress notification restarts the minute."""
    found = [it.severity for it in findings(REPORTED + end) if it.rule == "pairing/unanswered"]
    assert "warning" not in found
    silent = (REPORTED + end).replace("@10", "@11")
    assert [it.severity for it in findings(silent) if it.rule == "pairing/unanswered"] == ["warning"]


def test_a_subscription_without_an_answer_is_as_it_should_be():
    assert told('> 1 subscriptions/listen {META "notifications":{}}', "pairing/") == []


def test_a_cancellation_that_crosses_the_answer_is_no_fault():
    """C-03."""
    text = """
        = 2025-06-18
        > 2 ping
        < 2 = {}
        > notifications/cancelled {"requestId":2}
    """
    assert told(text, "cancel/", "pairing/") == ["#6 cancel/already-answered"]


def test_an_id_is_free_as_soon_as_it_was_answered_although_the_answer_is_recorded_late():
    text = """
        = 2025-06-18
        @1.0 > 2 tools/list
        @1.2 > 2 prompts/list
        @1.1 < 2 = {"tools":[]}
        @1.3 < 2 = {"prompts":[]}
    """
    assert told(text, "pairing/") == []


def test_a_finding_in_a_response_names_the_request_that_it_answers():
    text = '= 2025-06-18\n> 2 tools/list\n< | {"jsonrpc":"2.0","id":2,"result":{"tools":[]},"extra":1}'
    (finding,) = [it for it in findings(text) if it.rule == "jsonrpc/extra-member"]
    assert finding.related == (4,)


CANCELLED = """
    = 2025-11-25
    > 2 tools/call {"name":"slow"}
    > notifications/cancelled {"requestId":2}
    > 2 tools/list
    < 2 = {"tools":[]}
"""


def test_the_id_of_a_request_that_was_cancelled_and_not_answered_is_a_warning():
    (finding,) = [it for it in findings(CANCELLED) if it.severity != "info"]
    assert (finding.rule, finding.severity, finding.frame, finding.related) == (
        "pairing/id-in-flight", "warning", 6, (4,))  # fmt: skip
    assert finding.message == "id 2 is already in use by request #4, which is cancelled and may still be answered"


def test_the_id_of_a_request_that_is_cancelled_only_afterwards_is_an_error():
    first, cancelled, second = "> 2 tools/list", '> notifications/cancelled {"requestId":2}', "> 2 prompts/list"
    (finding,) = [it for it in findings(f"= 2025-11-25\n{first}\n{second}\n{cancelled}") if "id-in" in it.rule]
    assert finding.severity == "error"


def test_the_id_of_a_cancelled_request_that_was_answered_late_is_free():
    late = '< 2 = {"content":[]}\n    > 2 tools/list'
    assert told(CANCELLED.replace("> 2 tools/list", late), "pairing/id") == []


@pytest.mark.parametrize("asked", ["DELETE", "GET", '| {"jsonrpc"', "notifications/roots/list_changed"])
@pytest.mark.parametrize("number", ['"server-error"', "null", "7"])
def test_an_http_error_that_answers_no_request_is_no_orphan(asked, number):
    """R-02."""
    body = f'{{"jsonrpc":"2.0","id":{number},"error":{{"code":-32600,"message":"Session not found"}}}}'
    assert told(f"= 2025-06-18 http\n>> {asked}\n<< 404 | {body}", "pairing/") == []


@pytest.mark.parametrize("session", ["= 2025-06-18 http", "", "= 2025-11-25 http"])
@pytest.mark.parametrize(
    ("answer", "rule", "severity"),
    [
        ("200 9 = {}", "pairing/orphan-response", "error"),
        ('200 9 ! {"code":-32600,"message":"no"}', "pairing/orphan-response", "error"),
        ('400 9 ! {"code":-32600,"message":"no"}', "pairing/orphan-response", "warning"),
        (
            '200 | {"jsonrpc":"2.0","id":"server-error","error":{"code":1,"message":""}}',
            "pairing/orphan-response",
            "error",
        ),
        ('400 | {"jsonrpc":"2.0","id":"2","error":{"code":1,"message":""}}', "pairing/id-loose-match", "error"),
        ('400 | {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}', None, None),
        ('400 | {"jsonrpc":"2.0","error":{"code":1,"message":""}}', None, None),
        ('400 2 ! {"code":-32600,"message":"no"}', None, None),
    ],
)
def test_a_post_with_a_request_is_answered_under_its_id(session, answer, rule, severity):
    """R-02: also if nothing distinguishes the client from other clients."""
    found = [it for it in findings(f"{session}\n>> 2 ping\n<< {answer}") if it.rule.startswith("pairing/")]
    assert [(it.rule, it.severity, it.blame) for it in found if it.severity != "info"] == (
        [(rule, severity, "server")] if rule else []
    )


MALFORMED = '> | {"jsonrpc":"2.0","id":2,"method":5}'
REFUSED = '< 2 ! {"code":-32600,"message":"Invalid Request"}'


@pytest.mark.parametrize(
    "text",
    [
        "> 2 ping\n< 2 = {}\n> 2 ping\n< 2 = {}",
        "> 2 ping\n> 2 ping\n< 2 = {}\n< 2 = {}",
        f"> 2 ping\n< 2 = {{}}\n{MALFORMED}\n{REFUSED}",
        f"{MALFORMED}\n> 2 ping\n{REFUSED}\n< 2 = {{}}",
        f"{MALFORMED}\n{REFUSED}",
    ],
)
def test_an_answer_that_a_replayed_request_provoked_is_no_duplicate(text):
    """R-03."""
    assert [it for it in findings(f"= 2025-06-18\n{text}") if it.blame == "server"] == []


def test_one_malformed_request_is_answered_once():
    """R-03."""
    found = told(f"= 2025-06-18\n> 2 ping\n< 2 = {{}}\n{MALFORMED}\n{REFUSED}\n{REFUSED}", "pairing/")
    assert found == ["#8 pairing/duplicate-response"]
