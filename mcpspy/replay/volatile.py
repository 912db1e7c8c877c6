"""Which differences are probably new in each run: times, durations, ids, random values.

This is a guess from the form of the values, for advice only (R-15). What is ignored is what the user names, or what
differed between runs of one server (`mcpspy.replay.learn`).
"""

import re
from typing import Any

from mcpspy.replay.differences import Difference

_LONGEST = 100_000  # characters of a text that is examined
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
_EPOCH = r"[12]\d{9}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?"  # s, ms, µs or ns, since 2001
_NEW = re.compile(
    "|".join(
        (
            r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b",  # RFC 9562
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?(?!\w)",  # RFC 3339
            r"\b\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?\b",
            rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? (?:\d{{1,2}} {_MONTH}|{_MONTH} \d{{1,2}}),?(?: \d{{4}})?\b",
            rf"\b{_EPOCH}\b",
            r"\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|secs?|seconds?|milliseconds?|minutes?)\b",
            r"\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{8,}\b",
            r"\b(?=[A-Za-z_-]{0,60}\d)(?=[\d_-]{0,60}[A-Za-z])[\w-]{20,}\b",
        )
    )
)
_NUMBER = re.compile(_EPOCH)
_MANY_DIGITS = 10  # digits of a fraction that was measured or random
_WORDS = frozenset(
    "at time timestamp date datetime now elapsed took duration latency uptime ms".split()
    + "id uuid guid nonce random seed token pid etag".split()
)
_REVISIONS = frozenset(("protocolVersion", "supportedVersions"))  # dates that are not times
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")


def looks_volatile(difference: Difference) -> bool:
    """Return whether both values exist, and differ only in what is probably new in each run."""
    one, other = difference.recorded, difference.observed
    if _REVISIONS.intersection(difference.path):
        return False
    if isinstance(one, str) and isinstance(other, str):
        return _is_named(difference) or _alike(one, other)
    if _is_number(one) and _is_number(other):
        return _is_named(difference) or all(_is_moment(value) for value in (one, other))
    return False


def _alike(one: str, other: str) -> bool:
    """Return whether two texts are equal except for times, ids and similar values."""
    if max(len(one), len(other)) > _LONGEST:
        return False
    (first, times), (second, _) = _NEW.subn("\0", one), _NEW.subn("\0", other)
    return times > 0 and first == second


def _is_named(difference: Difference) -> bool:
    """Return whether the name of the member shows that its value is volatile."""
    names = [step for step in difference.path if isinstance(step, str)]
    return (
        bool(names) and difference.path[-1] == names[-1] and bool(_WORDS & {*map(str.lower, _WORD.findall(names[-1]))})
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_moment(value: float) -> bool:
    """Return whether a number may be a time since 1970, or has as many digits as measured or random values."""
    text = repr(value)
    return _NUMBER.fullmatch(text) is not None or len(text.partition(".")[2]) >= _MANY_DIGITS
