"""What a check found, for people and for programs: one module for each format, and the table of them.

Formats differ in the characters that a text may contain, and peers may send any text: sentences and paths go through
`printable`, which leaves one line without controls. Only JSON has every text unchanged.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from mcpspy.report.checked import Checked, ReportOptions
from mcpspy.report.findings import github, json, junit, sarif, text


class FindingsFormat(NamedTuple):
    """A format: what writes it, and whether it shows frames (`check` of `mcpspy.report.checked`, `show`)."""

    write: Callable[[Iterable[Checked], ReportOptions], Iterable[str]]
    shows_frames: bool = False


FORMATS = {
    "text": FindingsFormat(text.as_text, shows_frames=True),
    "json": FindingsFormat(json.as_json),
    "junit": FindingsFormat(junit.as_junit),
    "sarif": FindingsFormat(sarif.as_sarif),
    "github": FindingsFormat(github.as_github),
}
"""By the name that `--format` takes, the default first."""
