"""The report of a replay as workflow commands for GitHub."""

from collections.abc import Iterator, Sequence

from mcpspy.replay.compare.sessions import FINE, Compared
from mcpspy.report.differences.exchange_text import headline, sides
from mcpspy.report.github import command
from mcpspy.text import printable


def as_github(path: str, compared: Sequence[Compared]) -> str:
    """Return a workflow command for each exchange that differs. GitHub shows it beside the line of the capture."""
    different = [it for it in compared if it.outcome not in FINE]
    return "".join(command("error", path, it.request, headline(it), "; ".join(_sentences(it))) for it in different)


def _sentences(it: Compared) -> Iterator[str]:
    for difference in it.differences[:10]:
        recorded, observed = sides(difference)
        where = f"{printable(difference.pointer, 200)}: " if difference.pointer else ""
        yield f"{where}recorded {recorded}, observed {observed}"
