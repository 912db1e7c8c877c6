"""Which channel makes what of its frames. Pairing is in `test_pairing.py`, HTTP in `test_http_sessions.py`."""

from mcpspy.capture.records import Close, End, Frame, Gap, Open
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.wire.jsonrpc import Notification, Result
from tests.conversation.http import Exchange, request, result

NOTE = b'{"jsonrpc":"2.0","method":"notifications/message"}'


def events(*records):
    conversation = Conversation()
    return [event for record in records for event in conversation.feed(record)]


def test_lines_of_stderr_are_text_and_others_messages():
    text, note = Frame(4, 3, 1, NOTE), Frame(5, 2, 2, NOTE)
    found = events(Open(2, 3, 0, "server", "stderr", "lines"), Open(3, 2, 0, "server", "stdout", "lines"), text, note)
    assert found[0] is text
    assert isinstance(found[1], Message)
    assert isinstance(found[1].body, Notification)
    assert found[1].sender == "server"


def test_a_channel_that_was_never_opened_is_read_all_the_same():
    (found,) = events(Frame(4, 9, 1, NOTE))
    assert found.sender == "client"


def test_a_frame_may_have_another_sender_than_its_channel():
    (found,) = events(Open(2, 1, 0, "client", "stdin", "lines"), Frame(3, 1, 1, NOTE, sender="mcpspy"))
    assert found.sender == "mcpspy"


def test_gaps_and_the_end_pass_through():
    gap, end = Gap(2, 1, 3, "x"), End(3, 2, 0)
    assert events(gap, Close(4, 1, 2, "eof"), end) == [gap, end]


def test_requests_are_counted_across_sessions():
    http = Exchange()
    http.ask(request(1, "ping"), mcp_session_id="one")
    http.ask(request(1, "ping"), mcp_session_id="two")
    assert [event.exchange.ordinal for event in http.events()] == [0, 1]


def test_what_is_held_in_any_session_is_released_by_time_and_at_the_end():
    http = Exchange()
    http.answer(http.ask(request(1, "ping"), mcp_session_id="one"), result(9))
    found = http.events()
    assert isinstance(found[-1].body, Result)
    assert found[-1].exchange is None
