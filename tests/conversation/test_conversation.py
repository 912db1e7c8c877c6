"""What each channel makes of its frames. `test_pairing.py` tests pairing, `test_http_sessions.py` tests HTTP."""

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


def test_another_stdin_is_that_of_another_session_and_ids_of_the_one_before_are_free():
    def process(ch, n, t):
        return [Open(n, ch, t, "client", "stdin", "lines"), Open(n + 1, ch + 1, t, "server", "stdout", "lines")]

    ask, answer = b'{"jsonrpc":"2.0","id":1,"method":"ping"}', b'{"jsonrpc":"2.0","id":1,"result":{}}'
    first = [*process(1, 2, 0), Frame(4, 1, 1, ask), Close(5, 1, 2, "eof"), Close(6, 2, 2, "exit"), End(7, 3, 0)]
    conversation = Conversation()
    records = [*first, *process(3, 8, 5), Frame(10, 3, 6, ask), Frame(11, 4, 7, answer), End(12, 8, 0)]
    found = [event for record in records for event in conversation.feed(record) if isinstance(event, Message)]
    assert found[0].session is not found[1].session is found[2].session
    assert found[2].exchange is found[1].exchange
    assert [exchange.request.n for exchange in conversation.pending()] == [4]
    assert found[0].session.left == 2
    assert found[1].session.left is None
