"""Shared by the rules of this group: which limits apply to which tools, and how a broken limit is reported.

The rows of `mcpspy.spec.client_limits` decide. A tool is checked when it is first listed, and again when its definition
changes. All clients that refuse a tool for the same reason share one finding. Its severity is that of the worst effect:
error if one tool makes all tools unavailable, warning if only this tool is left out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mcpspy.conversation.model import Message, Session
from mcpspy.conversation.offers import page
from mcpspy.json_values import Path, excerpt, member, pointer
from mcpspy.rules.rule import RULES, SEVERITIES, Fault, Finding, Severity, rule
from mcpspy.spec.client_limits import Effect, Limit, limits
from mcpspy.spec.revisions import Lifetime, Revision
from mcpspy.wire.jsonrpc import Result

_SEVERITY: dict[Effect, Severity] = {
    Effect.REQUEST: "error",
    Effect.LIST: "error",
    Effect.TOOL: "warning",
    Effect.CUT: "info",
}
_GROUP = "compat/"
_LEVELS = 64  # of a schema that are checked
_NAMED = ("properties", "patternProperties", "dependencies", "$defs", "definitions")
"""Keywords whose value contains schemas by name."""
_APPLIED = ("items", "additionalProperties", "contains", "not", "if", "then", "else")
_LISTED = ("items", "allOf", "anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Breach:
    """A limit that one tool breaks for some clients."""

    got: str
    """What the tool has. The text follows the name of the tool in the sentence. Empty if the name is enough."""
    broken: Sequence[Limit]
    """The limits that refuse the tool. If it is empty, nothing is reported."""
    path: Path
    """The path inside the tool."""
    advice: str


_ToolCheck = Callable[[dict[str, Any], Sequence[Limit], Session], Iterator[Breach]]
"""A check of a tool that is new or has changed, against the limits that apply."""


def tool_rule(
    id: str,  # noqa: A002 (it is what a rule has)
    severity: Severity,
    explanation: str,
    *,
    fix: str,
    meanwhile: str,
    spec: str,
    fails: str,
    passes: str,
    revisions: Lifetime = tuple(Revision),
) -> Callable[[_ToolCheck], _ToolCheck]:
    """Enter a check of single tools into the table of rules. Its limits have the same id in their own table."""

    def enter(check: _ToolCheck) -> _ToolCheck:
        def breaches(message: Message, session: Session) -> Iterator[Fault]:
            known = limits(id, session.clients)
            for place, tool in _new_tools(message, session) if known else ():
                for breach in check(tool, known, session):
                    where = pointer("result", "tools", place, *breach.path)
                    got = " ".join(filter(None, ("tool", excerpt(tool.get("name")), breach.got)))
                    yield from refused(got, breach.broken, where, breach.advice)

        row = rule(id, severity, explanation, fix=fix, meanwhile=meanwhile, blame="server", spec=spec, fails=fails,
                   passes=passes, on=(Result,), methods=("tools/list",), revisions=revisions)  # fmt: skip
        row(breaches)
        return check

    return enter


def _new_tools(message: Message, session: Session) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the tools of a listing that are new or have changed, each with its index."""
    found = page(message)
    for place, tool in enumerate(found.entries or () if found else ()):
        name = member(tool, "name")
        known = session.listing.tools.get(name) if isinstance(name, str) else None
        if isinstance(tool, dict) and not (known and known.definition == tool):
            yield place, tool


def refused(got: str, broken: Sequence[Limit], where: str, advice: str) -> Iterator[Fault]:
    """Yield the fault for the broken limits, if there are any: what was listed, who refuses it, and what to do."""
    if not broken:
        return
    expected: dict[str, dict[Effect, list[str]]] = {}
    for limit in broken:
        expected.setdefault(limit.expected, {}).setdefault(limit.effect, []).append(limit.client)
    clauses = []
    for what, effects in expected.items():
        otherwise = ", ".join(f"{effect.value} ({', '.join(clients)})" for effect, clients in effects.items())
        clauses.append(f"expected {what}, else {otherwise}")
    worst = min(broken, key=lambda limit: SEVERITIES.index(_SEVERITY[limit.effect]))
    sentence = f"{got}; {'; '.join(clauses)}; {advice}"
    yield Fault(sentence, where, severity=_SEVERITY[worst.effect], source=worst.source)


def refusals(message: Message, session: Session) -> Iterator[Finding]:
    """Yield what the clients of a session refuse in a page of tools, apart from any judge."""
    for row in RULES.values():
        if row.id.startswith(_GROUP) and message.method in row.methods:
            for fault in row.ask(message, session):
                if isinstance(fault, Fault):
                    yield row.finding(fault, message)


def subschemas(schema: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield each subschema that is an object, with its path, the whole schema first. Stop below 64 levels."""
    stack: list[tuple[Path, Any]] = [((), schema)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict) or len(path) > _LEVELS:
            continue
        yield path, node
        inner: list[tuple[Path, Any]] = [((*path, keyword), node.get(keyword)) for keyword in _APPLIED]
        for keyword in _NAMED:
            named = node.get(keyword)
            inner += [((*path, keyword, name), it) for name, it in named.items()] if isinstance(named, dict) else []
        for keyword in _LISTED:
            listed = node.get(keyword)
            inner += [((*path, keyword, n), it) for n, it in enumerate(listed)] if isinstance(listed, list) else []
        stack += reversed(inner)
