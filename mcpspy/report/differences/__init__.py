"""Reports of a replay, for people and for programs: one module for each format, and the table of them."""

from collections.abc import Callable, Sequence

from mcpspy.replay.compare.sessions import Compared
from mcpspy.report.differences import github, json, junit, text

Report = Callable[[str, Sequence[Compared]], str]
"""A format: it takes the path of the recorded capture, and the compared exchanges."""

FORMATS: dict[str, Report] = {
    "text": text.as_text,
    "json": json.as_json,
    "junit": junit.as_junit,
    "github": github.as_github,
}
"""By the name that `--format` accepts, the default first."""
