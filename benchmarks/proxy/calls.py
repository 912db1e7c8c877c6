"""The rows about calls: from one client, from sixteen clients, and small calls behind a large answer."""

import os
import select
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import perf_counter

from benchmarks.proxy.client import Connection, fields, whole
from benchmarks.proxy.plan import DIRECT, MITM, NGINX, PROXY, Plan
from benchmarks.proxy.subject import Subject, running
from benchmarks.relay.figures import Result, Rounds, Row, Target, added, percentile, ratios
from benchmarks.relay.processes import Broken
from benchmarks.relay.traffic import ping, prose

SMALL = prose(200)
CLIENTS = 16
BEHIND = 20  # minimum number of small calls behind a large body
WARMUPS = 100  # calls before the first measured one
WRK = """
wrk.method = "POST"
wrk.body = [==[{body}]==]
for name, value in string.gmatch([==[{fields}]==], "([%w-]+): ([^\\r\\n]+)") do wrk.headers[name] = value end
function response(status, headers, body)
    if status ~= 200 or body ~= [==[{reply}]==] then changed = true end
end
function setup(thread) only = thread end
function done(summary)
    local errors = summary.errors
    local bad = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    if only:get("changed") then bad = bad + 1 end
    io.write(string.format("figures %d %d %d\\n", summary.requests, summary.duration, bad))
end
"""


def single(plan: Plan) -> Result:
    """Measure round trips of 200 B on one connection."""
    p50, p99, cpu = latencies(plan)
    rows = [
        *over("c=1: added p50", p50, MITM, Target(0.4)),
        *over("c=1: added p50", p50, NGINX),
        times("c=1", p50, p99),
        Row("c=1: CPU time of the process in µs a call", [], text=medians(cpu)),
    ]
    return Result(rows, {"c=1: p50, µs": p50, "c=1: p99, µs": p99, "c=1: CPU, µs": cpu})


def latencies(plan: Plan) -> tuple[Rounds, Rounds, Rounds]:
    """Return p50 and p99 of these calls in µs, and the CPU time of the process in µs per call."""
    p50, p99, cpu = (plan.empty() for _ in range(3))
    for _ in range(plan.scale.rounds):
        for variant in p50:
            with running(plan, variant) as subject:
                taken, spent = _one_by_one(plan, subject)
            p50[variant].append(percentile(taken, 0.5))
            p99[variant].append(percentile(taken, 0.99))
            cpu[variant].append(spent)
    return p50, p99, cpu


def _one_by_one(plan: Plan, subject: Subject) -> tuple[list[int], float]:
    """Return the nanoseconds of each call, and the CPU time per call in microseconds."""
    connection = Connection(subject)
    for n in range(plan.scale.warmups):
        connection.exchange(*ping(n, SMALL))
    before = subject.cpu()
    taken = [connection.exchange(*ping(plan.scale.warmups + n, SMALL)) for n in range(plan.scale.samples)]
    spent = subject.cpu() - before
    connection.close()
    return taken, spent / len(taken) * 1e6


def crowd(plan: Plan) -> Result:
    """Measure round trips of 200 B on sixteen connections, without pauses."""
    rates, cpu = loads(plan)
    rows = [
        Row(f"c={CLIENTS}: requests/s", [], text=medians(rates)),
        Row(f"c={CLIENTS}: CPU time of the process in µs a call", [], text=medians(cpu)),
    ]
    if MITM in rates:
        target = Target(6, at_least=True)
        quotients = ratios(rates[PROXY], rates[MITM])
        rows.insert(0, Row(f"c={CLIENTS}: requests/s, proxy / mitmdump", quotients, target, (rates[MITM],)))
    return Result(rows, {f"c={CLIENTS}: requests/s": rates, f"c={CLIENTS}: CPU, µs": cpu})


def loads(plan: Plan) -> tuple[Rounds, Rounds]:
    """Return requests per second on these connections, and the CPU time of the process in µs per call."""
    rates, cpu = plan.empty(), plan.empty()
    load = _wrk if shutil.which("wrk") else _own_load
    for _ in range(plan.scale.rounds):
        for variant in rates:
            with running(plan, variant) as subject:
                before = subject.cpu()
                count, seconds = load(plan, subject)
                spent = subject.cpu() - before
            rates[variant].append(count / seconds)
            cpu[variant].append(spent / count * 1e6)
    return rates, cpu


def _wrk(plan: Plan, subject: Subject) -> tuple[int, float]:
    """Return the number of answered calls, and the seconds that they took."""
    body, reply = ping(0, SMALL)
    script = os.path.join(plan.folder, "load.lua")
    with open(script, "w") as file:
        file.write(WRK.format(body=body.decode(), reply=reply.decode(), fields=fields(subject.port).decode()))
    command = ["wrk", "-t1", f"-c{CLIENTS}", f"-d{plan.scale.load_seconds}s", "-s", script]
    url = f"http://127.0.0.1:{subject.port}/mcp"
    done = subprocess.run([*command, url], capture_output=True, text=True, check=True)
    _, figures = done.stdout.rsplit("figures ", 1)
    requests, duration, bad = map(int, figures.split())
    if bad:
        raise Broken(f"wrk saw {bad} errors")
    subject.passed.update({body: requests, reply: requests})
    subject.unsure.update({body: CLIENTS, reply: CLIENTS})
    return requests, duration / 1e6


def _own_load(plan: Plan, subject: Subject) -> tuple[int, float]:
    """Keep one request open on every connection until the time is over, then read the missing answers."""
    connections = [Connection(subject) for _ in range(CLIENTS)]
    asked: dict[int, tuple[Connection, bytes, bytes]] = {}
    poll = select.poll()
    count, start = 0, perf_counter()

    def ask(connection: Connection) -> None:
        nonlocal count
        body, reply = ping(count, SMALL)
        connection.socket.sendall(connection.post(body))
        asked[connection.socket.fileno()] = connection, reply, b""
        subject.passed.update((body, reply))
        count += 1

    for connection in connections:
        ask(connection)
        poll.register(connection.socket, select.POLLIN)
    while asked:
        for fd, _ in poll.poll():
            connection, reply, came = asked.pop(fd)
            came = connection.more(came)
            if not came.endswith(reply):
                asked[fd] = connection, reply, came
                continue
            whole(came, reply)
            if perf_counter() - start < plan.scale.load_seconds:
                ask(connection)
    spent = perf_counter() - start
    for connection in connections:
        connection.close()
    return count, spent


def behind_big(plan: Plan) -> Result:
    """Measure small calls on one connection while 8 MB of JSON in gzip arrive on another and are decoded."""
    p50, p99 = plan.empty(), plan.empty()
    for _ in range(plan.scale.rounds):
        for variant in p50:
            with running(plan, variant) as subject:
                taken = _behind(plan, subject)
            p50[variant].append(percentile(taken, 0.5))
            p99[variant].append(percentile(taken, 0.99))
    what = "200 B behind 8 MB in gzip"
    milliseconds = [value / 1e3 for value in p99[PROXY]]
    controls = tuple(p50[variant] for variant in p50 if variant != PROXY)
    rows = [Row(f"{what}: p99", milliseconds, Target(10, unit="ms"), controls), times(what, p50, p99)]
    return Result(rows, {f"{what}: p50, µs": p50, f"{what}: p99, µs": p99})


def _behind(plan: Plan, subject: Subject) -> list[int]:
    large, small = Connection(subject), Connection(subject)
    with open(plan.upstream[1], "rb") as file:
        coded = file.read()
    taken: list[int] = []
    for n in range(WARMUPS):
        small.exchange(*ping(n, SMALL))
    with ThreadPoolExecutor(1) as reader:
        for _ in range(plan.scale.big_bodies):
            fetch = reader.submit(large.body, b"/big", coded)
            end = len(taken) + BEHIND
            while not fetch.done() or len(taken) < end:
                taken.append(small.exchange(*ping(WARMUPS + len(taken), SMALL)))
            whole(fetch.result(), coded)
            subject.passed[plan.big] += 1
    large.close()
    small.close()
    return taken


def medians(figures: Rounds) -> str:
    """Return the figures of every variant as text."""
    return ", ".join(f"{variant} {median(values):,.0f}" for variant, values in figures.items())


def over(what: str, p50: Rounds, variant: str, target: Target | None = None) -> list[Row]:
    """Return the row that divides the added time of the proxy by that of a variant, if the variant is installed."""
    if variant not in p50:
        return []
    quotients = ratios(added(p50, PROXY, DIRECT), added(p50, variant, DIRECT))
    return [Row(f"{what}, proxy / {variant}", quotients, target, (p50[variant],))]


def times(what: str, p50: Rounds, p99: Rounds) -> Row:
    """Return the row of the times themselves."""
    figures = [f"{variant} {median(p50[variant]):.0f} / {median(p99[variant]):.0f}" for variant in p50]
    return Row(f"{what}: p50 / p99 in µs", [], text=", ".join(figures))
