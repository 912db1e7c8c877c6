"""The cause of a problem: what proves it, and what was seen at that time.

A finding on the request or its answer, an exit code and the status line of an HTTP answer prove a cause. Lines of
stderr, other requests that were open, and the same call that succeeded with other arguments only make one likely.
"""

import signal as signals
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mcpspy.capture.records import End, Header
from mcpspy.problems.failure import FailedRequest, StderrLine, arguments_text
from mcpspy.problems.problem import Cause, Kind, Problem
from mcpspy.problems.words import ADVICE, advice_for, capitalized, headline
from mcpspy.rules import RULES, SEVERITIES, Finding
from mcpspy.text import duration_text, plural, printable

_NOT_SERVED = "lifecycle/capability-not-served"
_ENDED = "lifecycle/server-exit"  # the exit itself says more
_UNSTARTED = "The server could not be started"
_SAME = 60  # characters of an error: a line of stderr that has them adds nothing
_ROWS = 8  # line numbers of a problem
_FURTHER = 4  # causes after the first
_METHOD_MISSING, _WRONG_PARAMS, _INTERNAL = -32601, -32602, -32603
_NOT_A_CAUSE = ("ops/", "security/", "compat/", "schema/deprecated", "pairing/late-after-cancel", "cancel/initialize",
                "pairing/unanswered")  # fmt: skip
"""Rules whose findings explain no failure."""
_GONE, _OF_GATEWAYS = (404, 410), (502, 503, 504)


@dataclass(slots=True)
class AlikeFailures:
    """Equal failures, or equal findings that are problems by themselves."""

    kind: Kind
    likeness: str
    """What its members share."""
    failed: int = 0
    """The number of failed requests."""
    failures: list[FailedRequest] = field(default_factory=list)
    """The first ones and the latest, in detail; at least one if any request has failed."""
    findings: list[Finding] = field(default_factory=list)
    """For a kind without failed requests: the first ones."""
    found: int = 0
    """How many findings there are."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a capture as a whole."""

    header: Header
    findings: Mapping[int, Sequence[Finding]]
    """By line number: those that may explain a failure."""
    end: End | None
    stderr: StderrLine | None
    """The line that tells most of the last ones."""
    lines: Mapping[int, str]
    """By line number: frames that are not messages."""
    succeeded: Mapping[str, tuple[int, bytes]]
    """By tool: the line number of its latest call that succeeded, and the frame, if it is small."""


def problem_of(group: AlikeFailures, evidence: Evidence) -> Problem:
    """Return a problem from the first of its failures, or from its findings."""
    kind, failed, failures = group.kind, group.failed, group.failures
    if not failures:
        return _found(group, evidence)
    first = failures[0]
    proofs = _proofs(first, evidence)
    causes = [*_causes(kind, first, proofs, evidence)]
    causes = causes or [Cause(_nothing_more(first), "unknown")]
    rows = dict.fromkeys(n for failure in failures for n in (failure.n, failure.answer) if n)
    rows |= dict.fromkeys(n for cause in causes for n in cause.rows)
    telling = next((it for it in proofs if it.severity == "error" and it.rule != _ENDED), None)
    advice = (RULES[telling.rule].advice(telling.blame)[0][1],) if telling else advice_for(kind, first)
    return Problem(
        kind,
        (_UNSTARTED, "") if kind == "start" and evidence.end and evidence.end.why else headline(kind, failures),
        _side(kind, first, next((it for it in proofs if it.message == causes[0].text), None)),
        causes[0],
        tuple(causes[1 : _FURTHER + 1]),
        advice,
        failed,
        failed,
        first.method,
        first.name,
        tuple(sorted(list(rows)[:_ROWS])),
        first.t,
        tuple(dict.fromkeys(it.rule for it in proofs)),
        group.likeness,
    )


def _found(group: AlikeFailures, evidence: Evidence) -> Problem:
    """Return a problem that only findings show: no request has failed."""
    kind, findings, found = group.kind, group.findings, group.found
    first = findings[0]
    distinct = {finding.rule: finding for finding in reversed(findings)}
    causes = [_finding_cause(it, evidence) for it in reversed(distinct.values())]
    advice: tuple[str, ...] = (RULES[first.rule].advice(first.blame)[0][1],)
    if kind == "exit" and evidence.end and evidence.end.why:  # the client sent nothing before it knew
        kind, causes, advice = "start", [*_exits(evidence)], ADVICE["start"]
    elif kind == "exit":
        causes = [*_exits(evidence), *causes]
    sentence = {
        "start": _UNSTARTED,
        "noise": "the server wrote text that is not MCP to stdout",
        "exit": "the server ended before the client",
    }.get(kind, f"the client does not offer {_named(first)}")
    rows = dict.fromkeys(n for it in findings for n in (it.frame, *it.related))
    rows |= dict.fromkeys(n for cause in causes for n in cause.rows)
    return Problem(
        kind,
        (capitalized(sentence), ""),
        first.blame,
        causes[0],
        tuple(causes[1:]),
        advice,
        found,
        rows=tuple(sorted(list(rows)[:_ROWS])),
        rules=tuple(dict.fromkeys(it.rule for it in findings)),
        likeness=group.likeness,
    )


def _finding_cause(finding: Finding, evidence: Evidence) -> Cause:
    line = evidence.lines.get(finding.frame)
    return Cause(f"{finding.message}: {line}" if line else finding.message, "known", (finding.frame,))


def _named(finding: Finding) -> str:
    return f"the tool {finding.concerns[-1]}" if len(finding.concerns) > 1 and finding.concerns[-1] else "the tools"


def may_explain(finding: Finding) -> bool:
    """Return whether a finding may be the cause of a failure."""
    return finding.severity != "info" and not finding.rule.startswith(_NOT_A_CAUSE)


def _proofs(failure: FailedRequest, evidence: Evidence) -> list[Finding]:
    """Return the findings on a failed request and its answer that can explain the failure, the worst of each rule."""
    known = [it for n in (failure.n, failure.answer) if n for it in evidence.findings.get(n, ())]
    answered = failure.outcome == "error" or (failure.outcome == "tool-error" and failure.method == "tools/call")
    # The form of an error explains nothing.
    able = [it for it in known if not answered or it.frame == failure.n or it.rule == _NOT_SERVED]
    ranked = sorted(able, key=lambda it: SEVERITIES.index(it.severity))
    return list({it.rule: it for it in reversed(ranked)}.values())[::-1]


def _causes(kind: Kind, failure: FailedRequest, proofs: list[Finding], evidence: Evidence) -> Iterator[Cause]:
    """Yield the causes of a failure, the surest first."""
    if failure.by_gate:
        yield Cause(f"the answer was {failure.by_gate}", "known", (failure.answer,) if failure.answer else ())
    if kind in ("exit", "start"):
        yield from _exits(evidence)
    answered = failure.outcome in ("error", "tool-error")
    for proof in proofs:
        if proof.rule != _ENDED and (answered or proof.severity == "error"):
            yield Cause(proof.message, "known", (proof.frame, *proof.related))
    if failure.late:
        n, t = failure.late
        yield Cause(f"the answer came after {duration_text(t - failure.t)}; the {failure.side} had waited "
                    f"{duration_text(failure.waited)}", "known", (n,))  # fmt: skip
    elif failure.outcome == "broken":
        how = "was reset" if failure.reset else "ended"
        rows = (failure.answer,) if failure.answer else ()
        yield Cause(f"the stream {how} after {duration_text(failure.waited)}, before the answer", "known", rows)
    elif failure.status:
        yield from _status_causes(failure)
    yield from _error_causes(failure)
    for proof in proofs:
        if proof.severity != "error" and not answered:
            yield Cause(proof.message, "known", (proof.frame, *proof.related))
    line = None if kind in ("exit", "start") else failure.stderr  # there it is a part of the cause
    if line and (not failure.text or failure.text[:_SAME] not in line.text):
        yield Cause(f"the server wrote to stderr meanwhile: {line.text.strip()}", "likely", (line.n,))
    yield from _comparisons(failure, evidence)


def _exits(evidence: Evidence) -> Iterator[Cause]:
    """Yield how the process ended, and what it wrote to stderr before."""
    end, last = evidence.end, evidence.stderr
    told = f"on stderr: {last.text.strip()}" if last else ""
    if end:
        command = f": {printable(evidence.header.argv[0], 60)}" if end.why and evidence.header.argv else ""
        how = (
            (end.why and f"{end.why}{command}")
            or (end.signal is not None and f"it was killed by {_signal_name(end.signal)}")
            or (end.code is not None and f"it exited with code {end.code}")
        )
        if how and last:
            yield Cause(f"{how}; {told}", "known", (last.n, end.n))
        elif how:
            yield Cause(how if end.why else f"{how}, and wrote nothing to stderr", "known", (end.n,))
    elif last:
        yield Cause(told, "likely", (last.n,))


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _status_causes(failure: FailedRequest) -> Iterator[Cause]:
    """Yield what the status and the headers of an HTTP answer show."""
    rows = (failure.answer,) if failure.answer else ()
    status = f"{failure.status} {failure.reason}".strip()
    if failure.ours:
        yield Cause(f"mcpspy answered {status} itself: the server could not be reached, or broke off", "known", rows)
    elif failure.status == 401:
        sent = "the credentials of the request were refused" if failure.credentials else "no credentials were sent"
        told = f"the challenge is {failure.challenge}" if failure.challenge else "the answer has no WWW-Authenticate"
        yield Cause(f"{sent}; {told}", "known", rows)
    elif failure.gateway:
        yield Cause(f"{status} was answered by {failure.gateway}, probably not by the server itself", "known", rows)
    elif failure.status in _GONE and failure.named:
        yield Cause("the server no longer knows the session that the request names", "known", rows)
    elif failure.status < 300:
        yield Cause(f"the answer ({status}) holds no JSON-RPC message", "known", rows)
    elif failure.status < 400:
        yield Cause(f"the server redirects the request ({status}), and the client did not follow", "known", rows)
    else:
        yield Cause(f"the answer is {status}, without a JSON-RPC answer", "known", rows)


def _error_causes(failure: FailedRequest) -> Iterator[Cause]:
    """Yield what the code of an error means, and what the server says."""
    rows = (failure.answer,) if failure.answer else ()
    side = "server" if failure.side == "client" else "client"
    if failure.by_gate or failure.outcome not in ("error", "tool-error"):
        return
    if failure.outcome == "tool-error":
        yield Cause("the tool itself reported this error", "known", rows)
    elif failure.code == _METHOD_MISSING:
        yield Cause(f"the {side} does not have the method {failure.method}", "known", rows)
    elif failure.code == _WRONG_PARAMS:
        yield Cause(f"the {side} does not accept the params of the request", "known", rows)
    elif failure.code == _INTERNAL:
        yield Cause(f"the {side} failed while it handled the request (internal error)", "known", rows)
    else:
        yield Cause(f"the {side} answered with this error", "known", rows)


def _comparisons(failure: FailedRequest, evidence: Evidence) -> Iterator[Cause]:
    """Yield what was different when it worked, and what else was open."""
    n, raw = evidence.succeeded.get(failure.name or "", (0, b""))
    other = arguments_text(raw)
    if n and failure.n and failure.method == "tools/call" and other != failure.arguments:
        yield Cause(f"the same tool succeeded in #{n} with {other or 'other arguments'}; here it has "
                    f"{failure.arguments or 'none'}", "likely", (n,))  # fmt: skip
    if failure.outcome in ("timed-out", "unanswered", "server-exit") and failure.open:
        numbers = ", ".join(f"#{n}" for n in failure.open)
        yield Cause(f"{plural(len(failure.open), 'other request')} {'was' if len(failure.open) == 1 else 'were'} open "
                    f"at that time: {numbers}", "likely", failure.open)  # fmt: skip


def _nothing_more(failure: FailedRequest) -> str:
    if failure.outcome in ("timed-out", "unanswered"):
        return "the server sent nothing: no answer, no progress, no line on stderr"
    return "the answer does not say why"


def _side(kind: Kind, failure: FailedRequest, proof: Finding | None) -> str:
    """Return the responsible side; `proof` is the finding that is the first cause, if it is one."""
    if failure.by_gate:
        return "gate"
    if proof:
        return proof.blame
    if failure.ours or (failure.gateway and failure.status) or failure.status in _OF_GATEWAYS:
        return "network"
    if kind == "login":
        return "client" if failure.credentials else "server"
    return "server" if failure.side == "client" else "client"
