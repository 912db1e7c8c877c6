"""The HTTP request to which an event belongs."""

from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.http_requests import asked, asks, posted
from mcpspy.conversation.model import HttpUnit, Message
from tests.rules.web import records


def events(transcript):
    fold = Conversation()
    return [event for record in records(transcript) for event in fold.feed(record)]


def test_a_message_is_posted_by_the_client_only():
    ping, answer = (event for event in events("= 2025-06-18 http\n>> 2 ping\n<< 200 2 = {}")[-2:])
    assert posted(ping) is ping.http
    assert posted(answer) is None


def test_an_answer_is_that_to_its_request_once():
    """The first event of a stream answers the request; later events on the stream do not."""
    found = events("= 2025-06-18 http\n>> 2 tools/list\n<< 200 events\n<- notifications/message {}\n<- 2 = {}")
    request, *streamed = [event for event in found if isinstance(event, Message)][3:]
    assert [asked(event) for event in streamed] == [request.http, None]
    assert asked(request) is None


def test_a_head_without_a_body_asks_in_its_session():
    head, answer = events("= 2025-06-18 http\n>> DELETE\n<< 200")[-2:]
    assert isinstance(head, HttpUnit)
    assert isinstance(answer, HttpUnit)
    assert asks(head) is head.http
    assert asks(answer) is None
    assert asked(answer) is head.http
