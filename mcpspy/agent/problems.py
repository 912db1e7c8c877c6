"""What went wrong in a session: its problems, why it failed to start, and findings with the rules behind them.

The problems are those of `mcpspy why`, of one session or of all sessions of a run as one answer. Of a start, the answer
shows how far the handshake came, what the server wrote, and how it ended.
"""

from collections.abc import Iterable, Iterator
from textwrap import dedent
from typing import NamedTuple

from mcpspy.agent.answers import (
    LARGEST,
    Answer,
    Scrubber,
    address,
    facts,
    fitting,
    milliseconds,
    progress,
    safe,
    size_of,
)
from mcpspy.agent.captures import RUN, AgentCaptures
from mcpspy.browse.findings import Group
from mcpspy.browse.library import ListedCapture
from mcpspy.browse.timeline import OpenCapture
from mcpspy.conversation.exchanges import STATUSES
from mcpspy.conversation.outcomes import FAILING
from mcpspy.conversation.preview import INTRODUCE
from mcpspy.errors import UsageError
from mcpspy.problems.problem import Cause, Problem
from mcpspy.report.waivers import no_rule
from mcpspy.rules import RULES, SEVERITIES, Finding, Rule, current
from mcpspy.timeline import Row

_MOST_FINDINGS = 30  # findings per answer
_RELATED = 5  # frames listed for a finding besides its own
_SAME = 5  # frames listed for a group


def explain_rule(*, rule: str) -> Answer:
    """Return what a rule finds, why it matters, how to fix it, and the page of the specification."""
    found = the_rule(rule)
    return facts(
        rule=found.id,
        severity=found.severity,
        blame=found.blame,
        explanation=found.explanation,
        **advice(found, found.blame),
        spec=found.url(None),
        revisions=[revision.value for revision in found.revisions],
        fails=dedent(found.fails).strip()[:1500],
        passes=dedent(found.passes).strip()[:1500],
    )


def the_rule(name: str) -> Rule:
    """Return the rule with that id or former id. Raises UsageError, with the nearest id."""
    name = current(name.strip())
    if name not in RULES:
        raise UsageError(safe(no_rule(name[:100]), 300))
    return RULES[name]


def advice(rule: Rule, blame: str) -> dict[str, str]:
    """Return what the responsible side should change, and what the other side can do until then."""
    told = [text for _, text in rule.advice(blame)]
    return dict(zip(("fix", "meanwhile"), told, strict=False))


def told_findings(
    scrubber: Scrubber, capture: OpenCapture, name: str, findings: Iterable[Finding], room: int
) -> list[Answer]:
    """Return findings, the worst first. The fix of a rule is given with its first finding."""
    ranked = sorted(findings, key=lambda it: (SEVERITIES.index(it.severity), it.frame))
    return list(fitting(_each(scrubber, capture, name, ranked), room, _MOST_FINDINGS))


def _each(scrubber: Scrubber, capture: OpenCapture, name: str, findings: Iterable[Finding]) -> Iterator[Answer]:
    explained: set[str] = set()
    for finding in findings:
        rule = RULES.get(finding.rule)
        more = advice(rule, finding.blame) if rule and finding.rule not in explained else {}
        explained.add(finding.rule)
        yield _told_finding(scrubber, capture, name, finding) | more


def told_groups(
    scrubber: Scrubber, capture: OpenCapture, name: str, groups: Iterable[Group], room: int
) -> list[Answer]:
    """Return findings by rule and responsible side, the worst first: count, frames, the first finding, the fix."""
    ranked = sorted(groups, key=lambda it: (SEVERITIES.index(it.severity), -it.count, it.rule))
    return list(fitting((_group(scrubber, capture, name, it) for it in ranked), room, _MOST_FINDINGS))


def _group(scrubber: Scrubber, capture: OpenCapture, name: str, group: Group) -> Answer:
    rule, first = RULES.get(group.rule), group.findings[0] if group.findings else None
    fields = (
        _told_finding(scrubber, capture, name, first)
        if first
        else facts(rule=group.rule, severity=group.severity, blame=group.blame)
    )
    frames = list(dict.fromkeys(it.frame for it in group.findings))[1 : _SAME + 1]
    count = facts(count=group.count if group.count > 1 else None, also=[address(name, n) for n in frames])
    return fields | count | (advice(rule, group.blame) if rule else {})


def _is_text(row: Row) -> bool:
    return row.kind == "invalid" and row.value is None


def _told_finding(scrubber: Scrubber, capture: OpenCapture, name: str, finding: Finding) -> Answer:
    scrubber.learn(capture, finding.related[:_RELATED])  # the message may quote their values
    place = capture.index.row_of(finding.frame)
    row = scrubber.rows(capture, place)[0] if place is not None else None
    return facts(
        rule=finding.rule,
        severity=finding.severity,
        blame=finding.blame,
        at=address(name, finding.frame),
        message=scrubber.text(finding.message, 400),
        text=scrubber.text(row.raw.decode(errors="replace"), 160) if row and _is_text(row) else None,
        pointer=scrubber.text(finding.pointer, 200),
        related=[address(name, n) for n in finding.related[:_RELATED]],
        spec=finding.spec,
    )


_MOST_PROBLEMS, _MOST_STDERR = 12, 8  # limits for one answer
_DETAILED = 3  # problems that share the room equally; more of them are not shorter
_CAUSE_SIZES = ((500, 4), (200, 2), (60, 0))  # characters of a text, and further causes: as many as there is room for
_CAUSE_ROWS = 8  # addresses of a cause
_LAST_ROWS = 6  # the number of last rows that are searched for the end of the session
_PENDING = STATUSES.index("pending")


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
    """Return the problems of one session, within `room` bytes; then the findings that explain none of them."""
    capture, name, scrubber = captures.open(entry), captures.name(entry), captures.scrubber
    problems = capture.problems.made()
    answer = facts(session=name, server=scrubber.text(entry.header.name, 80), state=capture.state) | progress(capture)
    counts = {"requests": capture.problems.requests, "failed": capture.problems.failed}
    answer |= {"counts": counts | {"findings": dict(capture.found)}}
    ending = end_of(scrubber, capture, name)
    room -= size_of(answer) + size_of(ending) + 300
    explained = {rule for problem in problems for rule in problem.rules}
    groups = [it for it in capture.findings.groups.values() if it.rule not in explained]
    quoted = _quoted(capture, problems)
    lines = [] if quoted else stderr(scrubber, capture, name, _MOST_STDERR)
    for_problems = room * 3 // 5 if groups or lines else room
    each = for_problems // min(max(len(problems), 1), _DETAILED)
    told = (told_problem(scrubber, capture, name, problem, each) for problem in problems)
    answer |= facts(problems=list(fitting(told, for_problems, _MOST_PROBLEMS)), end=ending)
    room -= size_of(answer.get("problems", ""))
    lines = list(fitting(reversed(lines), room // 3, _MOST_STDERR))[::-1]
    found = told_groups(scrubber, capture, name, groups, room - size_of(lines))
    answer |= facts(findings=found, stderr=lines)
    if not (problems or groups or answer.get("read")):
        answer["note"] = "no problems here; list_sessions with problems: true lists the sessions that have some"
    return answer | facts(more=_more(answer, capture, len(problems), len(groups), len(quoted)))


def told_problem(scrubber: Scrubber, capture: OpenCapture, name: str, problem: Problem, room: int) -> Answer:
    """Return a problem as facts, within about `room` bytes; scrubbed after the frames that it may quote were read."""
    causes = (problem.cause, *problem.further)
    scrubber.learn(capture, (*problem.rows, *(n for cause in causes for n in cause.rows[:_CAUSE_ROWS])))
    told: Answer = {}
    for length, further in _CAUSE_SIZES:
        cause, *others = [_cause(scrubber, name, it, length) for it in causes[: 1 + further]]
        told = facts(
            kind=problem.kind,
            headline=scrubber.excerpt(problem.headline, length),
            side=problem.side,
            cause=cause,
            further=others,
            advice=list(problem.advice),
            count=problem.count,
            failed=problem.failed,
            at=[address(name, n) for n in problem.rows],
            rules=list(problem.rules),
        )
        if size_of(told) <= room:
            break
    return told


def _cause(scrubber: Scrubber, name: str, cause: Cause, length: int) -> Answer:
    at = [address(name, n) for n in cause.rows[:_CAUSE_ROWS]]
    return facts(text=scrubber.excerpt(cause.text, length), certainty=cause.certainty, at=at)


def _quoted(capture: OpenCapture, problems: list[Problem]) -> set[int]:
    """Return the line numbers of the stderr output that problems quote."""
    quoted = {n for it in problems for cause in (it.cause, *it.further) for n in cause.rows}
    return quoted.intersection(capture.stderr)


def _more(answer: Answer, capture: OpenCapture, problems: int, groups: int, quoted: int) -> list[str]:
    """Return how to get what is not in the answer."""
    lines = len(capture.stderr) - len(answer.get("stderr", ())) - quoted
    wanted = (
        ("more problems", problems - len(answer.get("problems", ())), "status:failed"),
        ("more kinds of findings", groups - len(answer.get("findings", ())), "severity:error,warning,info"),
        ("more lines of stderr", lines, "kind:stderr"),
        ("requests that wait", capture.columns.exchanges.statuses.count(_PENDING), "status:pending kind:request"),
    )
    return [f"{what}: {number}; read_timeline with filter {text!r}" for what, number, text in wanted if number > 0]


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
    for n in list(capture.index.rows[-_LAST_ROWS:])[::-1]:
        known = capture.known(n)
        if known and known.kind == "end":
            row = capture.messages(capture.index.row_of(n) or 0)[0]
            return {"at": address(name, n), "text": scrubber.text(row.text or "", 300)}
    return None


_HANDSHAKE_ROWS = 5000  # rows that are searched for the handshake
_STDERR_OF_START = 12  # lines
_STOPPING = ("start", "handshake", "login", "connection", "exit", "noise")  # kinds of problems
_OF_PROBLEM = 1500  # bytes
_RULES_OF_START = ("lifecycle/", "framing/", "jsonrpc/", "http/", "shape/")
_SLOW_START = 10_000_000_000  # nanoseconds: the time-out of some clients


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
    groups = [it for it in capture.findings.groups.values() if it.rule.startswith(_RULES_OF_START)]
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
        stderr=stderr(scrubber, capture, name, _STDERR_OF_START),
    )
    return answer | facts(findings=told_groups(scrubber, capture, name, groups, LARGEST - size_of(answer) - 200))


def handshake(capture: OpenCapture) -> Handshake:
    """Return how far the handshake came, as far as the capture is folded."""
    found = Handshake()
    for n in list(capture.index.rows[:_HANDSHAKE_ROWS]):
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
        told = [told_problem(scrubber, capture, name, it, _OF_PROBLEM) for it in stopping[:2]]
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
    if shaken.latency is None or shaken.latency < _SLOW_START:
        return ""
    return f"the handshake succeeded after {shaken.latency / 1e9:.0f} s, which is longer than some clients wait"
