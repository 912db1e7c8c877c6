"""The counts of a session in a list."""

import pytest

from mcpspy.capture.records import Header
from mcpspy.conversation.counts import Counts, client_label, count, run_label
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


def header(*client):
    return Header("", "", "", "stdio", "a", client=client)


@pytest.mark.parametrize(
    ("introduced", "label"),
    [
        ("", "agent.py"),
        ("mcp 0.1.0", "agent.py (mcp 0.1.0)"),
        ("mcp-client 1.0.0-beta", "agent.py (mcp-client 1.0.0-beta)"),
        ("MCP Client", "agent.py (MCP Client)"),
        ("mcp", "agent.py (mcp)"),
        ("claude-code 2.1", "claude-code 2.1"),
        ("客户端 1", "客户端 1"),
        ("1.0", "agent.py (1.0)"),
    ],
)
def test_a_client_without_a_name_of_its_own_is_called_after_its_program(introduced, label):
    """V-06."""
    assert client_label(introduced, header("python3", "agent.py")) == label
    assert client_label(introduced, header()) == introduced


def test_a_run_is_called_after_the_capture_in_which_its_client_introduces_itself():
    agent = header("python3", "agent.py")
    assert run_label([("", agent), ("mcp 1", agent), ("claude 2", agent)]) == "agent.py (mcp 1)"
    assert run_label([("", header()), ("", agent)]) == "agent.py"
    assert run_label([("", header())]) == run_label([]) == ""
