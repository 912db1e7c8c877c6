"""The bounded history of a session, and facts that follow from a message and that history."""

from mcpspy.conversation.bounds import FACTS, keep
from mcpspy.conversation.history import becomes_round, dialect, missing_meta
from mcpspy.conversation.model import Session
from mcpspy.spec.dialect import Dialect
from mcpspy.spec.revisions import R2025_06_18, R2026_07_28
from tests.rules.examples import messages


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
