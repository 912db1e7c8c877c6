"""The counts of a session in a list."""

from mcpspy.conversation.counts import Counts, count
from tests.transcript import records

SESSION = """
    > {"id":0,"method":"initialize","params":{"clientInfo":{"name":"cursor","version":"1"}}}
    < {"id":0,"result":{"serverInfo":{"name":"weather","version":"2"}}}
    > {"id":1,"method":"tools/call","params":{"name":"add"}}
    < {"id":1,"result":{"content":[{"type":"text","text":"no"}],"isError":true}}
    > {"id":2,"method":"tools/call","params":{"name":"add"}}
    < {"id":2,"result":{"content":[]}}
    > {"id":3,"method":"tools/call","params":{"name":"gone"}}
    < {"id":3,"error":{"code":-32602,"message":"Unknown tool"}}
    > {"id":4,"method":"ping"}
    ! warning
"""


def test_what_passed_and_failed_is_counted():
    assert count(records(SESSION)) == Counts(frames=10, exchanges=5, errors=2, failed=2, client="cursor 1")
    assert count([]) == Counts(0, 0, 0)


def test_a_batch_is_one_frame_and_what_is_no_message_is_an_error():
    found = count(
        records("""
        > [{"id":1,"method":"a"},{"id":2,"method":"b"}]
        < | x
        < |
    """)
    )
    assert found == Counts(3, 2, 2)
    assert found.last_error.startswith("#")


def test_who_spoke_and_what_was_called_is_told():
    found = count(records(SESSION))
    assert (found.server, found.called) == ("weather 2", {"add": 2, "gone": 1})
    assert found.last_error == "#8 tools/call gone -32602 Unknown tool"


def test_a_peer_cannot_fill_the_memory_with_names():
    calls = (f'> {{"id":{n},"method":"tools/call","params":{{"name":"{n}{"x" * 500}"}}}}' for n in range(1100))
    found = count(records("\n".join(calls)))
    assert len(found.called) == 1000
    assert max(map(len, found.called)) == 100
