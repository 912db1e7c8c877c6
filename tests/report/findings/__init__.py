"""What the tests of all formats of `mcpspy check` share."""

from mcpspy.report.checked import ReportOptions, check
from mcpspy.report.findings import FORMATS


def told(form, *paths, fail_on="error", colour=False):
    """The report on some captures in a format."""
    chosen = FORMATS[form]
    captures = [check(str(path), show=chosen.shows_frames) for path in paths]
    return "".join(chosen.write(captures, ReportOptions(fail_on, colour)))
