"""What the fold tells of each message of a transcript: `cases/`, in the form of `tests/cases.py`.

The outcome is that of `tests.transcript.told`, with the revision of each message that has one, the answer that a
request continues, and the request that a notification belongs to or cancels.
"""

from pathlib import Path

import pytest

from mcpspy.conversation.model import Message
from tests import transcript
from tests.cases import check

FILES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


def told(text, _):
    events = transcript.events(text)
    messages = [event for event in events if isinstance(event, Message)]
    requests = {it.exchange.ordinal: it for it in messages if it.exchange and it.exchange.request is it}
    lines = []
    for event, line in zip(events, transcript.told(text), strict=True):
        more = []
        if isinstance(event, Message):
            asks = event.exchange and event.exchange.request is event
            more += [event.revision.value] if event.revision else []
            more += [f"continues #{event.exchange.continues}"] if asks and event.exchange.continues else []
            more += [f"of {transcript.address(requests[event.link])}"] if event.link is not None else []
            more += [f"cancels {transcript.address(event.cancels.request)}"] if event.cancels else []
        lines.append(", ".join([line, *more]))
    return lines


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_message_has_this_outcome(path):
    check(path, told)
