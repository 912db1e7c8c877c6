"""The report of a check as JUnit XML."""

from collections.abc import Iterable, Iterator

from mcpspy.report.checked import Checked, ReportOptions, Threshold, reaches
from mcpspy.report.junit import Case, document
from mcpspy.report.lines import sentence


def as_junit(captures: Iterable[Checked], options: ReportOptions) -> Iterator[str]:
    """A suite for each capture, a case for each finding; one that makes the check fail is a failure."""
    yield document("mcpspy", ((checked.path, _cases(checked, options.fail_on)) for checked in captures))


def _cases(checked: Checked, fail_on: Threshold) -> Iterator[Case]:
    if not checked.findings:
        yield Case("nothing found")
    for finding in checked.findings:
        name = f"{finding.rule} #{finding.frame}"
        line = f"{finding.severity}: {sentence(finding)}, line {finding.frame}; {finding.spec}"
        if reaches(finding.severity, fail_on):
            yield Case(name, "failure", finding.message, finding.rule, [line])
        else:
            yield Case(name, "system-out", lines=[line])
