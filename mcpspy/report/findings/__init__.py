"""Reports of a check, for people and for programs: one module for each format, and the table of them.

Formats differ in the characters that a text may contain, and peers may send any text. So sentences and paths go through
`printable`, which returns one line without control characters. Only JSON has every text unchanged.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from mcpspy.report.checked import Checked, ReportOptions
from mcpspy.report.findings import github, json, junit, sarif, text


class FindingsFormat(NamedTuple):
    """A format: its writer, and whether it shows frames (`show` of `mcpspy.report.checked.check`)."""

    write: Callable[[Iterable[Checked], ReportOptions], Iterable[str]]
    shows_frames: bool = False


FORMATS = {
    "text": FindingsFormat(text.as_text, shows_frames=True),
    "json": FindingsFormat(json.as_json),
    "junit": FindingsFormat(junit.as_junit),
    "sarif": FindingsFormat(sarif.as_sarif),
    "github": FindingsFormat(github.as_github),
}
"""By the name that `--format` accepts, the default first."""
