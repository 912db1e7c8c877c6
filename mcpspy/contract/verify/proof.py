"""The whole proof: the runs, and their results.

Two bare runs and one through the wrapper. If something differs, there is one more of each, which removes chance.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from mcpspy.contract.verify.differences import Aspect, echo_check, ending_check, excerpt_of, http_checks, session_checks
from mcpspy.contract.verify.figures import Figures, Timing, delay_checks
from mcpspy.contract.verify.http import HttpBench, HttpRun
from mcpspy.contract.verify.launch import Launched, end_text, past
from mcpspy.contract.verify.session import Correspondent, NoSession, SessionPlan, scouted
from mcpspy.contract.verify.stdio import ENDINGS, StdioBench, StdioRun
from mcpspy.text import printable

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
    connect: Callable[[], AbstractContextManager[Correspondent]], seconds: float, calls: Mapping[str, Any]
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


def _aftermath(peer: Correspondent) -> str:
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
