"""The examples of the rules as records: transcripts in the notation that `docs/rules.md` explains at its start."""

import re

from mcpspy.contract.changes import LockCheck
from mcpspy.contract.lock import Offered, locked
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.rules import LocatedFinding
from mcpspy.rules.judge import judged_events
from tests import transcript
from tests.rules import web
from tests.transcript import WEB, lines


def findings(text, clients=(), operations=None):
    """Return the findings in an example."""
    return [*judged(records(text), clients, operations), *unlocked(text)]


def unlocked(text):
    """Return the findings in the part below the line `-- locked`, compared with a lock of the part above it."""
    above, line, below = re.split(r"(\n\s*-- locked\n)", text) if "-- locked" in text else (text, "", "")
    if not line:
        return []
    offered = Offered()
    for message in messages(above):
        offered.add(message)
    check = LockCheck({offered.name: locked(offered)}, "x")
    found = [it for message in messages(below) for it in check.add(message)]
    return [it.finding for it in [*found, *check.end()]]


def judged(found, clients=(), operations=None, as_revision=None):
    """Return the findings in some records."""
    events = judged_events(found, as_revision=as_revision, clients=clients, operations=operations)
    return [event.finding for event in events if isinstance(event, LocatedFinding)]


def told(text, *groups):
    """Return the findings as `#frame rule`, of some groups or rules only; a handshake is the first three frames."""
    found = [finding for finding in findings(text) if not groups or finding.rule.startswith(groups)]
    return [f"#{finding.frame} {finding.rule}" for finding in sorted(found, key=lambda finding: finding.frame)]


def messages(text):
    """Return the messages of an example, as the rules receive them."""
    conversation = Conversation()
    return [event for record in records(text) for event in conversation.feed(record) if isinstance(event, Message)]


def records(text):
    """Return the records of an example; with a lock, only those of the session that is compared with the lock."""
    text = re.split(r"\n\s*-- locked\n", text)[-1]
    if any(mark in WEB or rest.endswith(" http") for mark, _, rest in lines(text)):
        return web.records(text)
    return transcript.records(text)
