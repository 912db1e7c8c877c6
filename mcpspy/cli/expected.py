"""The options of `check` about the expected content of a session: a file, and the most common expectations."""

import argparse
from collections.abc import Sequence

from mcpspy.contract.expectations import (
    Expectations,
    NoErrors,
    SessionDuration,
    expectations,
    read,
    refuse_contradictions,
)
from mcpspy.errors import UsageError
from mcpspy.gate_files.values import duration
from mcpspy.report.checked import Checked


def expectations_of(options: argparse.Namespace) -> Expectations:
    """Return the expectations that the options declare. Raises UsageError."""
    found = read(options.expect) if options.expect else Expectations()
    for option, more in (("--expect-tool", {}), ("--forbid-tool", {"never": True})):
        for name in getattr(options, option[2:].replace("-", "_")):
            if not name:
                raise UsageError(f"{option} has no name; write the name of a tool, where * is any text")
            found = found.joined(expectations({"tool": [{"name": name, **more}]}, option))
    refuse_contradictions(options.expect or "--expect-tool, --forbid-tool", found.every)
    if options.no_failures:
        found = found.joined(Expectations((NoErrors(None),)))
    if options.max_duration is not None:
        try:
            longest = SessionDuration(None, duration(options.max_duration))
        except ValueError as error:
            raise UsageError(f"--max-duration: {error}") from None
        found = found.joined(Expectations((longest,)))
    return found


def refuse_unmet_servers(expected: Expectations, captures: Sequence[Checked]) -> None:
    """Raise UsageError for an expectation about a server without captures: it could never be violated."""
    held = {(it.rule, it.title) for checked in captures for it in checked.met}
    for expectation in expected.every:
        if (expectation.rule, expectation.title) not in held:
            what = f"no capture is of a server {expectation.server!r}, which an expectation names"
            raise UsageError(f"{what}; 'mcpspy ls' shows the server of each capture")
