"""The report of a check as workflow commands for GitHub."""

from collections.abc import Iterable, Iterator

from mcpspy.report.checked import Checked, ReportOptions
from mcpspy.report.github import Level, command
from mcpspy.report.lines import sentence
from mcpspy.rules import Finding, Severity

_LEVELS: dict[Severity, Level] = {"error": "error", "warning": "warning", "info": "notice"}


def as_github(captures: Iterable[Checked], _: ReportOptions) -> Iterator[str]:
    """Yield a workflow command for each finding. GitHub shows it beside the line of the capture."""
    return (_command(checked, finding) for checked in captures for finding in checked.findings)


def _command(checked: Checked, finding: Finding) -> str:
    title = f"mcpspy ({finding.rule})"
    return command(_LEVELS[finding.severity], checked.path, finding.frame, title, sentence(finding))
