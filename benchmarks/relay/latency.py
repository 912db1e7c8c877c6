"""The rows about round trips: 200 B and 64 KiB, back to back and paced, small frames behind a big one, first ones."""

from collections.abc import Callable, Iterator
from statistics import median

from benchmarks.relay.figures import Result, Rounds, Row, Target, added, percentile, ratios
from benchmarks.relay.plan import BARE, RELAY, TEE, WRAP, Plan
from benchmarks.relay.processes import pinned
from benchmarks.relay.traffic import Step, dense, mixed, ping, pings, plain, prose, round_trips

SMALL = 200
FIRST = 4200
FRAMES, AFFECTED = 40, 4  # frames of that size in a session, and those that the first one may delay
FULL_READ = 65536  # the maximum size of one read; newline included


def small(plan: Plan) -> Result:
    p50, p99 = measure(plan, script_of_pings(plan, prose(SMALL)))
    rows = [_over_tee("200 B", p50), _times("200 B", p50, p99)]
    if RELAY in p50:
        rows[:0] = [
            _over_relay("200 B", p50, Target(2, aim=1.5)),
            Row("200 B: p99, wrap / C relay", ratios(p99[WRAP], p99[RELAY]), Target(3), _controls(p50)),
        ]
    return _result("small", rows, p50, p99)


def big(plan: Plan) -> Result:
    p50, p99 = measure(plan, script_of_pings(plan, prose(FULL_READ)))
    rows = [_times("64 KiB", p50, p99)]
    if RELAY in p50:
        rows.insert(0, _over_relay("64 KiB", p50, Target(6, aim=4)))
    return _result("big", rows, p50, p99)


def extremes(plan: Plan) -> Result:
    """Measure 64 KiB that need no escaping in the record, and 64 KiB that need the most: the extremes of the cost."""
    rows: list[Row] = []
    raw: dict[str, Rounds] = {}
    for what, body in (("64 KiB, plain text", plain(FULL_READ)), ("64 KiB, dense JSON", dense(FULL_READ))):
        p50, p99 = measure(plan, script_of_pings(plan, body))
        if RELAY in p50:
            rows.append(_over_relay(what, p50, None))
        rows.append(_times(what, p50, p99))
        raw |= _result(what, [], p50, p99).raw
    return Result(rows, raw)


def free(plan: Plan) -> Result:
    p50, p99 = measure(plan, script_of_pings(plan, prose(SMALL)), pin=False)
    return _result("free", [_times("200 B, free-running", p50, p99)], p50, p99)


def paced(plan: Plan) -> Result:
    p50, p99 = measure(plan, script_of_pings(plan, prose(SMALL)), paced=True)
    rows = [_times("200 B, paced", p50, p99)]
    if RELAY in p50:
        rows.insert(0, _over_relay("200 B, paced", p50, None))
    return _result("paced", rows, p50, p99)


def behind_big(plan: Plan) -> Result:
    def script() -> Iterator[Step]:
        return mixed(plan.scale.big_frames)

    p50, p99 = measure(plan, script)
    free_p50, free_p99 = measure(plan, script, pin=False)
    what = "200 B behind 8 MB"
    milliseconds = [value / 1e3 for value in p99[WRAP]]
    flag = "with" if plan.check else "without"
    rows = [
        Row(f"{what}: p99, capture, {flag} --check", milliseconds, Target(5, unit="ms"), _controls(p50)),
        _times(what, p50, p99),
        _times(f"{what}, free-running", free_p50, free_p99),
    ]
    pinned_result = _result("mixed", rows, p50, p99)
    return Result(rows, pinned_result.raw | _result("mixed, free", [], free_p50, free_p99).raw)


def first(plan: Plan) -> Result:
    """Measure how late the first frame of 4 KiB of a session is, or one right behind it (V-02)."""
    body = prose(FIRST)

    def script() -> Iterator[Step]:
        yield from pings(prose(SMALL), 0, plan.scale.warmups)
        yield from ((*ping(n, body), True) for n in range(FRAMES))

    late: Rounds = {BARE: [], WRAP: []}
    worst = dict.fromkeys(late, 0.0)
    for _ in range(plan.scale.rounds):
        taken: Rounds = {variant: [] for variant in late}
        for _ in range(-(-plan.scale.starts // plan.scale.rounds)):
            for variant in late:
                with pinned():
                    times = round_trips(plan, variant, script, paced=True)
                taken[variant].append((max(times[:AFFECTED]) - median(times[AFFECTED:])) / 1e6)
        for variant, values in taken.items():
            late[variant].append(median(values))
            worst[variant] = max(worst[variant], *values)
    text = ", ".join(f"{variant} {value:.2f}" for variant, value in worst.items())
    rows = [
        Row("first frame of 4 KiB over the others: added", added(late, WRAP, BARE), Target(1, unit="ms")),
        Row("first frame of 4 KiB over the others: worst session in ms", [], text=text),
    ]
    return Result(rows, {"first: ms": late})


def script_of_pings(plan: Plan, body: bytes) -> Callable[[], Iterator[Step]]:
    return lambda: pings(body, plan.scale.samples, plan.scale.warmups)


def measure(
    plan: Plan,
    script: Callable[[], Iterator[Step]],
    pin: bool = True,
    paced: bool = False,
    variants: list[str] | None = None,
) -> tuple[Rounds, Rounds]:
    """Run all variants in every round. Return p50 and p99 in µs of every variant and round."""
    variants = variants or plan.variants()
    p50: Rounds = {variant: [] for variant in variants}
    p99: Rounds = {variant: [] for variant in variants}
    for _ in range(plan.scale.rounds):
        for variant in variants:
            with pinned(pin):
                taken = round_trips(plan, variant, script, paced)
            p50[variant].append(percentile(taken, 0.5))
            p99[variant].append(percentile(taken, 0.99))
    return p50, p99


def _over_relay(what: str, p50: Rounds, target: Target | None) -> Row:
    quotients = ratios(added(p50, WRAP, BARE), added(p50, RELAY, BARE))
    return Row(f"{what}: added p50, wrap / C relay", quotients, target, _controls(p50))


def _over_tee(what: str, p50: Rounds) -> Row:
    quotients = ratios(added(p50, WRAP, BARE), added(p50, TEE, BARE))
    return Row(f"{what}: added p50, wrap / tee", quotients, Target(2), (p50[BARE], p50[TEE]))


def _times(what: str, p50: Rounds, p99: Rounds) -> Row:
    figures = [f"{variant} {median(p50[variant]):.0f} / {median(p99[variant]):.0f}" for variant in p50]
    return Row(f"{what}: p50 / p99 in µs", [], text=", ".join(figures))


def _controls(p50: Rounds) -> tuple[list[float], ...]:
    return tuple(p50[variant] for variant in (BARE, RELAY) if variant in p50)


def _result(name: str, rows: list[Row], p50: Rounds, p99: Rounds) -> Result:
    return Result(rows, {f"{name}: p50, µs": p50, f"{name}: p99, µs": p99})
