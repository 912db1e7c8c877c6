"""The keys of the filter language: what their values mean for a row, and the traces of matching rows in their lines.

Each key parses one value at a time. If a value is invalid, it raises a ValueError that states what is valid. A response
has the method and name of its request, so any line that may contain a response may match those.

A frame is usually JSON, which may contain letters as escapes. The line of the capture contains the frame as a JSON
string, which escapes the quotes and backslashes again. So a text is searched in the frame as received and with its
escapes decoded. Its trace contains only letters that have one form in all of these: no quotes, backslashes, slashes
(some peers escape them) or control characters, and, if case is ignored, no letters beyond ASCII that have two cases. A
line with a Unicode escape may hide anything; code that compares traces must check for that.
"""

import fnmatch
import json
import re
from collections.abc import Callable, Collection
from datetime import datetime, timedelta, tzinfo
from fractions import Fraction
from operator import eq, ge, gt, le, lt

from mcpspy.filters.tree import Test, Trace, Value
from mcpspy.moments import shown, typed
from mcpspy.rules import FORMER, RULES, SEVERITIES, current
from mcpspy.spec.revisions import Revision
from mcpspy.text import suggestion
from mcpspy.timeline import Row
from mcpspy.wire.jsonrpc import Id


def folded(text: str) -> str:
    """Return `text` in lower case, except the two letters (kelvin sign, İ) that would become ASCII."""
    return text.lower() if text.isascii() else _FOLDED.sub(lambda match: match[0].lower(), text)


_FOLDED = re.compile("[^\u0130\u212a]+")
_SHORT = {'\\"': '"', "\\/": "/", "\\n": "\n", "\\t": "\t", "\\r": "\r", "\\b": "\b", "\\f": "\f"}
_LONG = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


def unescaped(text: str) -> str:
    """Return `text` with the escapes of JSON strings decoded (RFC 8259, 7)."""
    return "\\".join(map(_without_escapes, text.split("\\\\")))


def _without_escapes(text: str) -> str:
    if "\\" in text:
        for escape, letter in _SHORT.items():
            text = text.replace(escape, letter)
    if "\\u" in text:
        text = _LONG.sub(lambda match: str(json.loads(f'"{match[0]}"')), text)
    return text


def row_text(row: Row) -> str:
    """Return the text that free text is searched in: the frame as received, or the text of a row without one."""
    return (row.raw + row.tail).decode(errors="replace") if row.raw else row.text or ""


def smart(text: str) -> Callable[[str], str]:
    """Return the function that folds texts: lower case, or no change if `text` has capitals (as in ripgrep)."""
    return str if any(letter.isupper() for letter in text) else folded


def contains(text: str) -> Callable[[str], bool]:
    """Return a test whether a frame contains a text, as received or with its escapes decoded."""
    case = smart(text)
    wanted = case(text)
    hidden = any(letter in wanted for letter in ("\\", *_SHORT.values()))
    escape = "\\" if hidden else "\\u"  # what may hide a letter of it

    def test(found: str) -> bool:
        if wanted in found:  # as typed: no folding needed
            return True
        return wanted in case(found) or (escape in found and wanted in case(unescaped(found)))

    return test


def occurrences(texts: Collection[str]) -> Callable[[str], list[tuple[int, int]]]:
    """Return a function that returns where a line has one of some texts, in their order: the starts and the ends."""
    wanted = [(smart(text), re.compile(re.escape(smart(text)(text)))) for text in texts if text]
    return lambda line: sorted({match.span() for case, text in wanted for match in text.finditer(case(line))})


def trace(text: str) -> Trace:
    """Return the bytes of a line with `text` in its frame: those that are neither escaped nor have two cases."""
    sensitive = smart(text) is str
    kept = (letter if letter.isascii() or sensitive or letter.upper() == letter.lower() else "\n" for letter in text)
    return tuple(run.encode().lower() for run in _ESCAPED.split("".join(kept)) if run)


_ESCAPED = re.compile('["\\\\/\x00-\x1f\ud800-\udfff]+')


def glob(value: Value) -> Callable[[str], bool]:
    """Return a test whether a whole text matches the value; unless quoted, `*` is any text in it and `?` any letter."""
    case = smart(value.text)
    wanted = case(value.text)
    if value.quoted or not WILD.search(wanted):
        return lambda text: case(text) == wanted
    whole = re.compile(fnmatch.translate(wanted.replace("[", "[[]")))  # without backtracking
    return lambda text: whole.match(case(text)) is not None


WILD = re.compile(r"[*?]+")
"""The wildcards in a glob."""


KINDS = (
    *"request notification result error invalid undecoded stderr http event end-of-stream".split(),
    *"gap signal gates end".split(),
)
SENDERS = ("client", "server", "mcpspy")
STATUSES = (
    *("ok", "error", "tool-error", "not-decoded", "pending", "unanswered", "cancelled", "held", "dropped", "failed"),
    *("refused", "broken", "timed-out", "server-exit", "abandoned", "in-doubt", "open"),
)
"""The statuses and the outcomes of requests, and `failed`, which sums up some of them."""
_TIMES = {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_SIZES = {"": 1, "b": 1, "kb": 1_000, "mb": 1_000_000, "kib": 1 << 10, "mib": 1 << 20}

Meaning = tuple[Test, tuple[Trace, ...]]
_ANY: tuple[Trace, ...] = ((),)  # the lines decide nothing
_OF_RESPONSES: tuple[Trace, ...] = ((b"result",), (b"error",))  # what they have from their request is not on their line
_MEMBERS: dict[str, Trace] = {
    "request": (b"method",),
    "notification": (b"method",),
    "result": (b"result",),
    "error": (b"error",),
}
_SIGN = re.compile(r"[<>]=?")
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {">": gt, ">=": ge, "<": lt, "<=": le, "": eq}


def _text(value: Value, _: datetime) -> Meaning:
    fits = contains(value.text)
    return (lambda row: fits(row_text(row))), (trace(value.text),)


def _texts(get: Callable[[Row], str | None], elsewhere: tuple[Trace, ...]) -> "Reading":
    """Return the reading of a key whose value is a whole text.

    `elsewhere` are the traces of rows whose value comes from another line.
    """

    def read(value: Value, _: datetime) -> Meaning:
        fits = glob(value)
        parts = [value.text] if value.quoted else WILD.split(value.text)
        runs = tuple(run for part in parts for run in trace(part))

        def test(row: Row) -> bool:
            found = get(row)
            return found is not None and fits(found)

        return test, (runs, *elsewhere)

    return read


def _names(get: Callable[[Row], str | None], names: tuple[str, ...], traces: dict[str, Trace]) -> "Reading":
    """Return the reading of a key whose value is one of a few names."""

    def read(value: Value, _: datetime) -> Meaning:
        chosen = _choose(value, names)
        return (lambda row: get(row) in chosen), tuple(traces.get(name, ()) for name in chosen)

    return read


def _status(value: Value, _: datetime) -> Meaning:
    chosen = _choose(value, STATUSES)
    if "error" in chosen:
        chosen |= {"tool-error"}
    failed = "failed" in chosen

    def test(row: Row) -> bool:
        return row.status in chosen or row.outcome in chosen or (failed and row.failed)

    return test, _ANY


def _choose(value: Value, names: Collection[str], groups: Collection[str] = ()) -> frozenset[str]:
    fits = glob(value)
    chosen = frozenset(name for name in names if fits(name))
    if not chosen:
        raise ValueError(suggestion(value.text, (*names, *groups), f"there are {', '.join(groups or names)}"))
    return chosen


def _rule(value: Value, _: datetime) -> Meaning:
    groups = dict.fromkeys(rule.partition("/")[0] for rule in RULES)
    named = _choose(Value(f"{value.text}/*") if value.text in groups else value, (*RULES, *FORMER), groups)
    chosen = frozenset(map(current, named))
    return (lambda row: any(finding.rule in chosen for finding in row.findings)), _ANY


def _severity(value: Value, _: datetime) -> Meaning:
    sign, name = _comparison(value)
    bounds = [-SEVERITIES.index(bound) for bound in _choose(Value(name), SEVERITIES)]  # the first is the worst
    chosen = {
        severity
        for place, severity in enumerate(SEVERITIES)
        if any(_COMPARISONS[sign](-place, bound) for bound in bounds)
    }
    return (lambda row: any(finding.severity in chosen for finding in row.findings)), _ANY


def _comparison(value: Value) -> tuple[str, str]:
    """Return the sign of a comparison, if there is one, and the text after it."""
    sign = _SIGN.match(value.text)
    return (sign[0], value.text[sign.end() :]) if sign else ("", value.text)


def _id(value: Value, _: datetime) -> Meaning:
    wanted = id_of(value)
    return ((lambda row: row.id == wanted) if wanted else _string_id(value)), _ANY


def id_of(value: Value) -> Id | None:
    """Return the one id that a value of the key `id` stands for; None for a glob for strings."""
    if value.quoted:
        return Id("string", value.text)
    if value.text == "null":
        return Id("null", "null")
    return Id("number", value.text) if _NUMBER.fullmatch(value.text) else None


def _string_id(value: Value) -> Test:
    fits = glob(value)
    return lambda row: row.id is not None and row.id.kind == "string" and fits(row.id.token)


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")


Amounts = tuple[tuple[int, ...], int]
"""The amount that a text stands for, and the size of one unit in its last digit; a time that clocks repeat has two."""
Bounds = tuple[int | None, int | None]
"""The minimum and the maximum; None for a bound that does not exist."""


def _amounts(get: Callable[[Row], int | None], read_amounts: Callable[[str, datetime], Amounts]) -> "Reading":
    """Return the reading of a key whose value is a number: as precise as it is written, a comparison, or a range."""

    def read(value: Value, started: datetime) -> Meaning:
        tests = [_within(get, it) for it in _bounds(value, lambda text: read_amounts(text, started))]
        return (tests[0] if len(tests) == 1 else lambda row: any(test(row) for test in tests)), _ANY

    return read


def _within(get: Callable[[Row], int | None], bounds: Bounds) -> Test:
    least, most = bounds

    def test(row: Row) -> bool:
        found = get(row)
        return found is not None and (least is None or least <= found) and (most is None or found <= most)

    return test


def _bounds(value: Value, read_amounts: Callable[[str], Amounts]) -> list[Bounds]:
    """Return the amounts that a value allows: all within one of these bounds.

    A comparison or a range with a time that clocks repeat begins with the first one and ends with the last one.
    """
    low, dots, high = value.text.partition("..")
    if dots:
        return [(read_amounts(low)[0][0], read_amounts(high)[0][-1])]
    sign, text = _comparison(value)
    amounts, step = read_amounts(text)
    if not sign:
        return [(amount, amount + step - 1) for amount in amounts]
    if sign.startswith(">"):
        return [(amounts[0] + (sign == ">"), None)]
    return [(None, amounts[-1] - (sign == "<"))]


def sizes(value: Value) -> Bounds:
    """Return the minimum and maximum in bytes that a value of the key `size` allows."""
    return _bounds(value, _size)[0]


def _size(text: str) -> Amounts:
    return _quantity(text, _SIZES)


def _quantity(text: str, units: dict[str, int]) -> Amounts:
    """Return a number with a unit, and the size of one unit in its last digit."""
    match = _QUANTITY.fullmatch(text.lower())
    if not match or match[3] not in units:
        names = ", ".join(filter(None, units))
        raise ValueError(f"the units are {names}" if match else f"it takes a number and a unit: {names}")
    if len(match[1]) > _DIGITS:
        raise ValueError(f"that is too large: {_DIGITS} digits are the most")
    if len(match[2] or "") > _PLACES:
        raise ValueError(f"that is too exact: {_PLACES} digits behind the point are the most")
    step = Fraction(units[match[3]], 10 ** len(match[2] or ""))
    return (round(int(match[1] + (match[2] or "")) * step),), max(round(step), 1)


_QUANTITY = re.compile(r"([0-9]+)(?:\.([0-9]+))?([a-z]*)")
_DIGITS, _PLACES = 18, 9  # of a number, and after its point: int() takes seconds for much longer ones


def _moment(text: str, started: datetime) -> Amounts:
    """Return the nanoseconds from the start of a capture to a moment, and the precision.

    The moment is a number of seconds, or a date or time of day or both; without a time zone it is local time.
    """
    if _QUANTITY.fullmatch(text):
        return _quantity(text, _TIMES | {"": _TIMES["s"]})
    match = _CLOCK.fullmatch(text.upper())
    if not match:
        raise ValueError(_NO_MOMENT)
    seconds = match["seconds"] or ""
    zone = datetime.fromisoformat(f"2000-01-01T00:00{match['zone']}").tzinfo if match["zone"] else None
    date = match["date"] or (started.astimezone(zone) if zone else shown(started)).date()
    try:
        moment = datetime.fromisoformat(f"{date}T{(match['clock'] or '0:00').zfill(5)}{seconds}")
        since = _since(started, moment, zone)
        if not match["clock"]:  # a day may have 23 or 25 hours
            return since[:1], _since(started, moment + timedelta(days=1), zone)[0] - since[0]
    except (ValueError, OverflowError):  # a date that does not exist
        raise ValueError(_NO_MOMENT) from None
    return since, 10 ** (9 - max(len(seconds) - len(":00."), 0)) if seconds else 60 * 10**9


def _since(started: datetime, moment: datetime, zone: tzinfo | None) -> tuple[int, ...]:
    """Return the nanoseconds from the start of a capture to a moment in a time zone, or in local time."""
    meant = (moment.replace(tzinfo=zone),) if zone else typed(moment)
    return tuple((it - started) // timedelta(microseconds=1) * 1000 for it in meant)


_CLOCK = re.compile(
    r"(?=.)(?P<date>\d{4}-\d\d-\d\d)?"
    r"(?:(?:^|T)(?P<clock>(?:[01]?\d|2[0-3]):[0-5]\d)(?P<seconds>:[0-5]\d(?:\.\d{1,6})?)?"
    r"(?P<zone>Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)?)?",
    re.ASCII,
)
_NO_MOMENT = "it takes seconds since the start, a time of day (19:15:02) or a date (2026-11-20T19:15)"

Reading = Callable[[Value, datetime], Meaning]
KEYS: dict[str, Reading] = {
    "method": _texts(lambda row: row.method, _OF_RESPONSES),
    "name": _texts(lambda row: row.name, _OF_RESPONSES),
    "id": _id,
    "from": _names(lambda row: row.sender, SENDERS, {}),
    "kind": _names(lambda row: row.kind, KINDS, _MEMBERS),
    "status": _status,
    "revision": _names(lambda row: row.revision, tuple(revision.value for revision in Revision), {}),
    "session": _texts(lambda row: row.session, _ANY),
    "rule": _rule,
    "severity": _severity,
    "latency": _amounts(lambda row: row.latency, lambda text, _: _quantity(text, _TIMES)),
    "size": _amounts(lambda row: row.size, lambda text, _: _size(text)),
    "time": _amounts(lambda row: row.t, _moment),
    "text": _text,
}
