"""The rules: one table, filled by these modules, each about one topic.

`judge` in `mcpspy.rules.judge` asks them; `RULES` is what `mcpspy rules` and `docs/rules.md` show.
"""

from mcpspy.rules import (
    capabilities,
    framing,
    headers,
    http,
    lifecycle,
    messages,
    oauth,
    pairing,
    plain,
    rounds,
    security,
    sequences,
    shape,
    stateless,
    streams,
    subscriptions,
    tools,
)
from mcpspy.rules.rule import RULES, SEVERITIES, Fault, Finding, Rule, Severity

__all__ = [
    "RULES", "SEVERITIES", "Fault", "Finding", "Rule", "Severity",
    "capabilities", "framing", "headers", "http", "lifecycle", "messages", "oauth", "pairing", "plain", "rounds",
    "security", "sequences", "shape", "stateless", "streams", "subscriptions", "tools",
]  # fmt: skip
