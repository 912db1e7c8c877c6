"""Findings that somebody has accepted, and why: a file of waivers in TOML.

    [[waiver]]
    rule = "tools/unknown-tool"
    capture = "features-*.jsonl"    # a glob, matched from the right as `PurePath.match` does
    pointer = "/params/name"        # optional: only findings that point exactly there
    reason = "the scenario calls a tool that is not there"
    expires = 2027-01-31            # optional: the last day on which it counts

A waiver must not outlive its reason. If its glob matches a capture of the run, but it has no finding left to waive, it
is stale and must be removed. An expired waiver waives nothing, and is named.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import date, datetime
from functools import partial
from pathlib import PurePath
from typing import Any

from mcpspy.errors import UsageError
from mcpspy.foreign_file import read_foreign
from mcpspy.report.checked import Checked
from mcpspy.rules import RULES, Finding, current
from mcpspy.text import printable, suggestion
from mcpspy.toml_text import toml_values


@dataclass(frozen=True, slots=True)
class Waiver:
    """One entry of the file."""

    rule: str
    capture: str
    reason: str
    pointer: str | None = None
    expires: date | None = None

    def concerns(self, path: str) -> bool:
        """Return whether it applies to the capture at `path`."""
        return PurePath(path).match(self.capture)

    def waives(self, finding: Finding) -> bool:
        """Return whether it accepts a finding in a capture to which it applies."""
        return finding.rule == self.rule and self.pointer in (None, finding.pointer)

    def __str__(self) -> str:
        where = f" at {self.pointer}" if self.pointer else ""
        return printable(f"{self.rule}{where} in {self.capture} ({self.reason})", 300)


@dataclass(frozen=True, slots=True)
class Waived:
    """The checked captures without the waived findings."""

    captures: tuple[Checked, ...]
    stale: tuple[Waiver, ...]
    expired: tuple[Waiver, ...]


def read(path: str, rules: Collection[str] = RULES) -> tuple[Waiver, ...]:
    """Read the waivers in a file, for some rules. Raises UsageError with the file, the waiver and what is wrong."""
    try:
        content = toml_values(read_foreign(path, named=True).decode())
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    found = content.pop("waiver", [])
    if content or not isinstance(found, list):
        what = f"has {next(iter(content))!r}" if content else "has a 'waiver' that is not a [[waiver]]"
        raise UsageError(f"{path} {what}; it holds [[waiver]] tables and nothing else")
    return tuple(_waiver(f"{path}, waiver {number}", entry, rules) for number, entry in enumerate(found, 1))


def _waiver(where: str, entry: Any, rules: Collection[str]) -> Waiver:
    if not isinstance(entry, dict):
        raise UsageError(f"{where} is not a table")
    known = [field.name for field in fields(Waiver)]
    for name in entry:
        if name not in known:
            hint = suggestion(name, known, f"it may have {', '.join(known)}")
            raise UsageError(f"{where} has the unknown key {name!r}; {hint}")
    for name in ("rule", "capture", "reason"):
        if not entry.get(name):
            raise UsageError(f"{where} lacks {name!r}")
    for name, value in entry.items():
        if name == "expires":
            if not isinstance(value, date) or isinstance(value, datetime):
                raise UsageError(f"{where}: expires is a date, such as 2027-01-31")
        elif not isinstance(value, str):
            raise UsageError(f"{where}: {name} is a string")
    if not PurePath(entry["capture"]).parts:
        raise UsageError(f"{where}: capture {entry['capture']!r} names no capture; such as '*.jsonl'")
    rule = current(entry["rule"])
    if rule not in rules:
        raise UsageError(f"{where}: {no_rule(rule, rules)}")
    return Waiver(**entry | {"rule": rule})


def no_rule(name: str, rules: Collection[str] = RULES) -> str:
    """Return a sentence about a rule that does not exist, with the nearest ones."""
    others = "'mcpspy rules' lists them" if rules is RULES else f"the rules are {', '.join(rules)}"
    return f"there is no rule {name!r}; {suggestion(name, rules, others, most=3)}"


def apply(waivers: Sequence[Waiver], captures: Sequence[Checked], today: date) -> Waived:
    """Remove the waived findings. `today` decides which waivers have expired."""
    expired = tuple(waiver for waiver in waivers if waiver.expires and waiver.expires < today)
    valid = [waiver for waiver in waivers if waiver not in expired]
    used: set[Waiver] = set()
    left = []
    for checked in captures:
        kept = checked.only(partial(_stands, [waiver for waiver in valid if waiver.concerns(checked.path)], used))
        left.append(replace(kept, waived=len(checked.findings) - len(kept.findings)))
    stale = [it for it in valid if it not in used and any(it.concerns(checked.path) for checked in captures)]
    return Waived(tuple(left), tuple(stale), expired)


def _stands(concerned: Sequence[Waiver], used: set[Waiver], finding: Finding) -> bool:
    """Return whether no waiver accepts a finding. Add those that do to `used`."""
    waiving = [waiver for waiver in concerned if waiver.waives(finding)]
    used.update(waiving)
    return not waiving
