"""Shared by the tests of all formats of `mcpspy check`."""

from mcpspy.report.checked import ReportOptions, check
from mcpspy.report.findings import FORMATS


def told(form, *paths, fail_on="error", colour=False):
    """Return the report on some captures in a format."""
    chosen = FORMATS[form]
    captures = [check(str(path), show=chosen.shows_frames) for path in paths]
    return "".join(chosen.write(captures, ReportOptions(fail_on, colour)))
