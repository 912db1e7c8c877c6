"""The rules: one table, filled by these modules. The group of an id (`pairing/…`) names its module or package.

`judge` in `mcpspy.rules.judge` runs them. `mcpspy rules` and `docs/rules.md` show `RULES`. Findings about one message
have the order of these imports.
"""

# ruff: noqa: I001
from mcpspy.rules.lifecycle import capabilities
from mcpspy.rules import framing
from mcpspy.rules.http import headers, posting
from mcpspy.rules.lifecycle import handshake
from mcpspy.rules.jsonrpc import messages, values
from mcpspy.rules.http import cors, credentials, legacy, oauth
from mcpspy.rules import pairing, cancel, mrtr, security, progress, paging, schema, extension
from mcpspy.rules.http import answers
from mcpspy.rules.lifecycle import stateless, ending
from mcpspy.rules.http import sessions, streams, listening, refusals
from mcpspy.rules import subscription, tools, content, skills, ui, cache, lock, compat, ops, expect
from mcpspy.rules.rule import FORMER, RULES, SEVERITIES, Fault, Finding, LocatedFinding, Rule, Severity, current, worst

__all__ = [
    "FORMER", "RULES", "SEVERITIES", "Fault", "Finding", "LocatedFinding", "Rule", "Severity", "answers", "cache",
    "cancel", "capabilities", "compat", "content", "cors", "credentials", "current", "ending", "expect", "extension",
    "framing", "handshake", "headers", "legacy", "listening", "lock", "messages", "mrtr", "oauth", "ops", "paging",
    "pairing", "posting", "progress", "refusals", "schema", "security", "sessions", "skills", "stateless", "streams",
    "subscription", "tools", "ui", "values", "worst",
]  # fmt: skip
