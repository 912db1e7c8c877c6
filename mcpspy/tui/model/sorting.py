"""The columns by which `S` sorts a list, and how a heading shows the chosen one."""

import re
from typing import NamedTuple


class SortColumn(NamedTuple):
    """A column by which a list can be sorted."""

    name: str
    """What it is called; the heading has this name, or `title`."""
    falling: bool = True
    """Whether the largest value comes first."""
    title: str = ""

    def marked(self, heading: str, first: str) -> str:
        """Return a heading with an arrow beside the name of this column.

        If the heading has no such name, its `first` one is followed by the name, unless the list begins so.
        """
        arrow = "↓" if self.falling else "↑"
        title = self.title or self.name
        for place, sign in ((rf"(?<!\S){title} (?= |$)", title + arrow), (rf" {title}(?!\S)", arrow + title)):
            if re.search(place, heading):
                return re.sub(place, sign, heading, count=1)
        if any(self == columns[0] for columns in SORTS.values()):
            return heading
        words = f"{first}, by {self.name}{arrow}"
        return heading.replace(first.ljust(len(words)), words, 1)


SORTS: dict[str, tuple[SortColumn, ...]] = {
    "calls": (
        SortColumn("time", falling=False, title="request"),
        SortColumn("latency"),
        SortColumn("size"),
        SortColumn("status"),
        SortColumn("name", falling=False, title="call"),
    ),
    "tools": (
        SortColumn("listing", falling=False),
        SortColumn("name", falling=False, title="tool"),
        SortColumn("calls"),
        SortColumn("errors"),
        SortColumn("latency", title="max"),
        SortColumn("context"),
    ),
    "sessions": (
        SortColumn("newest", title="started"),
        SortColumn("problems"),
        SortColumn("frames"),
        SortColumn("name", falling=False, title="server"),
    ),
}
"""The columns of each list that can be sorted, in the order of the key; a list begins with the first."""
