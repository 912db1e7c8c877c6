"""Which side may send which message, and when: cases that the rule examples do not cover."""

import pytest

from mcpspy.spec.revisions import Revision
from tests.rules.examples import judged, records, told

ASK = '> 1 initialize {"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}'
AGREE = '< 1 = {"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}'


def test_a_session_that_never_shakes_hands_is_not_told_of_for_ever():
    text = "\n".join(f"> {n} tools/list" for n in range(2, 300)) + f"\n{ASK}\n{AGREE}"
    assert len(told(text, "lifecycle/before-initialize")) == 100


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
    found = [it for it in judged(records(f"= 2025-06-18\n{line}"), as_revision=Revision.R2026_07_28) if it.frame == 4]
    named = [it.message for it in found if it.severity == "error"]
    assert [message for message in named if message.startswith(told_of)]
    if "tools/list" not in line:
        assert len(named) == 1
