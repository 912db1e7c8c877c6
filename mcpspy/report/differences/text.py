"""What a replay found, for people and for programs: text, JSON, JUnit, commands for GitHub.

What servers say may hold anything: in all but JSON it goes through `printable`, which leaves one line without controls.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson

from mcpspy.replay.compare.sessions import FINE, OUTCOMES, Compared
from mcpspy.replay.compare.values import ABSENT, Difference, excerpt
from mcpspy.report.github import command
from mcpspy.report.junit import Case, document
from mcpspy.text import plural, printable

_WIDTH = 160  # characters of a value
_LEVELS = 200  # of JSON that Python cannot write as it is
_CONTEXT = 30  # characters of what two values have in common before the place where they part

Report = Callable[[str, Sequence[Compared]], str]
"""A format: the path of the recorded capture, and what was compared."""


def as_text(path: str, compared: Sequence[Compared]) -> str:
    """For people: each difference with its two values, one above the other, and a line of totals."""
    lines = []
    for it in compared:
        if it.outcome not in FINE:
            lines.append(f"✗ {headline(it)}")
            for difference in it.differences:
                lines += value_lines(difference)
    skipped = [it for it in compared if it.outcome == "skipped"]
    lines += [f"- {headline(it)}" for it in skipped]
    return "\n".join([*lines, f"{printable(path, 200)}: {_totals_text(compared)}"]) + "\n"


def headline(it: Compared) -> str:
    """What became of an exchange, on one line."""
    line = f"#{it.request} " if it.request else ""
    why = f" ({printable(it.reason, 200)})" if it.reason else ""
    return f"{line}{subject(it)}: {it.outcome}{why}"


def subject(it: Compared) -> str:
    """The method and name."""
    if it.method is None:
        said = [side for one in it.differences for side in (one.recorded, one.observed) if isinstance(side, dict)]
        answers = any("result" in side or "error" in side for side in said)
        return "an answer to nothing" if answers else "a line that is no message"
    return printable(it.method, 60) + (f" {printable(it.name, 60)}" if it.name else "")


def value_lines(difference: Difference) -> list[str]:
    """The two values of a difference, from a little before they part."""
    recorded, observed = sides(difference)
    where = printable(difference.pointer, 200) or "(the whole message)"
    return [f"    {where}", f"      recorded  {recorded}", f"      observed  {observed}"]


def sides(difference: Difference) -> tuple[str, str]:
    """The two values of a difference as JSON, each on one line and clipped."""
    texts = [excerpt(value, 1 << 20) for value in (difference.recorded, difference.observed)]
    common = next((n for n, (one, other) in enumerate(zip(*texts, strict=False)) if one != other), 0)
    if common > 2 * _CONTEXT and max(map(len, texts)) > _WIDTH:
        texts = ["…" + text[common - _CONTEXT :] for text in texts]
    return printable(texts[0], _WIDTH), printable(texts[1], _WIDTH)


def totals(compared: Sequence[Compared]) -> dict[str, int]:
    """How many there are of each outcome."""
    found = Counter(it.outcome for it in compared)
    return {outcome: found[outcome] for outcome in OUTCOMES}


def _totals_text(compared: Sequence[Compared]) -> str:
    told = [f"{number:,} {outcome}" for outcome, number in totals(compared).items() if number]
    return f"{plural(len(compared), 'comparison')}: {', '.join(told) or 'nothing to compare'}"


def as_json(path: str, compared: Sequence[Compared]) -> str:
    """Everything on one line."""
    del path
    exchanges = [exchange_fields(it) for it in compared]
    return to_json({"exchanges": exchanges, "totals": totals(compared)}) + "\n"


def exchange_fields(it: Compared) -> dict[str, Any]:
    """What became of an exchange, as programs read it."""
    fields = {"request": it.request, "method": it.method, "name": it.name, "outcome": it.outcome}
    return fields | {"differences": [difference_fields(one) for one in it.differences], "reason": it.reason}


def difference_fields(difference: Difference) -> dict[str, Any]:
    """A difference as programs read it: where there is no value there is no member."""
    sides = {"recorded": difference.recorded, "observed": difference.observed}
    return {"pointer": difference.pointer} | {name: value for name, value in sides.items() if value is not ABSENT}


def to_json(value: Any) -> str:
    """Compact JSON of values that peers sent: a lone surrogate or a long number is one too."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        pass
    try:
        return json.dumps(value, separators=(",", ":"))
    except RecursionError:
        return json.dumps(_cut(value, _LEVELS), separators=(",", ":"))


def _cut(value: Any, levels: int) -> Any:
    """A value with a sentence in place of what is nested more deeply than that."""
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return "what is nested too deeply to show"
    if isinstance(value, dict):
        return {name: _cut(inner, levels - 1) for name, inner in value.items()}
    return [_cut(inner, levels - 1) for inner in value]


def as_junit(path: str, compared: Sequence[Compared]) -> str:
    """A suite with a case for each exchange."""
    return document("mcpspy replay", [(path, map(_case, compared))])


def _case(it: Compared) -> Case:
    name = subject(it) + (f" #{it.request}" if it.request else "")
    if it.outcome == "skipped":
        return Case(name, "skipped", it.reason or "")
    if it.outcome in FINE:
        return Case(name)
    lines = [line for difference in it.differences for line in value_lines(difference)]
    return Case(name, "failure", headline(it), it.outcome, lines)


def as_github(path: str, compared: Sequence[Compared]) -> str:
    """A workflow command for each exchange that differs, which GitHub shows beside the line of the capture."""
    different = [it for it in compared if it.outcome not in FINE]
    return "".join(command("error", path, it.request, headline(it), "; ".join(_sentences(it))) for it in different)


def _sentences(it: Compared) -> Iterator[str]:
    for difference in it.differences[:10]:
        recorded, observed = sides(difference)
        where = f"{printable(difference.pointer, 200)}: " if difference.pointer else ""
        yield f"{where}recorded {recorded}, observed {observed}"


FORMATS: dict[str, Report] = {"text": as_text, "json": as_json, "junit": as_junit, "github": as_github}
"""By the name that `--format` takes."""
