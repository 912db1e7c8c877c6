"""Explanations of rules, and findings with how to fix them."""

from collections.abc import Iterable, Iterator
from textwrap import dedent

from mcpspy.agent.answers import Answer, Scrubber, address, facts, fitting, safe
from mcpspy.browse.findings import Group
from mcpspy.browse.timeline import OpenCapture
from mcpspy.errors import UsageError
from mcpspy.report.waivers import no_rule
from mcpspy.rules import RULES, SEVERITIES, Finding, Rule, current
from mcpspy.timeline import Row

_MOST_FINDINGS = 30  # findings per answer
_RELATED = 5  # frames listed for a finding besides its own
_SAME = 5  # frames listed for a group


def explain_rule(*, rule: str) -> Answer:
    """Return what a rule finds, why it matters, how to fix it, and the page of the specification."""
    found = the_rule(rule)
    return facts(
        rule=found.id,
        severity=found.severity,
        blame=found.blame,
        explanation=found.explanation,
        **advice(found, found.blame),
        spec=found.url(None),
        revisions=[revision.value for revision in found.revisions],
        fails=dedent(found.fails).strip()[:1500],
        passes=dedent(found.passes).strip()[:1500],
    )


def the_rule(name: str) -> Rule:
    """Return the rule with that id or former id. Raises UsageError, with the nearest id."""
    name = current(name.strip())
    if name not in RULES:
        raise UsageError(safe(no_rule(name[:100]), 300))
    return RULES[name]


def advice(rule: Rule, blame: str) -> dict[str, str]:
    """Return what the responsible side should change, and what the other side can do until then."""
    told = [text for _, text in rule.advice(blame)]
    return dict(zip(("fix", "meanwhile"), told, strict=False))


def told_findings(
    scrubber: Scrubber, capture: OpenCapture, name: str, findings: Iterable[Finding], room: int
) -> list[Answer]:
    """Return findings, the worst first. The fix of a rule is given with its first finding."""
    ranked = sorted(findings, key=lambda it: (SEVERITIES.index(it.severity), it.frame))
    return list(fitting(_each(scrubber, capture, name, ranked), room, _MOST_FINDINGS))


def _each(scrubber: Scrubber, capture: OpenCapture, name: str, findings: Iterable[Finding]) -> Iterator[Answer]:
    explained: set[str] = set()
    for finding in findings:
        rule = RULES.get(finding.rule)
        more = advice(rule, finding.blame) if rule and finding.rule not in explained else {}
        explained.add(finding.rule)
        yield _told_finding(scrubber, capture, name, finding) | more


def told_groups(
    scrubber: Scrubber, capture: OpenCapture, name: str, groups: Iterable[Group], room: int
) -> list[Answer]:
    """Return findings by rule and responsible side, the worst first: count, frames, the first finding, the fix."""
    ranked = sorted(groups, key=lambda it: (SEVERITIES.index(it.severity), -it.count, it.rule))
    return list(fitting((_group(scrubber, capture, name, it) for it in ranked), room, _MOST_FINDINGS))


def _group(scrubber: Scrubber, capture: OpenCapture, name: str, group: Group) -> Answer:
    rule, first = RULES.get(group.rule), group.findings[0] if group.findings else None
    fields = (
        _told_finding(scrubber, capture, name, first)
        if first
        else facts(rule=group.rule, severity=group.severity, blame=group.blame)
    )
    frames = list(dict.fromkeys(it.frame for it in group.findings))[1 : _SAME + 1]
    count = facts(count=group.count if group.count > 1 else None, also=[address(name, n) for n in frames])
    return fields | count | (advice(rule, group.blame) if rule else {})


def _is_text(row: Row) -> bool:
    return row.kind == "invalid" and row.value is None


def _told_finding(scrubber: Scrubber, capture: OpenCapture, name: str, finding: Finding) -> Answer:
    scrubber.learn(capture, finding.related[:_RELATED])  # the message may quote their values
    place = capture.index.row_of(finding.frame)
    row = scrubber.rows(capture, place)[0] if place is not None else None
    return facts(
        rule=finding.rule,
        severity=finding.severity,
        blame=finding.blame,
        at=address(name, finding.frame),
        message=scrubber.text(finding.message, 400),
        text=scrubber.text(row.raw.decode(errors="replace"), 160) if row and _is_text(row) else None,
        pointer=scrubber.text(finding.pointer, 200),
        related=[address(name, n) for n in finding.related[:_RELATED]],
        spec=finding.spec,
    )
