"""The examples of the rules as records: transcripts in the notation that `docs/rules.md` begins with."""

from mcpspy.capture.records import Close, End, Frame, Signal
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.rules import Finding
from mcpspy.rules.judge import Judge
from tests.rules import web
from tests.rules.notation import frame, handshake
from tests.transcript import CHANNELS, OPENS, WEB, lines


def findings(text, clients=()):
    """What is found in an example."""
    return judged(records(text), clients)


def judged(found, clients=()):
    """What is found in some records."""
    judge = Judge(clients=clients)
    events = [event for record in found for event in judge.feed(record)]
    return [event for event in [*events, *judge.end()] if isinstance(event, Finding)]


def told(text, *groups):
    """The same as `#frame rule`, of some groups or rules only; a handshake has the first three frames."""
    found = [finding for finding in findings(text) if not groups or finding.rule.startswith(groups)]
    return [f"#{finding.frame} {finding.rule}" for finding in sorted(found, key=lambda finding: finding.frame)]


def messages(text):
    """The messages of an example, as the rules see them."""
    conversation = Conversation()
    return [event for record in records(text) for event in conversation.feed(record) if isinstance(event, Message)]


def records(text):
    """The records of an example."""
    if any(mark in WEB or rest.endswith(" http") for mark, _, rest in lines(text)):
        return web.records(text)
    frames = []
    for mark, t, rest in lines(text):
        if mark == ".":
            frames.append((mark, t, rest, False))
        elif mark == "=":
            frames += [(sender, t, message, False) for sender, message in handshake(rest)]
        else:
            raw, cut = frame(rest) if mark != "!" else (rest.encode(), False)
            frames.append((mark, t, raw, cut))
    numbered = enumerate(frames, 1)
    return [*OPENS, *(it for n, (mark, t, raw, cut) in numbered for it in _records(n, mark, t + n, raw, cut=cut))]


def _records(n, mark, t, raw, *, cut):
    """A line, or what it says of how the session ended."""
    what, _, rest = raw.partition(" ") if mark == "." else ("", "", "")
    if mark != ".":
        yield Frame(n, CHANNELS[mark], t, raw, cut)
    elif what in ("exit", "killed"):
        yield Close(n, CHANNELS[">"], t, "exit")
        yield End(n, t, **{"code" if what == "exit" else "signal": int(rest)})
    elif what == "signal":
        number, _, group = rest.partition(" ")
        yield Signal(n, t, int(number), "group" if group else "process", forwarded=not group)
    elif what == "unstarted":
        yield End(n, t, why=rest)
    else:
        yield Close(n, CHANNELS[">" if what == "stdin" else "<"], t, "eof")
