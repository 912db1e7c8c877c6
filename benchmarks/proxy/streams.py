"""The rows about event streams, and about memory while many streams are open."""

from benchmarks.proxy.calls import SMALL, over, times
from benchmarks.proxy.client import Connection
from benchmarks.proxy.plan import MITM, NGINX, PROXY, Plan
from benchmarks.proxy.subject import running
from benchmarks.relay.figures import Result, Row, Target, percentile
from benchmarks.relay.traffic import ping

EVENTS = 4  # events per stream
GAP = 300  # µs between two events
HOUR = 3_600_000_000  # one hour in µs


def events(plan: Plan) -> Result:
    """Measure consecutive streams of a few events on one connection."""
    first_p50, first_p99, each_p50, each_p99 = (plan.empty() for _ in range(4))
    for _ in range(plan.scale.rounds):
        for variant in first_p50:
            first, each = _streams(plan, variant)
            first_p50[variant].append(percentile(first, 0.5))
            first_p99[variant].append(percentile(first, 0.99))
            each_p50[variant].append(percentile(each, 0.5))
            each_p99[variant].append(percentile(each, 0.99))
    rows = [
        *over("SSE, first event: added p50", first_p50, MITM, Target(0.6)),
        *over("SSE, each event: added p50", each_p50, NGINX, Target(3)),
        times("SSE, first event", first_p50, first_p99),
        times("SSE, each event", each_p50, each_p99),
    ]
    return Result(rows, {"SSE, first event: p50, µs": first_p50, "SSE, each event: p50, µs": each_p50})


def _streams(plan: Plan, variant: str) -> tuple[list[int], list[int]]:
    """Return nanoseconds from a request to its first event, and from the write of each further event to its arrival."""
    with running(plan, variant) as subject:
        connection = Connection(subject)
        for _ in range(plan.scale.warmups):
            connection.events(EVENTS, GAP)
        taken = [connection.events(EVENTS, GAP) for _ in range(plan.scale.samples)]
        connection.close()
    return [spent[0] for spent in taken], [each for spent in taken for each in spent[1:]]


def memory(plan: Plan) -> Result:
    """Measure the memory before and after a number of streams that stay open, and of calls."""
    with running(plan, PROXY) as subject:
        calls = Connection(subject)
        for n in range(plan.scale.warmups):
            calls.exchange(*ping(n, SMALL))
        before = subject.resident()
        streams = [Connection(subject) for _ in range(plan.scale.open_streams)]
        for stream in streams:
            stream.events(2, HOUR, until=1)
        opened = subject.resident()
        for n in range(plan.scale.exchanges):
            calls.exchange(*ping(plan.scale.warmups + n, SMALL))
        after = subject.resident()
        for connection in (calls, *streams):
            connection.close()
    what = f"memory: growth by {plan.scale.open_streams} open streams and {plan.scale.exchanges:,} exchanges"
    text = f"{before:.1f} MB, {opened:.1f} with the streams, {after:.1f} in the end"
    rows = [Row(what, [after - before], Target(10, unit="MB")), Row("memory", [], text=text)]
    return Result(rows, {"memory: MB": {"before": [before], "opened": [opened], "after": [after]}})


def idle(plan: Plan) -> Result:
    """Measure a stream that sends an event after minutes without one."""
    silent = plan.scale.idle
    with running(plan, PROXY, silent + plan.scale.seconds) as subject:
        stream = Connection(subject, patience=silent + 30)
        late = stream.events(2, silent * 1_000_000)[1]
        stream.close()
    return Result([Row(f"SSE: an event after {silent} s of silence", [late / 1e6], Target(100, unit="ms"))], {})
