"""A compared exchange in words: its title, its outcome and its values, clipped, each on one line.

Servers may send any text, so it goes through `printable`, which returns one line without control characters.
"""

from collections import Counter
from collections.abc import Sequence

from mcpspy.replay.compare.sessions import OUTCOMES, Compared
from mcpspy.replay.compare.values import Difference, excerpt
from mcpspy.text import printable

_WIDTH = 160  # characters of a value
_CONTEXT = 30  # characters of the common beginning that are shown before the difference


def headline(it: Compared) -> str:
    """Return the outcome of an exchange, and the recorded line on which it began, as one line."""
    return f"#{it.request} {outcome_text(it)}" if it.request else outcome_text(it)


def outcome_text(it: Compared) -> str:
    """Return the outcome of an exchange, on one line."""
    why = f" ({printable(it.reason, 200)})" if it.reason else ""
    return f"{subject(it)}: {it.outcome}{why}"


def subject(it: Compared) -> str:
    """Return the method and name."""
    if it.method is None:
        said = [side for one in it.differences for side in (one.recorded, one.observed) if isinstance(side, dict)]
        answers = any("result" in side or "error" in side for side in said)
        return "a response to no request" if answers else "a line that is not a message"
    return printable(it.method, 60) + (f" {printable(it.name, 60)}" if it.name else "")


def value_lines(difference: Difference) -> list[str]:
    """Return the two values of a difference, from shortly before the first difference on."""
    recorded, observed = sides(difference)
    where = printable(difference.pointer, 200) or "(the whole message)"
    return [f"    {where}", f"      recorded  {recorded}", f"      observed  {observed}"]


def sides(difference: Difference, limit: int = _WIDTH) -> tuple[str, str]:
    """Return the two values of a difference as JSON, each on one line of at most `limit` characters."""
    texts = [excerpt(value, 1 << 20) for value in (difference.recorded, difference.observed)]
    common = next((n for n, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), 0)
    if common > 2 * _CONTEXT and max(map(len, texts)) > limit:
        texts = ["…" + text[common - _CONTEXT :] for text in texts]
    return printable(texts[0], limit), printable(texts[1], limit)


def totals(compared: Sequence[Compared]) -> dict[str, int]:
    """Return the number of exchanges with each outcome."""
    found = Counter(it.outcome for it in compared)
    return {outcome: found[outcome] for outcome in OUTCOMES}
