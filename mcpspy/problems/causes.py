"""The cause of a problem: what proves it, and what was seen at that time.

A finding on the request or its answer, an exit code and the status line of an HTTP answer prove a cause. Lines of
stderr, other requests that were open, and the same call that succeeded with other arguments only make one likely.
"""

import re
import signal as signals
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from mcpspy.capture.records import End, Header
from mcpspy.conversation.offers import HANDSHAKES
from mcpspy.conversation.refusals import POST_AS_GET
from mcpspy.problems.problem import OPEN, Cause, FailedRequest, Kind, Problem, StderrLine, arguments_text
from mcpspy.problems.words import ADVICE, ANSWER, NO_INPUT, advice_for, capitalized, headline, loss_of, with_stdin
from mcpspy.rules import RULES, SEVERITIES, Finding
from mcpspy.rules.follows import LOST_ANSWER, UNFIT
from mcpspy.secrets.tokens import unfilled
from mcpspy.spec.containers import run_without_stdin
from mcpspy.text import duration_text, plural, printable

_NOT_SERVED = "lifecycle/capability-not-served"
_ENDED = "lifecycle/server-exit"  # the exit itself says more
_UNSTARTED = "The server could not be started"
_SAME = 60  # characters of an error: a line of stderr that has them adds nothing
_ROWS = 8  # line numbers of a problem
_FURTHER = 4  # causes after the first
_METHOD_MISSING, _WRONG_PARAMS, _INTERNAL = -32601, -32602, -32603
_MISMATCH = -32020
_OF_NEWEST = (-32022, _MISMATCH)  # sent by a server that speaks only 2026-07-28; then no answer could help
_OF_VERSION = re.compile(r"protocol[ _-]*version|protocolversion|\bversion\b.{0,40}\bsupported|revision", re.IGNORECASE)
_OF_SCHEMA, _MANY, _POINTER = "schema/invalid", " violations: ", 100
_NOT_A_CAUSE = ("ops/", "security/", "compat/", "schema/deprecated", "pairing/late-after-cancel", "cancel/initialize",
                "pairing/unanswered", "pairing/answered-late", "lifecycle/handshake-failed",
                "http/refused")  # fmt: skip
"""Rules whose findings explain no failure."""
_TOKENLESS = "progress/no-token"  # progress helps only if the server goes on working, as a late answer shows
_LIKELY = (_TOKENLESS, "tools/arguments-fit")
"""Rules whose findings make a cause likely, although nothing is wrong."""
_MAY_LACK = ("start", "exit", "handshake")
"""Kinds of problems for which a placeholder in the command line may be the cause."""
_GONE, _OF_LOGIN, _OF_PROXY, _SERVER_FAILURE = (404, 410), (401, 403), 407, 500
_OF_PARAMS = (
    "tools/arguments",
    "tools/unknown-tool",
    "schema/invalid",
    "paging/unknown-cursor",
    "lifecycle/meta-missing",
)
_SPEAKS_OF_PARAMS = re.compile(
    r"argument|param|valid|schema|required|unknown|field|property|expected|not found|no (?:such )?tool|type",
    re.IGNORECASE,
)
_OF_CODES = {
    -32700: ("framing/", "jsonrpc/"),
    -32600: ("framing/", "jsonrpc/", "schema/invalid", "lifecycle/", "http/session-missing", "http/version-header"),
    -32601: ("schema/unknown-method", "schema/method-not-in-revision", "lifecycle/capability-missing",
             "lifecycle/wrong-direction", "extension/", "skills/"),
    -32602: ("mrtr/", "extension/", "lifecycle/"),
    -32000: ("http/session-missing", "http/version-header"),
    -32020: ("http/",),
    -32021: ("extension/", "lifecycle/", "mrtr/"),
    -32022: ("lifecycle/",),
}  # fmt: skip
"""By code of an error: the beginnings of rules whose violation leads to it."""
_TOLD = {
    "server-exit": (_ENDED,),
    "broken": (_ENDED,),
    "refused": (_ENDED, "http/refused"),
    "timed-out": ("pairing/unanswered", "pairing/answered-late"),
    "unanswered": ("pairing/unanswered",),
}
"""By outcome: the rules that only say what the headline says."""
_HUNG = ("timed-out", "unanswered")
_SILENT = ("server-exit", "timed-out", "unanswered", "abandoned")
OTHERS = " others"
"""The end of the likeness of those for which there was no room."""


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
    subjects: dict[str, None] = field(default_factory=dict)
    """For a kind without failed requests: the methods of the first messages, if they are known."""


class ProcessEnd(NamedTuple):
    """How a process of the server ended."""

    end: End
    stderr: StderrLine | None
    """The line that tells most of those that it wrote to stderr last."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a capture as a whole."""

    header: Header
    findings: Mapping[int, Sequence[Finding]]
    """By line number: those that may explain a failure."""
    ends: Sequence[ProcessEnd]
    """How the processes of the server ended, in order."""
    lines: Mapping[int, str]
    """By line number: frames that are not messages."""
    succeeded: Mapping[str, tuple[int, bytes]]
    """By tool: the line number of its latest call that succeeded, and the frame, if it is small."""


def problem_of(group: AlikeFailures, evidence: Evidence) -> Problem:
    """Return a problem from the first of its failures, or from its findings."""
    kind, failed, failures = group.kind, group.failed, group.failures
    if not failures:
        return _found(group, evidence)
    calls = [it for it in failures if not it.method.startswith("GET ")] or failures  # a call tells more than a stream
    first = next((it for it in calls if _proofs(it, evidence)), calls[0])
    if group.likeness.endswith(OTHERS):
        return _others(group)
    proofs, ended = _proofs(first, evidence), ended_by(first, evidence.ends)
    causes, deaf = [*_causes(kind, first, proofs, evidence, ended)], _deaf(first, ended, evidence.header)
    if deaf:
        causes.insert(0 if deaf.certainty == "known" else len(causes), deaf)
    causes = causes or [Cause(_nothing_more(first), "unknown")]
    rows = dict.fromkeys(n for failure in failures for n in (failure.n, failure.answer) if n)
    rows |= dict.fromkeys(n for cause in causes for n in cause.rows)
    proof = next((it for it in proofs if _sentence(it) == causes[0].text), None)
    advice = (RULES[proof.rule].advice(proof.blame)[0][1],) if proof else advice_for(kind, first)
    asked = first.question is not None and causes[0].rows == first.question[:1]
    if causes[0] is deaf:
        advice = with_stdin(run_without_stdin(evidence.header.argv) or "")
    elif asked:
        advice = ANSWER
    elif kind == "start" and ended and ended.end.code == 0:
        advice = NO_INPUT
    return Problem(
        kind,
        (_UNSTARTED, "") if kind == "start" and ended and ended.end.why else headline(kind, failures),
        "client" if causes[0] is deaf else first.side if asked else _side(kind, first, proof),
        causes[0],
        tuple(causes[1 : _FURTHER + 1]),
        advice,
        failed,
        failed,
        first.method,
        first.name,
        tuple(sorted(list(rows)[:_ROWS])),
        first.t,
        (*dict.fromkeys(it.rule for it in proofs), *_TOLD.get(first.outcome, ())),
        group.likeness,
    )


def _others(group: AlikeFailures) -> Problem:
    """Return the problem that stands for all those of a kind for which there was no room."""
    told = f"{plural(group.failed, 'further request')} failed, in many ways"
    failed, unknown = group.failed, Cause("there are too many different errors to name each", "unknown")
    return Problem(group.kind, (told,), "unknown", unknown, (), ADVICE[group.kind], failed, failed, likeness=told)


def _found(group: AlikeFailures, evidence: Evidence) -> Problem:
    """Return a problem that no failed request shows: findings do, or how the process ended."""
    kind, findings, found = group.kind, group.findings, group.found
    causes = [_finding_cause(it, evidence) for it in {finding.rule: finding for finding in reversed(findings)}.values()]
    causes.reverse()
    rows = dict.fromkeys(n for it in findings for n in (it.frame, *it.related))
    advice, blame = ADVICE[kind], "server"
    if kind == "exit":
        ended = evidence.ends[-1] if evidence.ends else None
        kind = "start" if ended and ended.end.why else kind  # the client had sent nothing before it knew
        exits = [*_exits(ended, evidence.header), *_unfilled(evidence.header)]
        causes, advice = exits if kind == "start" else [*exits, *causes], ADVICE[kind]
    elif findings:
        advice, blame = (RULES[findings[0].rule].advice(findings[0].blame)[0][1],), findings[0].blame
    sentence = {
        "start": _UNSTARTED,
        "noise": "the server wrote text that is not MCP to stdout",
        "exit": "the server ended before the client",
        "fault": loss_of(findings[0], list(group.subjects)) if findings else "",
    }.get(kind) or f"the client does not offer {_named(findings[0])}"
    rows |= dict.fromkeys(n for cause in causes for n in cause.rows)
    return Problem(
        kind,
        (capitalized(sentence), ""),
        blame,
        causes[0],
        tuple(causes[1:]),
        advice,
        found,
        rows=tuple(sorted(list(rows)[:_ROWS])),
        rules=tuple(dict.fromkeys(it.rule for it in findings)),
        likeness=group.likeness,
    )


def _finding_cause(finding: Finding, evidence: Evidence) -> Cause:
    line, told = evidence.lines.get(finding.frame), _sentence(finding)
    return Cause(f"{told}: {line}" if line else told, "known", (finding.frame,))


def _sentence(finding: Finding) -> str:
    """Return what a finding says; about a violation of the schema also where, unless it names many places."""
    placed = finding.rule == _OF_SCHEMA and finding.pointer and _MANY not in finding.message
    return f"{finding.message}, at {printable(finding.pointer, _POINTER)}" if placed else finding.message


def _named(finding: Finding) -> str:
    return f"the tool {finding.concerns[-1]}" if len(finding.concerns) > 1 and finding.concerns[-1] else "the tools"


def may_explain(finding: Finding) -> bool:
    """Return whether a finding may be the cause of a failure."""
    if RULES[finding.rule].explains or finding.rule in _LIKELY:
        return True
    return finding.severity != "info" and not finding.rule.startswith(_NOT_A_CAUSE)


def ended_by(failure: FailedRequest, ends: Sequence[ProcessEnd]) -> ProcessEnd | None:
    """Return how the process ended that should have answered a request: the first end after the request."""
    return next((it for it in ends if it.end.t >= failure.t), None)


def _proofs(failure: FailedRequest, evidence: Evidence) -> list[Finding]:
    """Return the findings that prove why a request failed, one of each rule, the worst first."""
    known = [it for n in (failure.n, failure.answer) if n for it in evidence.findings.get(n, ())]
    able = [it for it in known if _is_of(it, failure) and _proves(it, failure, evidence)]
    ranked = sorted(able, key=lambda it: SEVERITIES.index(it.severity))
    return list({it.rule: it for it in reversed(ranked)}.values())[::-1]


def _is_of(finding: Finding, failure: FailedRequest) -> bool:
    """Return whether a finding on the line of a request is about the request, and not about another part of a batch."""
    return finding.frame != failure.n or finding.part == failure.part


def _proves(finding: Finding, failure: FailedRequest, evidence: Evidence) -> bool:
    """Return whether the fault that a rule finds leads to just this failure."""
    rule, code, at_request = finding.rule, failure.code, finding.frame == failure.n
    if RULES[rule].explains:
        return failure.outcome in RULES[rule].explains
    if rule in _LIKELY:
        return False
    if failure.outcome == "server-exit":
        return False
    if failure.outcome == "tool-error" and failure.method != "tools/call":
        return not at_request
    if failure.outcome not in ("error", "tool-error"):
        lost = rule in LOST_ANSWER or rule.startswith(("progress/", "pairing/"))
        over_http = rule.startswith("http/") and failure.status < _SERVER_FAILURE and failure.status not in _OF_LOGIN
        return (rule in UNFIT if at_request else lost) or over_http
    if rule in _OF_PARAMS:
        told = code == _WRONG_PARAMS or _SPEAKS_OF_PARAMS.search(failure.text) is not None
        listed = rule != "tools/unknown-tool" or failure.name not in evidence.succeeded
        return at_request and told and listed
    if rule == _NOT_SERVED:
        return True
    prefixes = _OF_CODES.get(code, ()) if code is not None else ()
    return at_request and rule.startswith(tuple(prefixes))


def _causes(
    kind: Kind, failure: FailedRequest, proofs: list[Finding], evidence: Evidence, ended: ProcessEnd | None
) -> Iterator[Cause]:
    """Yield the causes of a failure, the surest first."""
    if failure.by_gate:
        yield Cause(f"the answer was {failure.by_gate}", "known", (failure.answer,) if failure.answer else ())
    if kind in ("exit", "start"):
        yield from _exits(ended, evidence.header)
    if kind in _MAY_LACK:
        yield from _unfilled(evidence.header)
    for proof in proofs:
        yield Cause(_sentence(proof), "known", (proof.frame, *proof.related))
    if kind == "handshake" and failure.code not in _OF_NEWEST and _OF_VERSION.search(failure.text):
        yield Cause("the server refuses the revision that the client names; it must answer with one that it supports",
                    "known", (failure.answer,) if failure.answer else ())  # fmt: skip
    if kind == "handshake" and failure.code == _MISMATCH:
        yield Cause("the server expects the headers of 2026-07-28, which no client sends with `initialize`",
                    "known", (failure.answer,) if failure.answer else ())  # fmt: skip
    if _is_impatient(failure):
        yield Cause(f"the server had reported progress {duration_text(failure.quiet or 0)} before; the {failure.side} "
                    "gave up although the request went on", "known", (failure.n,))  # fmt: skip
    if failure.late:
        n, t = failure.late
        yield Cause(f"the answer came after {duration_text(t - failure.t)}; the {failure.side} had waited "
                    f"{duration_text(failure.waited)}", "known", (n,))  # fmt: skip
    elif failure.outcome == "broken":
        how = "was reset" if failure.reset else "ended"
        rows = (failure.answer,) if failure.answer else ()
        before = "" if failure.method.startswith("GET ") else ", before the answer"
        yield Cause(f"the stream {how} after {duration_text(failure.waited)}{before}", "known", rows)
    elif failure.status and not (failure.outcome in _HUNG or any(RULES[proof.rule].explains for proof in proofs)):
        yield from _status_causes(failure)
    yield from _error_causes(failure)
    line = None if kind in ("exit", "start") else failure.stderr  # there it is a part of the cause
    if line and (not failure.text or failure.text[:_SAME] not in line.text):
        yield Cause(f"the server wrote to stderr meanwhile: {line.text.strip()}", "likely", (line.n,))
    yield from _comparisons(failure, evidence)
    if failure.outcome in _HUNG and failure.quiet is not None and failure.quiet >= failure.waited and not proofs:
        yield Cause("the request has a progressToken, but the server reported no progress", "likely", (failure.n,))
    faults = [it for it in evidence.findings.get(failure.n, ()) if _is_of(it, failure) and it not in proofs]
    for fault in faults:
        if fault.rule in _LIKELY and (failure.late or fault.rule != _TOKENLESS):
            yield Cause(fault.message, "likely", (fault.frame, *fault.related))
        elif fault.frame == failure.n and fault.rule not in (_ENDED, _TOKENLESS):
            yield Cause(f"the request also has a fault: {fault.message}", "likely", (fault.frame,))


def _is_impatient(failure: FailedRequest) -> bool:
    """Return whether the client gave up although progress was reported until then."""
    return failure.outcome in _HUNG and failure.side == "client" and failure.progressed


def _exits(ended: ProcessEnd | None, header: Header) -> Iterator[Cause]:
    """Yield how a process ended, and what it wrote to stderr before."""
    end, last = ended or (None, None)
    told = f"on stderr: {last.text.strip()}" if last else ""
    if end:
        command = f": {printable(header.argv[0], 60)}" if end.why and header.argv else ""
        how = (
            (end.why and f"{end.why}{command}")
            or (end.signal is not None and f"it was killed by {_signal_name(end.signal)}")
            or (end.code is not None and f"it exited with code {end.code}")
        )
        if how and last:
            yield Cause(f"{how}; {told}", "known", (last.n, end.n))
        elif how:
            yield Cause(how if end.why else f"{how}, and wrote nothing to stderr", "known", (end.n,))


def _deaf(failure: FailedRequest, ended: ProcessEnd | None, header: Header) -> Cause | None:
    """Return that a server never gets its stdin, because its container is run without it. It may also fail earlier."""
    silent = failure.outcome in _SILENT and not failure.http and failure.answer is None
    command = run_without_stdin(header.argv) if silent and failure.method in HANDSHAKES else None
    if command is None or (ended and ended.end.why):
        return None
    text = f"`{command}` is called without `-i`, so the server gets no input"
    return Cause(text, "likely" if ended and ended.end.code else "known", (failure.n,))


def _unfilled(header: Header) -> Iterator[Cause]:
    """Yield what stands in the command line in place of a value that nobody filled in."""
    for option, value in unfilled([*(header.argv or ())]):
        after = f" after {printable(option, _SAME)}" if option else ""
        yield Cause(f"the command line has {printable(value, _SAME)}{after}: nobody filled it in", "likely")


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
        yield Cause(f"{status} came from {failure.gateway}, probably not from the server itself", "likely", rows)
    elif failure.status in _GONE and failure.named:
        sure = "session" in failure.text.lower()
        yield Cause(
            "the server no longer knows the session that the request names", "known" if sure else "likely", rows
        )
    elif failure.status < 300:
        yield Cause(f"the answer ({status}) holds no JSON-RPC message", "known", rows)
    elif failure.status < 400:
        how = failure.redirects if failure.status in POST_AS_GET else ", and the client did not follow"
        yield Cause(f"the server redirects the request with {status}{how}", "known", rows)
    else:
        yield Cause(f"the answer is {status}, without a JSON-RPC answer", "known", rows)


def _error_causes(failure: FailedRequest) -> Iterator[Cause]:
    """Yield what the code of an error means, and what the server says."""
    rows = (failure.answer,) if failure.answer else ()
    side = "server" if failure.side == "client" else "client"
    if failure.by_gate or failure.outcome not in ("error", "tool-error"):
        return
    if failure.outcome == "tool-error" and failure.method != "tools/call":
        yield Cause(f"the answer to {failure.method} has the form of a tool error (`isError`)", "known", rows)
    elif failure.outcome == "tool-error":
        if failure.text:
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
    if failure.outcome in _HUNG and failure.question:
        asked, method = failure.question
        yield Cause(f"the server waited for the client, which did not answer {method}", "likely", (asked,))
    elif failure.outcome in ("timed-out", "unanswered", "server-exit") and failure.open:
        numbers = ", ".join(f"#{n}" for n in failure.open)
        more = "at least " if len(failure.open) == OPEN else ""
        yield Cause(f"{more}{plural(len(failure.open), 'other request')} {'was' if len(failure.open) == 1 else 'were'} "
                    f"open at that time: {numbers}", "likely", failure.open)  # fmt: skip


def _nothing_more(failure: FailedRequest) -> str:
    if failure.outcome in ("timed-out", "unanswered"):
        silent = "" if failure.http else ", and no line on stderr meanwhile"
        return f"there was no answer{silent}; nothing in the capture shows why"
    return "the answer does not say why"


def _side(kind: Kind, failure: FailedRequest, proof: Finding | None) -> str:
    """Return the responsible side; `proof` is the finding that is the first cause, if it is one."""
    if failure.by_gate:
        return "gate"
    if proof:
        return proof.blame
    if _is_impatient(failure):
        return "client"
    if failure.ours or failure.status == _OF_PROXY or (failure.gateway and failure.status):
        return "network"
    if kind == "login":
        return "client" if failure.credentials else "server"
    return "server" if failure.side == "client" else "client"
