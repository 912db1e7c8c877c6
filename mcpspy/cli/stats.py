"""`mcpspy stats`: what servers, their tools and their clients did."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from mcpspy.capture.location import directory
from mcpspy.capture.reader import Capture
from mcpspy.cli.progress import ProgressBar, size_of
from mcpspy.cli.targets import capture_paths
from mcpspy.overview import Latencies, ToolUse
from mcpspy.query.stats import ClientUse, ServerUse, Stats
from mcpspy.text import duration_text, plural, printable, size_text

TOKEN = 4
"""Bytes for which one token is estimated."""
_PARTS = (0.5, 0.95)
_NAME, _BAR = 30, 6  # columns
_HEADINGS = ("calls", "errors", "found", "p50", "p95", "max", "definition", "arguments", "results", "tokens")
_WIDTHS = (7, 7, 6, 9, 9, 9, 11, 10, 9, 9)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    parser.description = (
        "Count what servers, tools and clients do: calls, errors, latencies, bytes, findings, and the requests that "
        "clients gave up."
    )
    parser.epilog = f"Tokens are estimated: one for {TOKEN} bytes of definitions, arguments and results."
    parser.add_argument("captures", nargs="*", metavar="CAPTURE|DIR", help="default: the capture directory")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each server and each client")


def run(options: argparse.Namespace) -> int:
    """Read the captures, and print the counts."""
    stats = Stats()
    captures = [Capture(path) for path in capture_paths(options.captures or [directory(None, os.environ)])]
    with ProgressBar("counting", sum(size_of(capture.path) for capture in captures)) as bar:
        for capture in captures:
            stats.add(capture, bar.advance)
    servers = sorted(stats.servers.values(), key=lambda server: (-server.requests, server.name))
    clients = sorted(stats.clients.values(), key=lambda client: (-client.requests, client.name, client.version))
    if options.json:
        for fields in (*map(_server_fields, servers), *map(_client_fields, clients)):
            print(json.dumps(fields, separators=(",", ":")))
        return 0
    bars = sys.stdout.isatty()
    for server in servers:
        print("\n".join(_server_lines(server, bars=bars)), end="\n\n")
    for client in clients:
        print("\n".join(_client_lines(client)))
    print(f"\ntokens are estimated: one for {TOKEN} bytes of definition, arguments and results")
    return 0


def _ordered(tools: Mapping[str, ToolUse]) -> list[ToolUse]:
    return sorted(tools.values(), key=lambda tool: (-tool.calls, tool.name))


def _server_lines(server: ServerUse, *, bars: bool) -> Iterator[str]:
    counts = (plural(server.captures, "capture"), plural(server.requests, "request"), plural(server.errors, "error"))
    yield f"server {printable(server.name, 60)}: {', '.join((*counts, plural(server.found, 'finding')))}"
    if server.tools:
        blank = " " * (_BAR + 1) * bars
        yield _line("tool", _HEADINGS[0], blank, *_HEADINGS[1:])
    most = max((tool.calls for tool in server.tools.values()), default=0)
    for tool in _ordered(server.tools):
        bar = f" {'█' * -(-tool.calls * _BAR // max(most, 1)):<{_BAR}}" if bars else ""
        latencies = [duration_text(latency) for latency in tool.latencies.quantiles(*_PARTS, 1)] or ["-"] * 3
        sizes = [size_text(size) for size in (tool.size, tool.arguments, tool.results)]
        counted = (f"{number:,}" for number in (tool.errors, tool.found))
        name = printable(tool.name, _NAME) or "(no name)"
        yield _line(name, f"{tool.calls:,}", bar, *counted, *latencies, *sizes, f"{_tokens(tool):,}")


def _line(name: str, calls: str, bar: str, *rest: str) -> str:
    cells = (f"{cell:>{width}}" for cell, width in zip(rest, _WIDTHS[1:], strict=True))
    return f"  {name:<{_NAME}}{calls:>{_WIDTHS[0]}}{bar}{''.join(cells)}"


def _client_lines(client: ClientUse) -> Iterator[str]:
    name = printable(f"{client.name} {client.version}".strip(), 80) or "(no name)"
    yield f"client {name}: {plural(client.sessions, 'session')}, {plural(client.requests, 'request')}"
    for title, table in (("revisions", client.revisions), ("capabilities", client.capabilities)):
        if table:
            shown = (f"{printable(name, 60)} ({times:,})" for name, times in sorted(table.items()))
            yield f"  {title}: {', '.join(shown)}"
    if client.given_up:
        shown = (f"{printable(method, 60)} ({times:,})" for method, times in sorted(client.given_up.items()))
        waits = client.waits.quantiles(0.5, 1)
        after = f" after {duration_text(waits[0])} (median), at most {duration_text(waits[1])}" if waits else ""
        yield f"  gave up{after}: {', '.join(shown)}"


def _tokens(tool: ToolUse) -> int:
    return (tool.size + tool.arguments + tool.results) // TOKEN


def _times(latencies: Latencies) -> dict[str, float | None]:
    """Seconds; null where nothing was answered."""
    found: dict[str, float | None] = dict.fromkeys(("p50", "p95", "max"))
    found.update((name, it / 1e9) for name, it in zip(found, latencies.quantiles(*_PARTS, 1), strict=False))
    return found


def _server_fields(server: ServerUse) -> dict[str, Any]:
    return {
        "kind": "server",
        "name": server.name,
        "captures": server.captures,
        "requests": server.requests,
        "errors": server.errors,
        "findings": server.found,
        **_times(server.latencies),
        "tools": [
            {
                "name": tool.name,
                "calls": tool.calls,
                "errors": tool.errors,
                "findings": tool.found,
                **_times(tool.latencies),
                "definition": tool.size,
                "arguments": tool.arguments,
                "results": tool.results,
                "tokens": _tokens(tool),
            }
            for tool in _ordered(server.tools)
        ],
    }


def _client_fields(client: ClientUse) -> dict[str, Any]:
    return {
        "kind": "client",
        "name": client.name,
        "version": client.version,
        "sessions": client.sessions,
        "requests": client.requests,
        "revisions": client.revisions,
        "capabilities": client.capabilities,
        "given_up": client.given_up,
        **_times(client.waits),
    }
