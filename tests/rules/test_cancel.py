"""Cancellations: cases that the rule examples do not cover."""

import json

import pytest

from tests.rules.examples import findings, told


def test_a_server_may_cancel_a_subscription_of_the_clients():
    text = """
        > 1 subscriptions/listen {META "notifications":{}}
        < notifications/cancelled {"requestId":1}
    """
    assert told(text, "cancel/") == []


INITIALIZE = 'initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}'
AGREED = '1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'
CANCELLED = 'notifications/cancelled {"requestId":1}'


@pytest.mark.parametrize(
    "text",
    [
        f"> 1 {INITIALIZE}\n> {CANCELLED}",
        f"> 1 {INITIALIZE}\n> {CANCELLED}\n< {AGREED}",
        f">> 1 {INITIALIZE}\n>> {CANCELLED}\n<< 202",
        f">> 1 {INITIALIZE}\n<< 200 events\n>> {CANCELLED}\n<< 202\n<- {AGREED}",
    ],
)
def test_a_client_that_cancels_its_initialize_is_told_so_on_both_transports(text):
    """Specification, lifecycle and cancellation: clients must not cancel `initialize`."""
    found = [it for it in findings(text) if it.severity != "info"]
    assert [(it.rule, it.blame) for it in found] == [("cancel/initialize", "client")]


def test_a_cancellation_that_crosses_the_answer_to_initialize_is_a_race():
    assert told(f"> 1 {INITIALIZE}\n< {AGREED}\n> {CANCELLED}", "cancel/") == ["#3 cancel/already-answered"]


def test_of_one_request_the_first_cancellation_may_be_late_and_the_second_is_too_many():
    """C-03: opencode cancels requests that are already answered. A reused id is another request."""
    text = """
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":2}
        > 3 ping
        < 3 = {}
        > notifications/cancelled {"requestId":3}
        > notifications/cancelled {"requestId":2}
        > notifications/cancelled {"requestId":3}
        > 3 ping
        > notifications/cancelled {"requestId":3}
    """
    cancelled = [it for it in findings(text) if it.rule.startswith("cancel/")]
    assert [(it.frame, it.rule, it.severity, it.related) for it in cancelled] == [
        (8, "cancel/already-answered", "info", (6, 7)),
        (9, "cancel/repeated", "warning", (4, 5)),
        (10, "cancel/repeated", "warning", (6, 8)),
    ]
    assert {it.blame for it in cancelled} == {"client"}


def test_a_cancelled_request_needs_no_answer():
    """C-03."""
    text = """
        = 2025-06-18
        > 2 tools/call {"name":"slow"}
        > notifications/cancelled {"requestId":2}
        @70 > 3 ping
        @71 < 3 = {}
    """
    assert findings(text) == []


TASK = {
    "taskId": "t-1",
    "status": "working",
    "createdAt": "2026-01-01T00:00:00Z",
    "lastUpdatedAt": "2026-01-01T00:00:00Z",
    "ttl": None,
}
OLDER_TASK = f"""
    > 1 initialize {{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}
    < 1 = {{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},\
"tasks":{{"requests":{{"tools":{{"call":{{}}}}}}}}}},"serverInfo":{{"name":"s","version":"1"}}}}
    > notifications/initialized
    > 2 tools/call {{"name":"build","task":{{}}}}
    < 2 = {json.dumps({"task": TASK})}
"""


@pytest.mark.parametrize("requested", ["2", '"t-1"'])
def test_a_task_of_2025_11_25_is_cancelled_by_its_own_request_too(requested):
    """X-01: basic/utilities/cancellation of 2025-11-25, behavior requirements."""
    found = findings(f'{OLDER_TASK}@5 > notifications/cancelled {{"requestId":{requested}}}')
    assert [(it.rule, it.blame) for it in found] == [("cancel/task", "client")]
    assert "/2025-11-25/basic/utilities/cancellation" in found[0].spec


def test_an_id_that_was_used_again_is_that_of_the_later_request():
    text = f"""{OLDER_TASK}
        > 2 tools/call {{"name":"quick"}}
        < 2 = {{"content":[]}}
        @5 > notifications/cancelled {{"requestId":2}}
    """
    assert [it.rule for it in findings(text)] == ["cancel/already-answered"]


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ("", []),
        ('< 1 = {"content":[]}\n< 2 = {"content":[]}\n', ["#7 cancel/already-answered", "#8 cancel/already-answered"]),
    ],
)
def test_each_request_of_a_batch_has_a_cancellation_of_its_own(answers, found):
    """C-03."""
    calls = ",".join(f'{{"jsonrpc":"2.0","id":{n},"method":"tools/call","params":{{"name":"a"}}}}' for n in (1, 2))
    cancelled = "".join(f'> notifications/cancelled {{"requestId":{n}}}\n' for n in (1, 2))
    assert told(f"= 2025-03-26\n> | [{calls}]\n{answers}{cancelled}", "cancel/") == found
