"""What a page knows of a session before it unpacks the capture: rows, problems, peers, tools, rules with findings.

Everything is computed from the capture in the page, and from nothing else. So a page cannot show what was left out of
that capture or replaced in it, and a user who imports the capture sees the same.

The rows are those of `show --json`. The page has the whole capture, so a row contains no message and no frame; what
cannot be taken from there is added.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import orjson

from mcpspy import __version__
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Header
from mcpspy.conversation.preview import LONGEST
from mcpspy.overview import Announced, Peer, ToolUse
from mcpspy.problems.fold import Problems
from mcpspy.report.problems import problem_fields
from mcpspy.rules import RULES
from mcpspy.sharing.selection import LEFT_OUT
from mcpspy.text import printable
from mcpspy.timeline import Ending, Row, final_rows, row_fields, text_json, wall_time

_PLAIN = re.compile(r"0|-?[1-9]\d{0,14}")  # a number that every JSON parser keeps unchanged


def page_row(row: Row, header: Header) -> dict[str, Any]:
    """Return a row for orjson: the members of `docs/json.md` except `message`, `text` and `tail`, and three others.

    `preview` is a short text to show beside the method. `text` is the text of a row without a frame. `token` is the
    exact text of an id that is null or a number that JavaScript would write differently.
    """
    fields = row_fields(row, header)
    if row.id and (row.id.kind == "null" or (row.id.kind == "number" and not _PLAIN.fullmatch(row.id.token))):
        fields["token"] = row.id.token
    if not row.raw:
        fields["text"] = text_json(row.text or "")
    elif preview := row.preview or row.text:
        fields["preview"] = text_json(preview[:LONGEST])
    return fields


_DAMAGES = 20  # damaged lines that are listed


@dataclass(slots=True)
class Contents:
    """The session of one capture; `about` is what the page gets in addition to the capture."""

    capture: Capture
    live: bool
    about: dict[str, Any]
    most: int
    """Maximum number of rows."""
    read: Callable[[int], None]
    """Called with the number of bytes of the capture that were read; the capture is read twice."""
    rows: int = 0
    _end: str | None = None
    _damage: list[str] = field(default_factory=list)
    _broken: set[str] = field(default_factory=set)
    """The rules with findings."""

    def json(self) -> Iterator[bytes]:
        """Yield one JSON object in pieces, which the page's `session.js` describes.

        Stop early at more than `most` rows.
        """
        header = self.capture.header
        announced, ending, problems = Announced(), Ending(), Problems(header)
        yield b'{"rows":['
        records = partial(self.capture.records, read=self.read)
        for row in final_rows(records, announced, ending, problems, live=self.live):
            if self.rows == self.most:
                self.rows += 1
                return
            yield b"," * (self.rows > 0) + orjson.dumps(page_row(row, header))
            self.rows += 1
            self._add(row)
        if not ending.ended and not self.live:
            self._damage.append("the capture has no end: mcpspy was killed while it recorded")
        rest = {"about": self._about(), "rules": self._rules(), **_announced(announced)}
        yield b'],"problems":' + orjson.dumps([problem_fields(problem) for problem in problems.made()])
        yield b"," + json.dumps(rest, separators=(",", ":")).encode()[1:]

    def _add(self, row: Row) -> None:
        self._broken.update(finding.rule for finding in row.findings)
        if row.kind == "end":
            self._end = row.text
        elif row.kind == "gap" and not (row.text or "").endswith(LEFT_OUT):
            self._damage.append(f"#{row.n}: {printable(row.text or '', 200)}")

    def _about(self) -> dict[str, Any]:
        header = self.capture.header
        damage = self._damage if len(self._damage) <= _DAMAGES else [*self._damage[:_DAMAGES], "…"]
        return {
            "name": header.name,
            "transport": header.transport,
            "started": wall_time(header, 0),
            "tool": header.tool,
            "argv": list(header.argv),
            "url": header.url,
            "id": header.id,
            "live": self.live,
            "damage": damage,
            "made": f"mcpspy {__version__}",
            "end": self._end,
            **self.about,
        }

    def _rules(self) -> dict[str, Any]:
        return {
            rule.id: {
                "summary": rule.summary,
                "explanation": rule.explanation,
                "fix": rule.fix,
                "severity": rule.severity,
                "spec": rule.url(None),
            }
            for rule in map(RULES.__getitem__, sorted(self._broken & set(RULES)))
        }


def _announced(announced: Announced) -> dict[str, Any]:
    return {
        "peers": {"client": _peer(announced.client), "server": _peer(announced.server)},
        "tools": [_tool(tool) for tool in announced.tools.values()],
    }


def _peer(peer: Peer | None) -> dict[str, Any] | None:
    return (
        None
        if peer is None
        else {
            "name": peer.name,
            "version": peer.version,
            "revision": peer.revision,
            "capabilities": list(peer.capabilities),
            "instructions": peer.instructions,
        }
    )


def _tool(tool: ToolUse) -> dict[str, Any]:
    p50, p95 = [latency / 1e9 for latency in tool.latencies.quantiles(0.5, 0.95)] or (None, None)
    return {
        "name": tool.name,
        "bytes": tool.size,
        "listed": tool.listed,
        "called": tool.called,
        "calls": tool.calls,
        "errors": tool.errors,
        "found": tool.found,
        "p50": p50,
        "p95": p95,
        "max": None if p50 is None else tool.latencies.longest / 1e9,
    }
