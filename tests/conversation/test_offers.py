"""The statements of messages about the two sides, and the pages of listings."""

import pytest

from mcpspy.conversation.model import Message
from mcpspy.conversation.offers import Page, Statement, page, statement
from mcpspy.spec.revisions import PROTOCOL_VERSION
from tests.transcript import events

NOW = f'"{PROTOCOL_VERSION}":"2026-07-28"'


def statements(text):
    """Return for each message of a transcript its statement about a side."""
    return [statement(event) for event in events(text) if isinstance(event, Message)]


def pages(text):
    """Return the pages of listings in a transcript."""
    return [found for event in events(text) if isinstance(event, Message) and (found := page(event))]


def test_a_handshake_introduces_both_sides():
    found = statements("""
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"c"},"capabilities":{}}}
        < {"id":1,"result":{"protocolVersion":"2025-03-26","serverInfo":{"name":"s"},"instructions":"x"}}
        > {"method":"notifications/initialized"}
        > {"id":2,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/clientInfo":{"name":"d"}}}}
    """)  # noqa: E501
    assert found == [
        Statement(1, "client", {"name": "c"}, {}, "2025-06-18"),
        Statement(2, "server", {"name": "s"}, None, "2025-03-26", "x"),
        None,
        None,
    ]


def test_without_a_handshake_each_message_may_tell_of_its_sender():
    found = statements(f"""
        > {{"id":1,"method":"server/discover","params":{{"_meta":{{{NOW},"io.modelcontextprotocol/clientInfo":1}}}}}}
        < {{"id":1,"result":{{"capabilities":{{"tools":{{}}}},"instructions":"x"}}}}
        > {{"id":2,"method":"tools/call","params":{{"_meta":{{{NOW}}}}}}}
        < {{"id":2,"result":{{"_meta":{{"io.modelcontextprotocol/serverInfo":{{"name":"s"}}}}}}}}
        > {{"id":3,"method":"tools/call","params":{{"_meta":{{{NOW}}}}}}}
        < {{"id":3,"error":{{"code":1,"message":"m"}}}}
    """)
    assert found == [
        Statement(1, "client", 1, None, "2026-07-28", complete=False),
        Statement(2, "server", None, {"tools": {}}, "2026-07-28", "x"),
        Statement(3, "client", None, None, "2026-07-28", complete=False),
        Statement(4, "server", {"name": "s"}, None, "2026-07-28", complete=False),
        Statement(5, "client", None, None, "2026-07-28", complete=False),
        None,
    ]


def test_a_request_without_a_cursor_begins_a_listing_and_a_page_without_one_ends_it():
    found = pages("""
        > {"id":1,"method":"tools/list"}
        < {"id":1,"result":{"tools":[1],"nextCursor":"a"}}
        > {"id":2,"method":"tools/list","params":{"cursor":"a"}}
        < {"id":2,"result":{"tools":[]}}
        > {"id":3,"method":"resources/templates/list"}
        < {"id":3,"result":{"resourceTemplates":"x"}}
        > {"id":4,"method":"prompts/list"}
        < {"id":4,"error":{}}
        < {"id":5,"result":{"tools":[]}}
    """)
    assert found == [
        Page("tools", [1], first=True, last=False),
        Page("tools", [], first=False, last=True),
        Page("resourceTemplates", None, first=True, last=True),
    ]


@pytest.mark.parametrize("value", ["null", "[]", "5", '"x"', "{}", '{"_meta":5}', '{"capabilities":[]}'])
@pytest.mark.parametrize("method", ["initialize", "server/discover", "tools/list"])
def test_any_shape_is_taken(method, value):
    """F-10."""
    for event in events(f"""
        > {{"id":1,"method":"{method}","params":{value}}}
        < {{"id":1,"result":{value}}}
    """):
        statement(event)
        page(event)
