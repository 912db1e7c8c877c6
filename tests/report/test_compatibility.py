"""P-01: `docs/compat.md` matches the table of limits."""

from pathlib import Path

from mcpspy.report.catalogue import compatibility_page
from mcpspy.spec.client_limits import CLIENTS, LIMITS

DOCUMENT = Path(__file__).parent.parent.parent / "docs" / "compat.md"


def test_the_document_is_current():
    """After a change of the table, run `scripts/write-rules`."""
    assert DOCUMENT.read_text(encoding="utf-8") == compatibility_page()


def test_the_document_has_every_client_and_every_limit_with_its_source():
    text = compatibility_page()
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == list(CLIENTS)
    rows = [line for line in text.splitlines() if line.startswith("| ") and "](https://" in line]
    assert len(rows) == len(LIMITS)
    assert all(f"({limit.source})" in text for limit in LIMITS)
    assert "| a tool name that matches `^.{1,58}$` | this tool is left out | [2026-03-18](" in text
