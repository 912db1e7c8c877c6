"""`mcpspy stats`: statistics of servers, their tools and their clients."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from mcpspy.capture.location import directory
from mcpspy.capture.reader import Capture
from mcpspy.cli.output import ProgressBar, size_of
from mcpspy.cli.targets import readable_paths
from mcpspy.conversation.times import WAITED, waited_text
from mcpspy.cost import TOKEN, tokens, tokens_text
from mcpspy.overview import Duplicate, Latencies, ToolUse, duplicates
from mcpspy.query.stats import ClientUse, ServerUse, Stats
from mcpspy.text import duration_text, measured, plural, printable, size_text

_PARTS = (0.5, 0.95)
_NAME, _BAR = 30, 6  # widths in characters
_NEVER = 20  # maximum number of tools without calls that are listed
_BARS = ""  # the heading of the bars
_SHARED = 50  # maximum number of groups of tools with the same name or definition that are printed
_TOKENS = f"""\
context, result, largest: tokens that the definition, a result on average and the largest result take of a
model's context. Estimated: one for {TOKEN} bytes, of a definition for name, description and inputSchema,
of a result for all but the base64 of images, audio and blobs"""
_COLUMNS = {
    "calls": 7, _BARS: _BAR + 1, "errors": 7, "found": 6, "p50": 9, "p95": 9, "max": 9, "definition": 11,
    "arguments": 10, "results": 9, "context": 8, "result": 7, "largest": 8,
}  # fmt: skip
"""The width of each column."""
_LESS = ("definition", "arguments", "results", "max", _BARS, "largest", "found")
"""The columns that are left out on a narrow terminal, in this order."""


def run(options: argparse.Namespace) -> int:
    """Read the captures, and print the counts."""
    stats = Stats()
    paths = {os.path.realpath(path): path for path in readable_paths(options.captures or [directory(None, os.environ)])}
    captures = list(map(Capture, paths.values()))  # a capture that is given twice counts once
    with ProgressBar("counting", sum(size_of(capture.path) for capture in captures)) as bar:
        for capture in captures:
            stats.add(capture, bar.advance)
    servers = sorted(stats.servers.values(), key=lambda server: (-server.requests, server.name))
    clients = sorted(stats.clients.values(), key=lambda client: (-client.requests, client.name, client.version))
    shared = list(duplicates((server.name, server.tools.values()) for server in servers))
    if options.json:
        for fields in (*map(_server_fields, servers), *map(_client_fields, clients), *map(_duplicate_fields, shared)):
            print(json.dumps(fields, separators=(",", ":")))
        return 0
    columns = _columns()
    for server in servers:
        print("\n".join(_server_lines(server, columns)), end="\n\n")
    for client in clients:
        print("\n".join(_client_lines(client)))
    print("\n".join(_duplicate_lines(shared)), end="\n" * bool(shared))
    print(f"\n{_TOKENS}")
    if "definition" not in columns:
        print("a wider terminal shows more columns, and --json all of them")
    return 0


def _columns() -> dict[str, int]:
    """Return the columns that fit, each with its width; if stdout is not a terminal, all columns except the bars."""
    columns = dict(_COLUMNS)
    if not sys.stdout.isatty():
        del columns[_BARS]
        return columns
    for name in _LESS:
        if 2 + _NAME + sum(columns.values()) > shutil.get_terminal_size().columns:
            del columns[name]
    return columns


def _ordered(tools: Mapping[str, ToolUse]) -> list[ToolUse]:
    return sorted(tools.values(), key=lambda tool: (-tool.calls, tool.name))


def _server_lines(server: ServerUse, columns: Mapping[str, int]) -> Iterator[str]:
    counts = (plural(server.captures, "capture"), plural(server.requests, "request"), f"{server.failed:,} failed")
    found = (plural(server.errors, "error"), plural(server.found, "finding"))
    yield f"server {printable(server.name, 60)}: {', '.join((*counts, *found))}"
    yield from _more_lines(server)
    if not server.tools:
        return
    most = max(tool.calls for tool in server.tools.values())
    rows = [(tool.name or "(no name)", _cells(tool, most)) for tool in _ordered(server.tools)]
    widths = {name: max(width, *(len(cells[name]) + 1 for _, cells in rows)) for name, width in columns.items()}
    yield _line("tool", {name: name for name in columns}, widths)
    for name, cells in rows:
        yield _line(name, cells, widths)


def _more_lines(server: ServerUse) -> Iterator[str]:
    """Yield the times of both sides, the cost of the definitions, and the tools without calls."""
    waited = waited_text(server.times)
    if waited:
        yield f"  waited for: {waited}"
    listed = [tool for tool in _ordered(server.tools) if tool.size]
    if listed:
        context = sum(tool.context for tool in listed)
        yield f"  definitions: {plural(len(listed), 'tool')}, {tokens_text(context)} tokens of a model's context"
    never = [printable(tool.name, _NAME) or "(no name)" for tool in listed if not tool.calls]
    if never:
        more = f" and {len(never) - _NEVER:,} more" if len(never) > _NEVER else ""
        yield f"  never called: {', '.join(never[:_NEVER])}{more}"


def _duplicate_lines(shared: list[Duplicate]) -> Iterator[str]:
    if shared:
        yield "\ntools that a model can mistake for one another:"
    for duplicate in shared[:_SHARED]:
        tools = ", ".join(f"{printable(name, _NAME)} of {printable(server, _NAME)}" for server, name in duplicate.tools)
        yield f"  {tools}: {'identical definitions' if duplicate.identical else 'different definitions'}"
    if len(shared) > _SHARED:
        yield f"  and {len(shared) - _SHARED:,} more, which --json has"


def _cells(tool: ToolUse, most: int) -> dict[str, str]:
    """Return the content of each column. `most` is the highest number of calls of a tool."""
    latencies = [duration_text(latency) for latency in tool.latencies.quantiles(*_PARTS, 1)] or ["-"] * 3
    return {
        "calls": f"{tool.calls:,}",
        _BARS: f" {'█' * -(-tool.calls * _BAR // max(most, 1)):<{_BAR}}",
        "errors": f"{tool.errors:,}",
        "found": f"{tool.found:,}",
        **dict(zip(("p50", "p95", "max"), latencies, strict=True)),
        "definition": size_text(tool.size),
        "arguments": size_text(tool.arguments),
        "results": size_text(tool.results),
        "context": f"{tokens(tool.context):,}" if tool.size else "-",
        "result": f"{tokens(tool.mean):,}" if tool.answers else "-",
        "largest": f"{tokens(tool.largest):,}" if tool.answers else "-",
    }


def _line(name: str, cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
    """Return a line of the table. Each width has room for a space before the cell."""
    text, taken = measured(name, _NAME)
    return f"  {text}{' ' * (_NAME - taken)}{''.join(f'{cells[name]:>{width}}' for name, width in widths.items())}"


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


def _times(latencies: Latencies) -> dict[str, float | None]:
    """Return the latencies in seconds; null if there was no response."""
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
        "failed": server.failed,
        "findings": server.found,
        **_times(server.latencies),
        "waited_for": {whom: server.times[whom] / 1e9 for whom in WAITED},
        "definition_tokens": tokens(sum(tool.context for tool in server.tools.values())),
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
                "tokens": tokens(tool.size + tool.arguments + tool.text),
                "listed": tool.size > 0,
                "definition_tokens": tokens(tool.context),
                "result_tokens_mean": tokens(tool.mean),
                "result_tokens_max": tokens(tool.largest),
            }
            for tool in _ordered(server.tools)
        ],
    }


def _duplicate_fields(duplicate: Duplicate) -> dict[str, Any]:
    tools = [{"server": server, "name": name} for server, name in duplicate.tools]
    return {"kind": "duplicate", "tools": tools, "identical": duplicate.identical}


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
