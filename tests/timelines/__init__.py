"""The stored timelines: the rows of each golden capture, one line each, in `NAME.txt` beside this file.

A capture never changes, so its timeline must not change either, unless the fold itself changes. In that case
`scripts/record-golden --timelines` writes the timelines again, and the difference is reviewed like code.
"""

from pathlib import Path

from mcpspy.capture.reader import Capture
from mcpspy.text import printable
from mcpspy.timeline import Row, final_rows
from tests import NIGHTLY

CAPTURES = Path(__file__).parent.parent.parent / "captures"
FEW = """features-python2-2025-03-26 field-stdio full-python1-2025-06-18 http-everything-2025-11-25
    http-python2-2026-07-28 sse-python1-2024-11-05""".split()
GOLDEN = sorted(path for path in CAPTURES.glob("*.jsonl") if NIGHTLY or path.stem in FEW)
"""The captures that each view is tested with: one for every transport and revision, and nightly all of them."""

ARROWS = {"client": ">", "server": "<", "mcpspy": "."}
WIDTHS = (6, 1, 12, 13, 34, 24, 10, 10, 9)


def stored(capture: Path) -> Path:
    """Return the path of a capture's stored timeline."""
    return Path(__file__).parent / f"{capture.stem}.txt"


def timeline(capture: Path) -> str:
    """Return the rows of a capture as text. A `-` stands for a missing field."""
    return "".join(f"{line(row)}\n" for row in final_rows(Capture(str(capture)).records, live=False))


def line(row: Row) -> str:
    """Return a row: place, sender, kind, id, method, name, revision, status, partner in the exchange, other text."""
    other = row.response if row.kind == "request" else row.request
    columns = (
        f"#{row.n}" + (f".{row.part}" if row.part else ""),
        ARROWS[row.sender],
        row.kind,
        row.id,
        row.method,
        row.name,
        row.revision,
        row.status,
        None if other is None else f"#{other}",
    )
    told = ("-" if column is None else printable(str(column), 60) for column in columns)
    text = printable(row.text or row.preview or row.refused or "", 160)
    return " ".join([*(cell.ljust(width) for cell, width in zip(told, WIDTHS, strict=True)), text]).rstrip()
