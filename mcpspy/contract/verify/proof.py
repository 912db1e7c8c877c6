"""The whole proof: the runs, their results, and the report as text and as JSON.

Two bare runs and one through the wrapper. If something differs, there is one more of each, which removes chance. How
much time the wrapper adds varies with the machine, so the figures are only shown. Only a delay that cannot be chance
counts as a difference.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from statistics import median
from typing import Any, Protocol

from mcpspy.contract.verify.differences import Aspect, echo_check, ending_check, excerpt_of, http_checks, session_checks
from mcpspy.contract.verify.http import HttpBench, HttpRun
from mcpspy.contract.verify.launch import Launched, end_text, past
from mcpspy.contract.verify.session import NoSession, SessionPlan, scouted
from mcpspy.contract.verify.stdio import ENDINGS, StdioBench, StdioRun
from mcpspy.text import duration_text, plural, printable
from mcpspy.transport.client import Transport

_DELAY = 100_000_000  # nanoseconds by which the median exceeds the slowest bare request


@dataclass(frozen=True, slots=True)
class Timing:
    """Durations of one kind, in nanoseconds."""

    bare: tuple[int, ...]
    through: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """The measured times."""

    starts: Timing
    """From the start of a process, or of a connection, to the first answer."""
    latencies: Timing
    """The latencies of one request, sent one after the other."""
    request: str
    """The name of that request."""


def quantile(values: Sequence[int], share: float) -> int | None:
    """Return the value that this share of the values does not exceed (nearest rank), or None if there are none."""
    return sorted(values)[max(math.ceil(share * len(values)) - 1, 0)] if values else None


def middle(values: Sequence[int]) -> int | None:
    """Return the median, or None if there are no values."""
    return round(median(values)) if values else None


def delay_checks(figures: Figures) -> list[Aspect]:
    """Check whether requests are delayed. Return nothing if none were timed."""
    bare, through = figures.latencies.bare, figures.latencies.through
    if not bare or not through:
        return []
    late = (quantile(through, 0.5) or 0) - max(bare)
    found = f"half of the requests take {duration_text(late)} longer than the slowest bare one, or more"
    return [Aspect("delay", f"under {duration_text(_DELAY)} for a request", (found,) if late >= _DELAY else ())]


def figure_lines(figures: Figures) -> list[tuple[str, str]]:
    """Return the figures for people: title and text of each."""
    starts, latencies = figures.starts, figures.latencies
    found = []
    if starts.bare and starts.through:
        of = f"median of {min(len(starts.bare), len(starts.through))}"
        found.append(
            ("start-up", f"{_shown(middle(starts.bare))} bare, {_shown(middle(starts.through))} through ({of})")
        )
    if latencies.bare and latencies.through:
        pairs = [
            f"{_quantiles(values)} {how}" for values, how in ((latencies.bare, "bare"), (latencies.through, "through"))
        ]
        count = min(len(latencies.bare), len(latencies.through))
        found.append((f"{figures.request} latency", f"{', '.join(pairs)} ({plural(count, 'request')})"))
    return found


def _quantiles(values: Sequence[int]) -> str:
    return f"p50 {_shown(quantile(values, 0.5))}, p99 {_shown(quantile(values, 0.99))}"


def _shown(nanoseconds: int | None) -> str:
    return duration_text(nanoseconds or 0)


STARTS = 5
"""Starts that are timed, in each way."""
PINGS = 200
"""Requests that are timed, in each way."""
_AFTERMATH = 0.5  # seconds within which a server ends after it closed its stdout
_SLOW = 3_000_000_000  # nanoseconds: if a start is slower, three are enough

Advance = Callable[[int], None]
"""Called with the number of runs that are newly done."""

_Compare = Callable[[SessionPlan, Any, Any], list[Aspect]]


@dataclass(frozen=True, slots=True)
class Proof:
    """The result of the comparison."""

    plan: SessionPlan
    checks: tuple[Aspect, ...]
    figures: Figures
    broke_off: str | None = None
    """Why the session ended early, also in bare runs."""

    @property
    def transparent(self) -> bool:
        """Whether nothing differs."""
        return all(check.equal for check in self.checks)


class _Timed(Protocol):
    def timed(self, plan: SessionPlan, *, wrapped: bool, pings: int = 0) -> tuple[int | None, list[int]]: ...


def runs_of(bench: StdioBench | HttpBench) -> int:
    """Return about how many runs a proof takes, for a progress bar."""
    return 3 + 2 * STARTS + (1 + 2 * len(ENDINGS) if isinstance(bench, StdioBench) else 0)


def proof(bench: StdioBench | HttpBench, plan: SessionPlan, advance: Advance = lambda _: None) -> Proof:
    """Compare a server bare and through a wrapper. Raises McpspyError if something does not start."""
    first, plan = _first(bench, plan)
    advance(1)
    if isinstance(bench, HttpBench):
        checks = _compared(bench.run, http_checks, plan, [first], advance)
    else:
        checks = _compared(bench.run, session_checks, plan, [first], advance)
        checks.append(echo_check(bench.echoed()))
        advance(1)
        for name, number in ENDINGS.items():
            checks += _signalled(bench, plan, name, number, advance)
    figures = _figures(bench, plan, advance)
    return Proof(plan, (*checks, *delay_checks(figures)), figures, first.transcript.trouble)


def _first(bench: StdioBench | HttpBench, plan: SessionPlan) -> tuple[StdioRun | HttpRun, SessionPlan]:
    """Make the first bare run. Return it, and the plan without what the server did not answer in time.

    Raises NoSession.
    """
    while True:
        run = bench.run(plan, wrapped=False)
        said = run.transcript
        if said.unanswered is not None and said.unanswered >= len(plan.greeting):
            plan = plan.without(said.unanswered, said.trouble or "")
        elif said.answers and said.unanswered is None:
            return run, plan
        else:
            raise NoSession(said.trouble or "the server answers no request of the session")


def found_out(
    connect: Callable[[], AbstractContextManager[Transport]], seconds: float, calls: Mapping[str, Any]
) -> SessionPlan:
    """Find out what to send to a server. Raises NoSession, and UsageError if a tool is unknown."""
    try:
        with connect() as peer:
            return scouted(peer, seconds, calls)
    except NoSession:  # it may accept only `initialize`
        with connect() as peer:
            try:
                return scouted(peer, seconds, calls, discover=False)
            except NoSession as error:
                raise NoSession(f"{error}{_aftermath(peer)}") from None


def _aftermath(peer: Transport) -> str:
    """Return what else is known of a server that did not answer."""
    if not isinstance(peer, Launched):
        return ""
    code = peer.ended(_AFTERMATH)
    lines = bytes(peer.logged).decode(errors="replace").strip().splitlines()
    found = [f"it {past(end_text(code, 0))}"] if code is not None else []
    if peer.flooded:
        found = ["it did not stop writing"]
    elif peer.read:
        found.append(f"it wrote {excerpt_of(bytes(peer.read))}")
    return "".join(f"; {it}" for it in [*found, *(f"stderr: {printable(line, 200)}" for line in lines[-1:])])


def _compared(
    run: Callable[..., Any], compare: _Compare, plan: SessionPlan, first: list[Any], advance: Advance
) -> list[Aspect]:
    """Compare one more bare run and one through the wrapper. `first` has the bare runs so far.

    If something differs, make one more run of each and compare again. Raises NoSession if bare runs of the server
    differ.
    """

    def done(*, wrapped: bool) -> Any:
        found = run(plan, wrapped=wrapped)
        advance(1)
        trouble = found.transcript.trouble
        if not wrapped and first and trouble != first[0].transcript.trouble:
            raise NoSession(f"one bare run differs from the next: {trouble}; a longer --timeout may help")
        return found

    bare, through = [*first, done(wrapped=False)], [done(wrapped=True)]
    checks = compare(plan, bare, through)
    if all(check.equal for check in checks):
        return checks
    bare.append(done(wrapped=False))
    through.append(done(wrapped=True))
    return compare(plan, bare, through)


def _signalled(bench: StdioBench, plan: SessionPlan, name: str, number: int, advance: Advance) -> list[Aspect]:
    def run(plan: SessionPlan, *, wrapped: bool) -> StdioRun:
        found = bench.run(plan, wrapped=wrapped, number=number)
        if not wrapped and found.transcript.trouble:
            raise NoSession(f"before {name}: {found.transcript.trouble}; a longer --timeout may help")
        return found

    def compare(_: SessionPlan, bare: Sequence[StdioRun], through: Sequence[StdioRun]) -> list[Aspect]:
        return [ending_check(name, bare, through)]

    return _compared(run, compare, plan, [], advance)


def _figures(bench: _Timed, plan: SessionPlan, advance: Advance) -> Figures:
    starts: dict[bool, list[int]] = {False: [], True: []}
    pings: dict[bool, list[int]] = {False: [], True: []}
    for number in range(STARTS):
        for wrapped in (False, True):
            took, found = bench.timed(plan, wrapped=wrapped, pings=0 if number else PINGS)
            starts[wrapped] += [] if took is None else [took]
            pings[wrapped] += found
            advance(1)
        if number == 2 and max((*starts[False], 0)) > _SLOW:
            break
    return Figures(
        Timing(tuple(starts[False]), tuple(starts[True])),
        Timing(tuple(pings[False]), tuple(pings[True])),
        plan.ping(0).label,
    )


_WIDTH = 20  # columns of a name


def text(proof: Proof, server: str, wrapper: str) -> str:
    """Return what was compared, the figures and the verdict. `server` and `wrapper` name the two."""
    lines = [f"{server}: bare and through {wrapper}, {plural(len(proof.plan.messages), 'message')}", ""]
    for check in proof.checks:
        lines += _check_lines(check.name, check.equal, check.detail, check.differences)
    lines += [f"  {'left out':<{_WIDTH}}  {printable(it, 300)}" for it in proof.plan.left_out]
    if proof.broke_off:
        lines.append(f"  {'broke off':<{_WIDTH}}  {printable(proof.broke_off, 300)}")
    figures = [f"  {name:<{_WIDTH}}  {found}" for name, found in figure_lines(proof.figures)]
    lines += [*([""] if figures else []), *figures, "", verdict(proof, wrapper)]
    return "\n".join(lines) + "\n"


def verdict(proof: Proof, wrapper: str) -> str:
    """Return the verdict as a sentence."""
    if proof.transparent:
        return f"transparent: neither the client nor the server can see {wrapper}"
    names = [check.name for check in proof.checks if not check.equal]
    return f"not transparent: {wrapper} differs in {', '.join(names)}"


def _check_lines(name: str, equal: bool, detail: str, differences: tuple[str, ...]) -> Iterator[str]:
    if equal:
        yield f"  {name:<{_WIDTH}}  equal    {detail}"
        return
    for place, difference in enumerate(differences):
        title, outcome = (name, "differs") if not place else ("", "")
        yield f"  {title:<{_WIDTH}}  {outcome:<7}  {printable(difference, 600)}"


def as_json(proof: Proof, server: str, wrapper: str) -> str:
    """Return one object (docs/json.md)."""
    figures = proof.figures
    found = {
        "verdict": "transparent" if proof.transparent else "different",
        "server": server,
        "through": wrapper,
        "messages": [message.label for message in proof.plan.messages],
        "left_out": [*proof.plan.left_out],
        "broke_off": proof.broke_off,
        "checks": [
            {"name": it.name, "equal": it.equal, "detail": it.detail, "differences": [*it.differences]}
            for it in proof.checks
        ],
        "figures": {
            "start": {side: _seconds(middle(values)) for side, values in _sides(figures.starts)},
            "request": figures.request,
            "latency": {side: _quantile_members(values) for side, values in _sides(figures.latencies)},
        },
    }
    return json.dumps(found, separators=(",", ":")) + "\n"


def _sides(timing: Timing) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "bare", timing.bare
    yield "through", timing.through


def _quantile_members(values: tuple[int, ...]) -> dict[str, Any]:
    return {
        "count": len(values),
        "p50": _seconds(quantile(values, 0.5)),
        "p99": _seconds(quantile(values, 0.99)),
    }


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / 1e9
