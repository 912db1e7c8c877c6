"""What the fold tells of each message of a transcript: `cases/`, in the form of `tests/cases.py`.

The outcome is that of `tests.transcript.outcome`, and for a message its revision, the session id if it has one,
`partial` if the session is in doubt, the answer that a request continues, and the request that a notification belongs
to or cancels.
"""

from pathlib import Path

import pytest

from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from tests.cases import check
from tests.rules.examples import records
from tests.transcript import address, outcome

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


def told(text, _):
    conversation = Conversation()
    events = [event for record in records(text) for event in conversation.feed(record)]
    messages = [event for event in events if isinstance(event, Message)]
    requests = {it.exchange.ordinal: it for it in messages if it.exchange and it.exchange.request is it}
    lines = []
    for event in events:
        more = []
        if isinstance(event, Message):
            asks = event.exchange and event.exchange.request is event
            more += [event.revision.value] if event.revision else []
            more += [f"session {event.session.name}"] if event.session.name else []
            more += ["partial"] if event.session.partial else []
            more += [f"continues #{event.exchange.continues}"] if asks and event.exchange.continues else []
            more += [f"of {address(requests[event.link])}"] if event.link is not None else []
            more += [f"cancels {address(event.cancels.request)}"] if event.cancels else []
        lines.append(", ".join([outcome(event), *more]))
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_message_has_this_outcome(path):
    check(path, told)
