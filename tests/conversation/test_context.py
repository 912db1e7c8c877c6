"""What of a session applies to a message, and the HTTP request that it belongs to."""

from mcpspy.conversation.bounds import FACTS, keep
from mcpspy.conversation.context import asked, asks, becomes_round, dialect, missing_meta, posted
from mcpspy.conversation.conversation import events_of
from mcpspy.conversation.model import HttpUnit, Message, Session
from mcpspy.spec.extensions import Dialect
from mcpspy.spec.revisions import R2025_06_18, R2026_07_28
from tests.rules.examples import messages
from tests.rules.web import records


def test_a_table_forgets_its_oldest():
    table = {}
    for n in range(2 * FACTS):
        keep(table, n, n)
        assert len(table) <= FACTS
    assert list(table) == list(range(2 * FACTS - len(table), 2 * FACTS))
    assert len(table) > FACTS * 0.9
    first = next(iter(table))
    keep(table, first, "again")
    assert list(table)[-1] == first


def test_what_is_said_once_is_bounded():
    state = Session()
    assert sum(state.once(str(n)) for n in range(FACTS + 10)) == FACTS


def test_a_message_is_said_in_its_revision_with_what_either_side_declared():
    (request,) = messages("""
        > 1 tools/list {META}
    """)
    capabilities = request.body.params["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert dialect(request, Session()) == Dialect(R2026_07_28)
    capabilities["extensions"] = {"com.example/x": {}}
    server = {"experimental": {"turbo": {}}}
    assert dialect(request, Session(server=server)) == Dialect(R2026_07_28, frozenset({"com.example/x", "turbo"}))


def test_in_a_session_the_handshake_declared_what_both_sides_have():
    *_, request = messages("""
        = 2025-06-18
        > 2 tools/list
    """)
    state = Session(client={"experimental": {"turbo": {}}}, server={"extensions": {}})
    assert dialect(request, state) == Dialect(R2025_06_18, frozenset({"turbo"}))


def test_a_request_of_2026_07_28_lacks_what_its_meta_has_not():
    version, both, bare = messages("""
        > 1 tools/list {"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}
        > 2 tools/list {META}
        > 3 tools/list
    """)
    (alone,) = messages("> 1 tools/list")
    assert missing_meta(version) == ["io.modelcontextprotocol/clientCapabilities"]
    assert missing_meta(both) == []
    assert len(missing_meta(bare)) == 2  # the earlier requests state the revision
    assert missing_meta(alone) == []  # its revision is unknown
    bare.revision = both.revision
    assert len(missing_meta(bare)) == 2


def test_what_a_server_asks_becomes_a_round_in_2026_07_28_alone():
    *_, asked, other = messages("= 2025-06-18\n< 1 sampling/createMessage {}\n< 2 ping")
    (modern,) = messages("> 1 tools/list {META}")
    assert not becomes_round(asked)
    asked.revision = other.revision = modern.revision
    assert becomes_round(asked)
    assert not becomes_round(other)


def over_http(transcript):
    return list(events_of(records(transcript)))


def test_a_message_is_posted_by_the_client_only():
    ping, answer = (event for event in over_http("= 2025-06-18 http\n>> 2 ping\n<< 200 2 = {}")[-2:])
    assert posted(ping) is ping.http
    assert posted(answer) is None


def test_an_answer_is_that_to_its_request_once():
    """The first event of a stream answers the request; later events on the stream do not."""
    found = over_http("= 2025-06-18 http\n>> 2 tools/list\n<< 200 events\n<- notifications/message {}\n<- 2 = {}")
    request, *streamed = [event for event in found if isinstance(event, Message)][3:]
    assert [asked(event) for event in streamed] == [request.http, None]
    assert asked(request) is None


def test_a_head_without_a_body_asks_in_its_session():
    head, answer = over_http("= 2025-06-18 http\n>> DELETE\n<< 200")[-2:]
    assert isinstance(head, HttpUnit)
    assert isinstance(answer, HttpUnit)
    assert asks(head) is head.http
    assert asks(answer) is None
    assert asked(answer) is head.http
