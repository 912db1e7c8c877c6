"""Which HTTP request an event belongs to: the request that carried it, or the request that it answers."""

from mcpspy.conversation.model import HttpChannel, HttpUnit, Message


def posted(message: Message) -> HttpChannel | None:
    """Return the POST of Streamable HTTP that carried a message of the client; None for any other message."""
    place = message.http
    if place is None or place.opened.role != "request" or place.legacy or place.summary["method"] != "POST":
        return None
    return place


def asked(event: Message | HttpUnit) -> HttpChannel | None:
    """Return the request, if an event is the first one of its response from the server; else None."""
    place = event.http
    if place is None or place.request is None or place.legacy or place.opened.role != "response":
        return None
    return place.request if (event.n, event.part, place.opened.sender) == (place.first, 0, "server") else None


def asks(remark: HttpUnit) -> HttpChannel | None:
    """Return the request of Streamable HTTP with a session id that a unit is the head of; None for any other unit."""
    place = remark.http
    is_head = place.opened.role == "request" and place.first == remark.n and remark.frame is None
    return place if is_head and place.named and not place.legacy else None
