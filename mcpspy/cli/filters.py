"""The filter of a command line: a mistake in it is pointed at."""

import sys

from mcpspy.errors import FilterError
from mcpspy.filters import Filter, parse
from mcpspy.text import printable


def given_filter(text: str, started: str) -> Filter:
    """The filter that `--filter` gives for captures that began at `started`; raises FilterError.

    Before it does, stderr shows the text with a mark below the column of the mistake.
    """
    try:
        return parse(text, started)
    except FilterError as error:
        before = len(printable(text[: error.column - 1], 2000))
        print(f"  {printable(text, 2000)}\n  {' ' * before}^", file=sys.stderr)
        raise
