"""Which side may send which message, and when: cases that the rule examples do not cover."""

import pytest

from mcpspy.rules import Finding
from mcpspy.rules.judge import Judge
from mcpspy.spec.revisions import Revision
from tests.rules.examples import findings, records, told

ASK = '> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}'
AGREE = '< 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'


def test_a_server_that_asks_before_it_may_is_told_when_it_may():
    text = f"""
        {ASK}
        {AGREE}
        < 7 roots/list
        > notifications/initialized
    """
    (finding,) = [it for it in findings(text) if it.rule == "lifecycle/before-initialize"]
    assert (finding.frame, finding.blame, finding.related) == (3, "server", (4,))


@pytest.mark.parametrize("early", ["> 2 ping", "< 7 ping", '< notifications/message {"level":"info","data":1}'])
def test_what_is_allowed_before_the_handshake_is_no_finding(early):
    text = f"{ASK}\n{early}\n{AGREE}\n> notifications/initialized"
    assert told(text, "lifecycle/before", "lifecycle/initialized") == []


def test_a_session_that_never_shakes_hands_is_not_told_of_for_ever():
    text = "\n".join(f"> {n} tools/list" for n in range(2, 300)) + f"\n{ASK}\n{AGREE}"
    assert len(told(text, "lifecycle/before-initialize")) == 100


def test_the_missing_notification_is_told_once():
    text = f"{ASK}\n{AGREE}\n> 2 tools/list\n> 3 tools/list"
    assert told(text, "lifecycle/initialized-missing") == ["#3 lifecycle/initialized-missing"]


def test_a_second_handshake_after_one_that_was_refused_is_fine():
    text = f'{ASK}\n< 1 ! {{"code":-32602,"message":"no"}}\n{ASK}\n{AGREE}'
    assert told(text, "lifecycle/initialize-twice") == []


def under(text, revision):
    judge = Judge(revision)
    found = [found for record in records(text) for found in judge.feed(record)]
    return [found for found in [*found, *judge.end()] if isinstance(found, Finding)]


@pytest.mark.parametrize(
    ("line", "told_of"),
    [
        ("< 7 sampling/createMessage {}", "the server sends sampling/createMessage as a request; expected"),
        ("< 7 roots/list", "the server sends roots/list as a request; expected an"),
        ("< 7 ping", "ping was removed after 2025-11-25"),
        ("> 7 ping", "ping was removed after 2025-11-25"),
        ("> 7 tools/list", "params._meta of the request lacks"),
        ("< 7 tools/list", "tools/list is sent by the server; only a client may send it"),
    ],
)
def test_a_migration_report_says_once_what_becomes_of_a_request(line, told_of):
    found = [it for it in under(f"= 2025-06-18\n{line}", Revision.R2026_07_28) if it.frame == 4]
    named = [it.message for it in found if it.severity == "error"]
    assert [message for message in named if message.startswith(told_of)]
    if "tools/list" not in line:
        assert len(named) == 1


def test_a_server_that_is_discovered_to_speak_no_newer_revision_may_be_initialized():
    text = """
        > 1 server/discover {META}
        < 1 = {"resultType":"complete","supportedVersions":["2025-11-25"],"capabilities":{},"ttlMs":0,\
"cacheScope":"public"}
        > 2 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}
    """
    assert told(text, "lifecycle/era-mixed") == []


def test_a_session_that_is_never_initialized_is_told_once():
    text = """
        > 1 tools/list
        > 2 prompts/list
        @3 > 3 ping
    """
    assert told(text, "lifecycle/") == ["#1 lifecycle/before-initialize"]
    assert told(text.replace("tools/list", "tools/list {META}"), "lifecycle/before") == []
    assert told("> 1 ping", "lifecycle/") == []


@pytest.mark.parametrize(("later", "found"), [("", 0), ("@5 ", 1)])
def test_over_http_the_notification_may_cross_the_first_request(later, found):
    text = f"""
        >{ASK}
        << 200 {AGREE.removeprefix("< ")}
        >> 2 tools/list
        {later}>> notifications/initialized
    """
    assert len(told(text, "lifecycle/initialized-missing")) == found
