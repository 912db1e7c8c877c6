"""The report of a replay as JSON (`docs/json.md`)."""

from collections.abc import Sequence

from mcpspy.replay.compare.sessions import Compared
from mcpspy.report.differences.exchange_json import exchange_fields, to_json
from mcpspy.report.differences.exchange_text import totals


def as_json(path: str, compared: Sequence[Compared]) -> str:
    """Return the report on one line."""
    del path
    exchanges = [exchange_fields(it) for it in compared]
    return to_json({"exchanges": exchanges, "totals": totals(compared)}) + "\n"
