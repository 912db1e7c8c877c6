"""The report of a check as JUnit XML."""

from collections.abc import Iterable, Iterator

from mcpspy.contract.watch import Met, is_about
from mcpspy.report.checked import Checked, ReportOptions, Threshold, reaches
from mcpspy.report.junit import Case, document
from mcpspy.report.lines import sentence
from mcpspy.rules import Finding


def as_junit(captures: Iterable[Checked], options: ReportOptions) -> Iterator[str]:
    """Yield a suite for each capture, with a case for each finding and each expectation.

    A case is a failure if it makes the check fail.
    """
    yield document("mcpspy", ((checked.path, _cases(checked, options.fail_on)) for checked in captures))


def _cases(checked: Checked, fail_on: Threshold) -> Iterator[Case]:
    if checked.live:
        yield Case("live", "skipped", checked.live_text)
    for met in checked.met:
        yield _expectation(met, [it for it in checked.findings if is_about(it, met)], fail_on)
    if not checked.findings and not checked.met:
        yield Case("nothing found")
    for finding in checked.findings:
        if any(is_about(finding, met) for met in checked.met):
            continue
        name = f"{finding.rule} #{finding.frame}"
        line = f"{finding.severity}: {sentence(finding)}, line {finding.frame}; {finding.spec}"
        if reaches(finding.severity, fail_on):
            yield Case(name, "failure", finding.message, finding.rule, [line])
        else:
            yield Case(name, "system-out", lines=[line])


def _expectation(met: Met, failures: list[Finding], fail_on: Threshold) -> Case:
    """Return the case of an expectation. Findings that are waived or left out do not make it fail."""
    lines = [f"{it.severity}: {sentence(it)}, line {it.frame}" for it in failures]
    if failures and reaches(failures[0].severity, fail_on):
        return Case(met.title, "failure", failures[0].message, met.rule, lines)
    if met.passed is None:
        return Case(met.title, "skipped", "the capture is still being written")
    return Case(met.title, "system-out" if lines else None, lines=lines)
