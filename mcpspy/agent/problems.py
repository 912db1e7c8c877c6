"""What failed in a session, and why, or in all sessions of a run, as one answer: the problems of `mcpspy why`."""

from mcpspy.agent.answers import LARGEST, Answer, Scrubber, address, facts, fitting, progress, safe, size_of
from mcpspy.agent.captures import RUN, AgentCaptures
from mcpspy.agent.rulebook import told_groups
from mcpspy.browse.library import ListedCapture
from mcpspy.browse.timeline import OpenCapture
from mcpspy.conversation.exchanges import STATUSES
from mcpspy.problems.problem import Cause, Problem

_PROBLEMS, _STDERR = 12, 8  # limits for one answer
_DETAILED = 3  # problems that share the room equally; more of them are not shorter
_SIZES = ((500, 4), (200, 2), (60, 0))  # characters of a text, and further causes: as many as there is room for
_CAUSE_ROWS = 8  # addresses of a cause
_LAST = 6  # the number of last rows that are searched for the end of the session
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
    lines = [] if quoted else stderr(scrubber, capture, name, _STDERR)
    for_problems = room * 3 // 5 if groups or lines else room
    each = for_problems // min(max(len(problems), 1), _DETAILED)
    told = (told_problem(scrubber, capture, name, problem, each) for problem in problems)
    answer |= facts(problems=list(fitting(told, for_problems, _PROBLEMS)), end=ending)
    room -= size_of(answer.get("problems", ""))
    lines = list(fitting(reversed(lines), room // 3, _STDERR))[::-1]
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
    for length, further in _SIZES:
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
    for n in list(capture.index.rows[-_LAST:])[::-1]:
        known = capture.known(n)
        if known and known.kind == "end":
            row = capture.messages(capture.index.row_of(n) or 0)[0]
            return {"at": address(name, n), "text": scrubber.text(row.text or "", 300)}
    return None
