"""The evaluation of client starts: whether mcpspy changed something, facts about the client, and docs/clients.md."""

import json
import re
from typing import Any

REFERENCE = {"wrap": "bare", "proxy": "http", "mitm": "http"}
"""Connection through mcpspy -> the direct connection that it is compared with."""
STAYING = ("shutdown", "clean-up")
"""The scenarios whose server keeps running for a while after the first signal, or after the end of its stdin."""
AT_ONCE = 0.06  # seconds; events within this time count as simultaneous
Start = dict[str, Any]


def compared(reference: list[Start], through: list[Start]) -> str:
    """Compare starts through mcpspy with starts without it.

    Returns `equal` if, for each aspect, one start through mcpspy is equal to one without. Otherwise returns the aspect
    in which all of them differ.
    """
    for name, look in ASPECTS.items():
        if not any(look(one) == look(other) for one in reference for other in through):
            return f"different: {name}: {look(reference[0])!r}, {look(through[0])!r}"[:400]
    return "equal"


def outcomes(starts: dict[str, list[Start]]) -> dict[str, str]:
    """Return the outcome of the comparison for each connection through mcpspy."""
    return {way: compared(starts[REFERENCE[way]], starts[way]) for way in starts if way in REFERENCE}


def results(start: Start) -> tuple[list[str], list[str]]:
    """Return the tools offered to the model and the results that it received; without a model, the client's output."""
    told = start["results"] if start["turns"] else [start["output"]]
    return start["offered"], [lasting(text) for text in told]


def lasting(text: str) -> str:
    """Return a text without durations and without stack traces, which differ from run to run."""
    return re.sub(r"\d+\.\d+ ?s", "0 s", re.sub(r"(?m)^ +at .*\n", "", text))


def messages(start: Start) -> list[list]:
    """Return the messages that each server process received before its first signal or the end of its stdin.

    Parts that are different each time are removed. Over HTTP the messages are sorted, because requests that are sent
    at the same time arrive in any order.
    """
    received = []
    for server in start["servers"]:
        until = next((at for at, it in enumerate(server) if it["event"].startswith(("signal", "eof"))), len(server))
        received.append([plain(it["message"]) for it in server[:until] if "message" in it])
    on_stdio = start["way"] in ("bare", "wrap")
    return received if on_stdio else [sorted(its, key=json.dumps) for its in received]


def plain(message: dict) -> dict:
    params = message.get("params")
    if isinstance(params, dict) and "_meta" in params:
        return message | {"params": params | {"_meta": sorted(params["_meta"])}}
    return message


def leaving(start: Start) -> list[list[list[str]]]:
    """Return how each server process was ended: the events in order, with simultaneous events as one sorted group.

    The result is empty for a scenario whose server ends at the first event, because such a server may or may not see
    the second one. Other events at the time of the kill are left out.
    """
    if start["scenario"] not in STAYING:
        return []
    found = []
    for server in start["servers"]:
        groups: list[list[str]] = []
        last = None
        for name, t in ending(server):
            if last is None or t - last > AT_ONCE:
                groups.append([])
            groups[-1] = sorted([*groups[-1], name])
            last = t
        found.append([["killed"] if "killed" in it else it for it in groups])
    return found


def ending(server: list[dict]) -> list[tuple[str, float]]:
    """Return the events at the end of a server, each with the seconds since the first.

    `killed` is the last sign of life of a server that did not end by itself.
    """
    alive = [it["t"] for it in server if it["event"] == "alive"]
    steps = [(it["event"].removeprefix("signal SIG"), it["t"]) for it in server if not noise(it["event"])]
    if server[-1]["event"] != "end":
        steps.append(("killed", alive[-1] if alive else server[-1]["t"]))
    first = steps[0][1] if steps else 0
    return [(name, round(t - first, 2)) for name, t in steps]


def noise(event: str) -> bool:
    return event.startswith("<") or event in ("start", "alive", "end", "client is gone")


ASPECTS = {
    "results": results,
    "messages": messages,
    "leaving": leaving,
    "exit status": lambda start: start["status"],
}


def facts(scenarios: dict[str, dict[str, list[Start]]]) -> dict[str, Any]:
    """Return the facts that the bare starts of a client show."""
    bare = {name: starts["bare"][0] for name, starts in scenarios.items() if starts}
    found: dict[str, Any] = {}
    if "call" in bare:
        found |= greeting(bare["call"])
        undone = [one["undone"] for starts in scenarios["call"].values() for one in starts if "undone" in one]
        installs = [one["install"] for one in scenarios["call"]["wrap"] if "install" in one]
        found["install"] = refused(installs[0]) if installs else "it has no configuration"
        found["uninstall exact"] = all(undone) if undone else None
    if "shutdown" in bare:
        steps = ending(bare["shutdown"]["servers"][0])
        found["shutdown"] = [f"{name} +{t:.1f} s" if name != "cleaned" else "no more" for name, t in steps]
    if "interrupt" in bare:
        found["interrupt"] = interrupted(bare["interrupt"])
    if "noise" in bare:
        found["line that is not JSON"] = tolerance(bare["noise"], found.get("processes", 1))
    if "crash" in bare:
        found["after a crash"] = recovery(bare["crash"])
    if "initialize-limit" in bare:
        found["slow initialize"] = patience(bare["initialize-limit"], "< initialize", 75)
    if "call-limit" in bare:
        found["call limit"] = patience(bare["call-limit"], "< tools/call", 75)
    return found


def greeting(start: Start) -> dict[str, Any]:
    for server in start["servers"]:
        for at, it in enumerate(server):
            if it["event"] == "< initialize":
                params = it["message"]["params"]
                probed = any(before["event"] == "< server/discover" for before in server[:at])
                return {
                    "revision": params["protocolVersion"],
                    "clientInfo": params["clientInfo"],
                    "capabilities": sorted(params["capabilities"]),
                    "probe": "server/discover" if probed else None,
                    "processes": len(start["servers"]),
                }
    return {}


def interrupted(start: Start) -> str:
    """Return what the server saw after the call, and the signals if one Ctrl-C did not end the client."""
    server = next((it for it in start["servers"] if any(one["event"] == "< tools/call" for one in it)), [])
    called = next((at for at, it in enumerate(server) if it["event"] == "< tools/call"), 0)
    after = [it["event"] for it in server[called + 1 :] if it["event"] not in ("alive", "end", "client is gone")]
    told = ", ".join(dict.fromkeys(event.removeprefix("< ").removeprefix("signal ") for event in after)) or "nothing"
    sent = [it["event"] for it in start["signals"]]
    return told if len(sent) == 1 else f"{told} (ended after {', '.join(sent)})"


def tolerance(start: Start, usual: int) -> str:
    told = json.dumps(start["results"] or start["output"])
    processes = len(start["servers"])
    more = f" after {processes} starts" if processes > usual else ""
    return ("ignored" if "echo: hello" in told else "drops the server") + more


def refused(text: str) -> str:
    """Return in short why `mcpspy install` did nothing."""
    if text == "done":
        return text
    if "there is no client" in text:
        return "`install` does not know it"
    lines = [" ".join(line.split()) for line in text.splitlines() if line.startswith("  ")]
    return f"`install` refuses: {'; '.join(lines) or text}"


def recovery(start: Start) -> str:
    """Return the outcome of the call after the one that crashed the server."""
    if not start["turns"]:
        return "one call for each start"
    if any("echo: hello" in it for it in start["results"]):
        return "restarts the server"
    if start["status"]:
        return f"the client ends with exit status {start['status']}"
    if len(start["results"]) < 2:
        return "no second call"
    return f"no restart: {start['results'][-1][-80:]}"


def patience(start: Start, event: str, bound: int) -> str:
    """Return how long a client waited for an answer until it gave up or continued with the model."""
    for server in start["servers"]:
        asked = next((it["t"] for it in server if it["event"] == event), None)
        if asked is None:
            continue
        stopped = min((it["t"] for it in start["signals"]), default=asked + bound)
        gave_up = [it["t"] for it in server if asked + 1 < it["t"] < stopped and it["event"] not in ("alive", "< ping")]
        went_on = [t for t in start["turns"] if t > asked]
        first = min((*gave_up, *went_on), default=stopped)
        waited = min(first - asked, bound)
        if waited > bound - 1 or first == stopped:
            return f"more than {waited:.0f} s"
        if event == "< initialize":
            return f"{waited:.0f} s" if first in gave_up else f"goes on without it after {waited:.1f} s"
        cancelled = any(it["event"] == "< notifications/cancelled" for it in server)
        return f"{waited:.0f} s, then cancels" if cancelled else f"{waited:.0f} s, cancels nothing"
    return "not asked"


PAGE = """# Real clients

Written by `scripts/clients` ({dates}, Linux). Each client ran with a scripted model and the same server, bare and
through mcpspy. The runs were compared by what the model and the server received, how the server was ended, and the
exit status.

For the stdio server, `mcpspy install` made the change if it supports the client. Over HTTP the client connected through
`mcpspy proxy`, and through `mcpspy mitm` with `mcpspy run`.

VS Code is code-server, used in Chromium. For Ctrl-C, the chat's stop button was pressed. After each answer, the server
was stopped in the list of servers.

{greetings}

![VS Code with a wrapped server in mcp.json, and the answer of its tool in the chat](vscode.png)

## Bare and through mcpspy

A comparison is one scenario over one connection. The scenarios:

- a call
- Ctrl-C during a call
- a slow `initialize`
- lines that are not JSON
- a server that crashes
- a server that ignores signals
- a server that needs 0.4 s to clean up

`doctor` was run with planted mistakes and without. It passes if it reports a problem exactly when the client has one.

{equality}

## How clients behave

In the first table, the server ignores signals and the end of its stdin (`eof`). Times count from the first of these.
`no more` means that the client did nothing further. A client that was still running after 8 s got a second Ctrl-C,
then TERM.

{shutdowns}

{limits}

{faults}

## Findings

Findings of severity error and warning in the captures:

{findings}

## What failed

What `mcpspy why` says about the captures, with the responsible side. Each line was compared with its capture by hand.

{problems}
"""


def page(clients: list[dict]) -> str:
    """Return the content of docs/clients.md."""
    dates = sorted({it["date"] for it in clients if it["date"]})
    return PAGE.format(
        dates=" to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "never",
        greetings=table(("client", "package", "revision, clientInfo"), clients, greetings),
        equality=table(("client", "equal", "`install`, `uninstall`"), clients, equality),
        shutdowns=table(("client", "shutdown", "Ctrl-C during a call: the server sees"), clients, shutdowns),
        limits=table(("client", "waits for `initialize`", "waits for a call"), clients, limits),
        faults=table(("client", "lines that are not JSON", "after a crash"), clients, faults),
        findings=table(("client", "findings"), clients, findings),
        problems=table(("client", "scenario and connection: what failed"), clients, problems),
    )


def table(heads: tuple[str, ...], clients: list[dict], row: Any) -> str:
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for client in clients:
        cells = (client["name"], *(str(cell) for cell in row(client)))
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines)


def greetings(client: dict) -> tuple:
    known = client["facts"]
    who = known.get("clientInfo")
    if not who:
        return client["package"], f"not installed: {client['refused']}" if "refused" in client else "not run"
    probe = "`server/discover`, then " if known.get("probe") else ""
    return client["package"], f"{probe}{known['revision']} `{who['name']}` {who['version']}"


def equality(client: dict) -> tuple:
    ways = {f"{name} {way}": it for name, its in client["outcomes"].items() for way, it in its.items()}
    differs: dict[str, list[str]] = {}
    for way, it in ways.items():
        if it != "equal":
            differs.setdefault(client["different"].get(way, it), []).append(way.removesuffix(" doctor"))
    equal = len(ways) - sum(map(len, differs.values()))
    told = "; ".join([f"{equal} of {len(ways)}", *(f"{', '.join(its)}: {reason}" for reason, its in differs.items())])
    installed = client["facts"].get("install", "")
    by_hand = f"by hand: {installed}" if installed else ""
    return told, {True: "done, exact", False: "done, not exact", None: by_hand}[client["facts"].get("uninstall exact")]


def shutdowns(client: dict) -> tuple:
    return ", ".join(client["facts"].get("shutdown", [])), client["facts"].get("interrupt", "")


def limits(client: dict) -> tuple:
    return client["facts"].get("slow initialize", ""), client["facts"].get("call limit", "")


def faults(client: dict) -> tuple:
    return client["facts"].get("line that is not JSON", ""), client["facts"].get("after a crash", "")


def problems(client: dict) -> tuple:
    return (" <br> ".join(client["problems"]),)


def findings(client: dict) -> tuple:
    counts: dict[str, set[str]] = {}
    for what in client["findings"]:
        rule, _, scenario = what.partition(", ")
        counts.setdefault(rule, set()).add(scenario.split()[0])
    return ("; ".join(f"{rule} ({', '.join(sorted(its))})" for rule, its in counts.items()),)
