"""Why a session failed to start: how far the handshake came, what the server wrote, how it ended."""

from typing import NamedTuple

from mcpspy.agent.answers import LARGEST, Answer, Scrubber, address, facts, milliseconds, progress, size_of
from mcpspy.agent.captures import AgentCaptures
from mcpspy.agent.problems import end_of, stderr, told_problem
from mcpspy.agent.rulebook import told_groups
from mcpspy.browse.timeline import OpenCapture
from mcpspy.conversation.outcomes import FAILING
from mcpspy.conversation.preview import INTRODUCE

_FIRST = 5000  # rows that are searched for the handshake
_STDERR = 12  # lines
_STOPPING = ("start", "handshake", "login", "connection", "exit", "noise")  # kinds of problems
_PROBLEM = 1500  # bytes
_GROUPS = ("lifecycle/", "framing/", "jsonrpc/", "http/", "shape/")
_SLOW = 10_000_000_000  # nanoseconds: the time-out of some clients


class Handshake(NamedTuple):
    """How far the handshake came: line numbers, or 0 for a missing message."""

    first: int = 0
    """The first message from the client."""
    request: int = 0
    """The `initialize` or `server/discover` request."""
    answer: int = 0
    outcome: str = ""
    latency: int | None = None
    initialized: int = 0
    later: int = 0
    """A later request that was answered."""
    method: str = ""


def explain_start(captures: AgentCaptures, *, session: str = "") -> Answer:
    """Return whether a session started, and if not, why."""
    entry = captures.find(session)
    capture, name, scrubber = captures.open(entry), captures.name(entry), captures.scrubber
    shaken = handshake(capture)
    ending = end_of(scrubber, capture, name)
    groups = [it for it in capture.findings.groups.values() if it.rule.startswith(_GROUPS)]
    started, why, advice = _judged(scrubber, capture, name, shaken, ending["text"] if ending else "")
    header = entry.header
    answer = facts(
        session=name,
        server=scrubber.text(header.name, 80),
        started=started,
        why=why,
        advice=advice,
        state=capture.state,
        end=ending,
        **progress(capture),
        handshake=facts(
            request=address(name, shaken.request) if shaken.request else None,
            method=shaken.method,
            answer=address(name, shaken.answer) if shaken.answer else None,
            outcome=shaken.outcome,
            ms=milliseconds(shaken.latency),
            initialized=address(name, shaken.initialized) if shaken.initialized else None,
        ),
        command=scrubber.argv(header.argv),
        url=scrubber.text(header.url or "", 300),
        stderr=stderr(scrubber, capture, name, _STDERR),
    )
    return answer | facts(findings=told_groups(scrubber, capture, name, groups, LARGEST - size_of(answer) - 200))


def handshake(capture: OpenCapture) -> Handshake:
    """Return how far the handshake came, as far as the capture is folded."""
    found = Handshake()
    for n in list(capture.index.rows[:_FIRST]):
        row = capture.known(n)
        if row is None or row.kind in ("stderr", "end-of-stream", "gap", "signal", "gates", "end", "batch"):
            continue
        if row.sender == "client" and not found.first:
            found = found._replace(first=n)
        if row.kind == "request" and row.method in INTRODUCE:
            if not found.request or row.outcome not in FAILING:
                found = found._replace(
                    request=n,
                    method=row.method,
                    answer=row.response or 0,
                    outcome=row.outcome or "",
                    latency=row.latency,
                )
        elif row.method == "notifications/initialized":
            found = found._replace(initialized=n)
        elif row.kind == "result" and row.method not in INTRODUCE:
            return found._replace(later=n)
    return found


def _judged(
    scrubber: Scrubber, capture: OpenCapture, name: str, shaken: Handshake, ending: str
) -> tuple[bool, str, str]:
    """Return whether it started, the reason, and what to do."""
    live = capture.index.live
    if shaken.later or (shaken.outcome == "ok" and shaken.method == "server/discover"):
        return True, _slow(shaken) or "the handshake succeeded, and requests were answered", ""
    stopping = [it for it in capture.problems.made() if it.kind in _STOPPING]
    if stopping and not shaken.initialized:
        told = [told_problem(scrubber, capture, name, it, _PROBLEM) for it in stopping[:2]]
        why = ". ".join(f"{it['headline']}: {it['cause']['text']}" for it in told)
        return False, why, " ".join(told[0]["advice"])
    if not shaken.first:
        why = "the client has sent nothing" + (f"; {ending}" if ending else "")
        return False, why, "see the server's stderr; if it exited by itself, run its command in a terminal"
    if not shaken.request:
        return False, "the client sent messages, but no initialize", "the client has to send initialize first"
    if not shaken.answer and live:
        return False, f"the server has not answered {shaken.method} yet", "wait_for tells when it does"
    if not shaken.answer:
        why = f"the session ended before the server answered {shaken.method}"
        return False, why, "the client may have stopped waiting; see how long it took"
    if not shaken.initialized:
        why = "the server answered initialize, but the client never sent notifications/initialized"
        return False, why, "the client may refuse the revision or the answer; see the findings and the answer"
    if live:
        return True, _slow(shaken) or "the handshake succeeded; nothing else was requested yet", ""
    return True, _slow(shaken) or "the handshake succeeded, but nothing else was answered", ""


def _slow(shaken: Handshake) -> str:
    if shaken.latency is None or shaken.latency < _SLOW:
        return ""
    return f"the handshake succeeded after {shaken.latency / 1e9:.0f} s, which is longer than some clients wait"
