"""What went wrong in a session, or in all sessions of a run, as one answer."""

from typing import Any

from mcpspy.agent.answers import LARGEST, Answer, address, facts, fitting, milliseconds, progress
from mcpspy.agent.captures import RUN, AgentCaptures
from mcpspy.agent.clean import Scrubber, clipped, safe, size_of
from mcpspy.agent.rulebook import told_groups
from mcpspy.browse.library import ListedCapture
from mcpspy.browse.timeline import OpenCapture
from mcpspy.conversation.exchanges import STATUSES
from mcpspy.json_values import member

_FAILED, _UNANSWERED, _STDERR = 12, 8, 8  # limits for one answer
_LAST = 6  # the number of last rows that are searched for the end of the session
_FAILURES = {STATUSES.index("error"), STATUSES.index("tool-error")}
_WAITING = {STATUSES.index("unanswered"), STATUSES.index("pending"), STATUSES.index("cancelled")}
_ARGUMENTS = 240  # bytes of the arguments that are shown


def find_problems(captures: AgentCaptures, *, session: str = "") -> Answer:
    """Return the problems of a session, or of each session of a run."""
    entries = captures.several(session)
    if len(entries) == 1 and not session.strip().startswith(RUN):
        return problems_of(captures, entries[0], LARGEST)
    told = (problems_of(captures, entry, max(LARGEST // len(entries) - 20, 900)) for entry in entries)
    kept = list(fitting(told, LARGEST - 300, len(entries)))
    more = [captures.name(it) for it in entries[len(kept) :]]
    return facts(run=safe(session, 60), sessions=kept, more=[f"find_problems {it}" for it in more[:20]])


def problems_of(captures: AgentCaptures, entry: ListedCapture, room: int) -> Answer:
    """Return the problems of one session, within `room` bytes."""
    capture, name, scrubber = captures.open(entry), captures.name(entry), captures.scrubber
    statuses = capture.columns.exchanges.statuses
    failed = [ordinal for ordinal, status in enumerate(statuses) if status in _FAILURES]
    waiting = [ordinal for ordinal, status in enumerate(statuses) if status in _WAITING]
    counts = {"requests": len(statuses), "failed": len(failed), "unanswered": len(waiting)}
    answer = facts(session=name, server=scrubber.text(entry.header.name, 80), state=capture.state) | progress(capture)
    answer |= {"counts": counts | {"findings": dict(capture.found)}}
    ending = end_of(scrubber, capture, name)
    answer |= facts(end=ending)
    room -= size_of(answer) + 300
    calls = [_failed(scrubber, capture, name, ordinal) for ordinal in failed[-_FAILED:][::-1]]
    answer |= facts(failed=list(fitting(calls, room * 2 // 5, _FAILED)))
    open_ = [_unanswered(scrubber, capture, name, ordinal) for ordinal in waiting[-_UNANSWERED:][::-1]]
    answer |= facts(unanswered=list(fitting(open_, room // 8, _UNANSWERED)))
    lines = stderr(scrubber, capture, name, _STDERR)
    answer |= facts(stderr=list(fitting(reversed(lines), room // 6, _STDERR))[::-1])
    left = room - sum(size_of(answer.get(key, "")) for key in ("failed", "unanswered", "stderr"))
    groups = list(capture.findings.groups.values())
    answer |= facts(findings=told_groups(scrubber, capture, name, groups, left))
    if not (failed or waiting or groups or answer.get("read")):
        answer["note"] = "no problems here; list_sessions with problems: true lists the sessions that have some"
    return answer | facts(more=_more(answer, counts, len(groups), len(capture.stderr)))


def _more(answer: Answer, counts: dict[str, int], groups: int, stderr_lines: int) -> list[str]:
    """Return how to get what did not fit into the answer."""
    told = []
    for key, total, wanted in (
        ("failed", counts["failed"], "status:error,tool-error kind:request"),
        ("unanswered", counts["unanswered"], "status:unanswered,pending,cancelled kind:request"),
        ("stderr", stderr_lines, "kind:stderr"),
    ):
        shown = len(answer.get(key, ()))
        if shown < total:
            told.append(f"{total - shown} more {key}: read_timeline with filter {wanted!r}")
    shown = len(answer.get("findings", ()))
    if shown < groups:
        told.append(f"{groups - shown} more kinds of findings: read_timeline with filter 'severity:error,warning,info'")
    return told


def _failed(scrubber: Scrubber, capture: OpenCapture, name: str, ordinal: int) -> Answer:
    """Return one failed call, with the text of its error."""
    exchanges = capture.columns.exchanges
    request, response = exchanges.requests[ordinal], exchanges.responses[ordinal]
    known = capture.known(request)
    found = [it for n in (request, response) for it in capture.findings.of(n)]
    worst = next((it for it in found if it.severity == "error"), found[0] if found else None)
    return facts(
        at=address(name, request),
        what=scrubber.text(" ".join(filter(None, (known.method, known.name))), 120) if known else None,
        status=exchanges.status(ordinal),
        answer=address(name, response) if response else None,
        arguments=_arguments(scrubber, capture, request),
        error=scrubber.text(answer_text(scrubber, capture, response), 300) if response else None,
        ms=milliseconds(known.latency) if known else None,
        rule=worst.rule if worst else None,
        blame=worst.blame if worst else None,
    )


def _arguments(scrubber: Scrubber, capture: OpenCapture, n: int) -> Any:
    """Return the arguments of a tool call, cut."""
    place = capture.index.row_of(n)
    row = scrubber.rows(capture, place)[0] if place is not None else None
    given = member(row.value, "params", "arguments") if row else None
    return clipped(given, _ARGUMENTS)[0] if given else None


def answer_text(scrubber: Scrubber, capture: OpenCapture, n: int) -> str:
    """Return the text of a JSON-RPC error or of a tool error."""
    place = capture.index.row_of(n)
    if place is None:
        return ""
    row = scrubber.rows(capture, place)[0]
    content = member(row.value, "result", "content")
    if row.kind == "error" or not isinstance(content, list):
        return row.preview if row.kind == "error" else ""
    return " ".join(str(member(it, "text")) for it in content[:5] if isinstance(member(it, "text"), str))


def _unanswered(scrubber: Scrubber, capture: OpenCapture, name: str, ordinal: int) -> Answer:
    n = capture.columns.exchanges.requests[ordinal]
    known = capture.known(n)
    what = " ".join(filter(None, (known.method, known.name))) if known else ""
    return facts(at=address(name, n), what=scrubber.text(what, 120), status=capture.columns.exchanges.status(ordinal))


def stderr(scrubber: Scrubber, capture: OpenCapture, name: str, most: int) -> list[Answer]:
    """Return the last lines that the server wrote to stderr."""
    told = []
    for n in list(capture.stderr[-most:]):
        place = capture.index.row_of(n)
        if place is not None:
            row = scrubber.rows(capture, place)[0]
            told.append({"at": address(name, n), "text": scrubber.text(row.text or "", 300)})
    return told


def end_of(scrubber: Scrubber, capture: OpenCapture, name: str) -> Answer | None:
    """Return how the session ended, if it did: the text of the row, and its address."""
    for n in list(capture.index.rows[-_LAST:])[::-1]:
        known = capture.known(n)
        if known and known.kind == "end":
            row = capture.messages(capture.index.row_of(n) or 0)[0]
            return {"at": address(name, n), "text": scrubber.text(row.text or "", 300)}
    return None
