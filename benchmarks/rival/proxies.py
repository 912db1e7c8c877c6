"""The rows about HTTP: one client and sixteen clients, with the driver and the upstream of `benchmarks.proxy`.

fastmcp is left out, because its proxy is a server itself and answers the pings of this traffic.
"""

import os

from benchmarks.proxy.calls import CLIENTS, latencies, loads
from benchmarks.relay.figures import Result, Target
from benchmarks.rival.plan import MITM, SNOOP, Plan
from benchmarks.rival.versus import joined, versus


def http(plan: Plan) -> Result:
    ours = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {plan.http.cores[0]})
    try:
        p50, _, cpu = latencies(plan.http)
        rates, loaded = loads(plan.http)
    finally:
        os.sched_setaffinity(0, ours)
    targets = {MITM: Target(6, at_least=True), SNOOP: Target(1, at_least=True)}
    for rounds in (cpu, loaded):
        del rounds["direct"]  # the figure of the upstream
    return joined(
        versus("HTTP, c=1: added p50", "µs", p50, targets={MITM: Target(0.4)}),
        versus("HTTP, c=1: CPU time a call", "µs", cpu),
        versus(f"HTTP, c={CLIENTS}: calls answered", "requests/s", rates, more=True, targets=targets),
        versus(f"HTTP, c={CLIENTS}: CPU time a call", "µs", loaded),
    )
