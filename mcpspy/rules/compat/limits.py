"""What the rules of this group share: which tools are judged by which limits, and how a broken limit is told.

The theory. The rows of `mcpspy.spec.client_limits` decide. A tool is judged when it is listed first, and again when its
definition changes. All clients that refuse a tool for the same reason make one finding; it is as severe as the worst of
what they do: an error where one tool makes all of them unavailable, a warning where the tool is left out.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from mcpspy.conversation.history import SessionHistory
from mcpspy.conversation.model import Message
from mcpspy.conversation.offers import page
from mcpspy.json_values import Path, excerpt, member
from mcpspy.rules.rule import SEVERITIES, Fault, Severity
from mcpspy.spec.client_limits import Effect, Limit

_SEVERITY: dict[Effect, Severity] = {
    Effect.REQUEST: "error",
    Effect.LIST: "error",
    Effect.TOOL: "warning",
    Effect.CUT: "info",
}
_LEVELS = 64  # of a schema that are looked at
_NAMED = ("properties", "patternProperties", "dependencies", "$defs", "definitions")
"""Keywords whose value holds schemas by name."""
_APPLIED = ("items", "additionalProperties", "contains", "not", "if", "then", "else")
_LISTED = ("items", "allOf", "anyOf", "oneOf")


def new_tools(message: Message, history: SessionHistory) -> Iterator[tuple[int, dict[str, Any]]]:
    """The tools of a listing that are new or have changed, with their places; none where no client is named."""
    found = page(message) if history.clients else None
    for place, tool in enumerate(found.entries or () if found else ()):
        name = member(tool, "name")
        known = history.listing.tools.get(name) if isinstance(name, str) else None
        if isinstance(tool, dict) and not (known and known.definition == tool):
            yield place, tool


def label(tool: dict[str, Any]) -> str:
    """The tool in a message."""
    return f"tool {excerpt(tool.get('name'))}"


def refused(got: str, broken: Sequence[Limit], where: str, advice: str) -> Iterator[Fault]:
    """The fault that some broken limits are, if there are any: what was listed, who refuses it, and what to do."""
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


def subschemas(schema: Any) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Each schema in a schema that is an object, with its path, the whole first; not below 64 levels."""
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
