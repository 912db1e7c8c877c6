"""Which HTTP request an event belongs to: the one that carried it, or the one that it answers."""

from mcpspy.conversation.model import HttpChannel, HttpUnit, Message


def posted(message: Message) -> HttpChannel | None:
    """The POST of Streamable HTTP that a message of the client's came by; None for any other message."""
    place = message.http
    if place is None or place.opened.role != "request" or place.legacy or place.summary["method"] != "POST":
        return None
    return place


def asked(event: Message | HttpUnit) -> HttpChannel | None:
    """The request whose answer an event is the first of; None for anything else, and for answers of the relay's own."""
    place = event.http
    if place is None or place.request is None or place.legacy or place.opened.role != "response":
        return None
    return place.request if (event.n, event.part, place.opened.sender) == (place.first, 0, "server") else None


def asks(remark: HttpUnit) -> HttpChannel | None:
    """The request, naming a session of Streamable HTTP, that a remark is the head of; None for any other remark."""
    place = remark.http
    is_head = place.opened.role == "request" and place.first == remark.n and remark.frame is None
    return place if is_head and place.named and not place.legacy else None
