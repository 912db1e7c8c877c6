"""A gate file: its tables, their keys and their filters, and the gates that are compiled from them.

    seed = 7

    [[gate]]
    name = "slow and flaky search"
    when = 'method:tools/call name:search* from:client'
    delay = "2s"
    chance = 0.2

A mistake is reported in one line: file, line, column, what is wrong, what to do. `tomllib` returns values without
places, so `Places` parses the text a second time, only as far as necessary: headers, keys, and the ends of values. This
happens after `tomllib` has accepted the text, so nothing is validated there. For unusual forms (`gate = [{...}]`,
escapes in keys) the place of the surrounding text is used. Places are offsets from 0.

`when` is a filter of `docs/filters.md`, but a gate has only one frame and must decide at once. So a term is allowed if
one frame is enough to evaluate it. A response has the method and name of its request, which the gate remembers. The
terms of a filter become the members of one object. All of them must hold. Two terms with the same key, brackets and
negations become objects within it.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn

from mcpspy.errors import CaptureError, ConfigError, FilterError, GateError
from mcpspy.filters import parse
from mcpspy.filters.terms import WILD, glob, id_of, sizes
from mcpspy.filters.tree import And, Node, Not, Or, Term, Value
from mcpspy.foreign_file import read_foreign
from mcpspy.gate.check import BOUNDS, GATES, TEXTS, count_texts
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate_files import values
from mcpspy.gate_files.values import Reader, instead, is_json_number, shown
from mcpspy.text import printable, series
from mcpspy.toml_text import toml_values

_PART = r"""[ \t]*(?:"(?:[^"\\\n]++|\\.)*+"|'[^'\n]*'|[^\s."'=\]\[#]+)[ \t]*"""
_KEY = re.compile(rf"{_PART}(?:\.{_PART})*")
_PARTS = re.compile(_PART)
_BLANK = re.compile(r"(?:\s++|#[^\n]*+)*+")
_SPACES = re.compile(r"[ \t]*")
_REST = re.compile(r"[^\n]*")
_STRING = re.compile(
    r"""
    \"{3} (?: [^"\\]++ | \\. | "{1,2}(?!") )*+ \"{3,5}+   # up to two quotes more belong to the text
    | '{3} .*? '{3} '{0,2}
    | " (?: [^"\\]++ | \\. )*+ "
    | ' [^']* '
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPES = {"u": 6, "U": 10, "x": 4}
"""The number of characters of an escape, by the letter after its backslash; all others have two."""
_CONTINUED = re.compile(r"\\[ \t]*\n\s*")


class Places:
    """The places of gates and their keys. Gates are counted from 0."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._gates: list[int] = []
        self._found: dict[tuple[int | None, str], tuple[int, int]] = {}
        for names, key, value in _statements(text):
            if names == ("gate",) and text.startswith("[[", key):
                self._gates.append(key)
            elif names[0] == "gate" and len(names) > 1 and self._gates:
                self._found.setdefault((len(self._gates) - 1, names[1]), (key, value))
            self._found.setdefault((None, names[0]), (key, value))

    def key(self, gate: int | None, name: str = "") -> int:
        """Return where a key begins; for a key that is missing, or no name, where its gate begins."""
        return self._place(gate, name)[0]

    def value(self, gate: int | None, name: str) -> int:
        """Return where the value of a key begins."""
        return self._place(gate, name)[1]

    def inside(self, gate: int | None, name: str, count: int) -> int:
        """Return the place of the character at index `count` of the text that is the value of a key."""
        at = self.value(gate, name)
        match = _STRING.match(self._text, at)
        if not match:
            return at
        quote = self._text[at]
        literal, multiline = quote == "'", self._text.startswith(quote * 3, at) and len(match[0]) >= 6
        at += 3 if multiline else 1
        if multiline and self._text.startswith("\n", at):
            at += 1
        for _ in range(count):
            at = at if literal else self._continued(at)
            escaped = not literal and self._text.startswith("\\", at)
            at += _ESCAPES.get(self._text[at + 1 : at + 2], 2) if escaped else 1
        return min(at if literal else self._continued(at), match.end() - 1)

    def line_and_column(self, at: int) -> tuple[int, int]:
        """Return a place as line and column, both counted from 1."""
        return self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)

    def _place(self, gate: int | None, name: str) -> tuple[int, int]:
        found = self._found.get((gate, name))
        if found:
            return found
        if gate is not None and gate < len(self._gates):
            return self._gates[gate], self._gates[gate]
        return self._found.get((None, "gate"), (0, 0))

    def _continued(self, at: int) -> int:
        """Return the place after a backslash that ends a line, and after the following spaces; else `at`."""
        match = _CONTINUED.match(self._text, at)
        return match.end() if match else at


def _statements(text: str) -> Iterator[tuple[tuple[str, ...], int, int]]:
    """Yield each header and key of a file: its names with the table's, where it begins, where its value begins."""
    table: tuple[str, ...] = ()
    at = _skip(_BLANK, text, 0)
    while at < len(text):
        start = at
        if text[at] == "[":
            table, _ = _key(text, _skip(re.compile(r"\[{1,2}"), text, at))
            at = _skip(_REST, text, at)
            yield table, start, start
        else:
            names, at = _key(text, at)
            at = _skip(_SPACES, text, at + 1)  # after the equals sign
            yield table + names, start, at
            at = _end(text, at)
        at = _skip(_BLANK, text, max(at, start + 1))


def _key(text: str, at: int) -> tuple[tuple[str, ...], int]:
    """Return the names of a dotted key, and where it ends."""
    match = _KEY.match(text, at)
    if not match:
        return ("",), at
    return tuple(part.strip(" \t").strip("\"'") for part in _PARTS.findall(match[0])), match.end()


def _end(text: str, at: int) -> int:
    """Return where a value ends: at the end of its line, unless a bracket is open or the line is in a string."""
    depth = 0
    while at < len(text):
        letter = text[at]
        if letter in "\"'" and (match := _STRING.match(text, at)):
            at = match.end()
            continue
        if letter == "#":
            at = _skip(_REST, text, at)
            continue
        if letter == "\n" and depth <= 0:
            break
        depth += (letter in "[{") - (letter in "]}")
        at += 1
    return at


def _skip(expected: re.Pattern[str], text: str, at: int) -> int:
    match = expected.match(text, at)
    return match.end() if match else at


_START = "1970-01-01T00:00:00Z"  # any time will do: no term that a gate allows depends on it
_KINDS = ("request", "notification", "result", "error")
_SENDERS = ("client", "server")


def compile_when(text: str) -> dict[str, Any]:
    """Return the `when` object of a filter. Raises GateError, whose column is the place in the filter."""
    try:
        tree = parse(text, _START).tree
    except FilterError as error:  # its message names the column in the filter, not in the file
        raise GateError(str(error).replace(f" at column {error.column}", "", 1), 1, error.column) from None
    return _when(tree)


def _when(node: Node) -> dict[str, Any]:
    if isinstance(node, And):
        return _merged(map(_when, node.parts))
    if isinstance(node, Or):
        return {"any": [_when(part) for part in node.parts]}
    if isinstance(node, Not):
        return {"not": _when(node.part)}
    return _term(node)


def _merged(parts: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return one object for parts that must all hold; a part with a key that is present already is kept separate."""
    whole: dict[str, Any] = {}
    apart = []
    for part in parts:
        if whole.keys() & part.keys() or "all" in part:
            apart.append(part)
        else:
            whole |= part
    return whole | {"all": apart} if apart else whole


def _term(term: Term) -> dict[str, Any]:
    if term.key not in _TERMS:
        sentence = (
            f"{printable(str(term), 60)} needs more than one frame to answer; a gate can ask for {series(list(_TERMS))}"
        )
        raise GateError(sentence, 1, term.column)
    try:
        found = [it for value in term.values for it in _TERMS[term.key](value)]
    except ValueError as error:
        raise GateError(str(error), 1, term.column) from None
    return {term.key: found[0] if len(found) == 1 else found}


def _text(value: Value) -> list[Any]:
    if not value.text:
        raise ValueError('every frame contains ""; name a text, or leave the term out')
    return [value.text]


def _glob(value: Value) -> list[Any]:
    if not value.text:
        raise ValueError("no method or name is empty; to ask for frames without one, negate the glob *")
    return [{"is": value.text} if value.quoted and WILD.search(value.text) else value.text]


def _id(value: Value) -> list[Any]:
    found = id_of(value)
    if found is None:
        return [["glob", value.text]]
    if found.kind == "number" and not is_json_number(found.token):
        raise ValueError(f'{found.token} is not a number in JSON; for an id that is a text write id:"{found.token}"')
    return [[found.kind, found.token]]


def _size(value: Value) -> list[Any]:
    least, most = sizes(value)
    if most is not None and most < max(least or 0, 0):
        raise ValueError(
            f"no frame has size:{printable(value.text, 40)}; the smaller number comes first, as in 1kb..2kb"
        )
    return [[least or 0, most]]


def _one_of(key: str, names: tuple[str, ...]) -> Callable[[Value], list[Any]]:
    def chosen(value: Value) -> list[Any]:
        found: list[Any] = list(filter(glob(value), names))
        if not found:
            raise ValueError(f"{key}:{value.text} never passes a gate; {key} is {series(names, 'or')}")
        return found

    return chosen


_TERMS: dict[str, Callable[[Value], list[Any]]] = {
    "method": _glob,
    "name": _glob,
    "id": _id,
    "from": _one_of("from", _SENDERS),
    "kind": _one_of("kind", _KINDS),
    "size": _size,
    "text": _text,
}
"""The allowed terms: by key, a function that converts a value. Raises ValueError if no frame has the value."""


TRANSPORTS = ("stdio", "http", "mitm")
"""The transports of frames: the relays of `wrap`, `proxy` and `mitm`; `mock` has one of the first two."""

LARGEST = 16 << 20
"""The size of the largest gate file in bytes; a file with a recorded result has at most a few MiB."""

ACTIONS: dict[str, Reader] = {
    "hold": values.duration,
    "throttle": values.rate,
    "edit": values.edits,
    "drop": values.true,
    "repeat": values.whole(*BOUNDS["repeat"]),
    "answer": values.answer,
    "answer-from": values.text,
    "send": values.texts,
    "cut": values.whole(*BOUNDS["cut"]),
    "garble": values.one_of("not-json", "invalid-utf8", "bom"),
    "close": values.true,
    "status": values.whole(*BOUNDS["status"]),
    "exit": values.whole(*BOUNDS["exit"]),
}
"""The actions, with the reader of each value; `delay` is used alone or with one of them."""

_MODIFIERS: dict[str, Reader] = {
    "delay": values.duration,
    "miss": values.one_of("forward", "nearest"),
    "chance": values.share,
    "after": values.whole(*BOUNDS["after"]),
    "times": values.whole(*BOUNDS["times"]),
    "reorder": values.true,
}
_KEYS: dict[str, Reader] = {"name": values.text, "when": values.text} | ACTIONS | _MODIFIERS
_ONLY = {
    "status": (("http", "mitm"), "status answers an HTTP request, and stdio has none; use answer, close or exit"),
    "exit": (("stdio",), "exit kills the server, which only 'wrap' and 'mock' on stdio start; use close or status"),
}
"""Actions that only some transports support: those transports, and what to do on others."""
_WAITING = ("hold", "delay", "throttle")
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


def compile_file(path: str, transport: str) -> list[dict[str, Any]]:
    """Compile the gates of a file, for a relay with one of `TRANSPORTS`. Raises GateError."""
    try:
        text = read_foreign(path, LARGEST, named=True).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise _at_byte(path, error) from None
    except OSError as error:
        what = f"cannot be read ({error.strerror}); check the path"
        raise GateError(what, 0, 0, path) from None
    try:
        return _GateFile(path, text).compiled(toml_values(text), transport)
    except GateError:
        raise
    except RecursionError:
        raise GateError("values are nested too deeply; take out some levels", 1, 1, path) from None
    except ValueError as error:  # from tomllib
        raise _syntax_error(path, text, error) from None


def _at_byte(path: str, error: UnicodeDecodeError) -> GateError:
    before = error.object[: error.start]
    line = before.rpartition(b"\n")[2].decode(errors="replace")
    what = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
    return GateError(what, before.count(b"\n") + 1, len(line) + 1, path)


def _syntax_error(path: str, text: str, error: ValueError) -> GateError:
    message = str(error)
    place = _PLACE.search(message)
    if place and place[1]:
        line, column = int(place[1]), int(place[2])
    elif place:
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    else:
        line, column = 1, 1
    what = message[: place.start()] if place else message
    hint = "write texts in quotes, and [[gate]] above each gate"
    return GateError(f"this is not valid TOML: {what[:1].lower()}{what[1:]}; {hint}", line, column, path)


class _GateFile:
    """One file; each method raises GateError with the place of the mistake."""

    def __init__(self, path: str, text: str) -> None:
        self._path = path
        self._places = Places(text)

    def compiled(self, found: dict[str, Any], transport: str) -> list[dict[str, Any]]:
        """Compile the gates of the whole file."""
        self._refuse_unknown(None, found, ("seed", "gate"))
        seed = {"seed": self._read(None, "seed", values.seed, found["seed"])} if "seed" in found else {}
        gates = found.get("gate", [])
        if not isinstance(gates, list) or not all(isinstance(gate, dict) for gate in gates):
            self._fail(self._places.key(None, "gate"), "gate must be a table in an array; write [[gate]] above each")
        if not gates:
            self._fail(0, "the file has no gate; write [[gate]] above each")
        if len(gates) > GATES:
            self._fail(self._places.key(GATES), f"the file has more than {GATES} gates; take out some")
        names: set[str] = set()
        compiled, texts = [], 0
        for number, gate in enumerate(gates):
            compiled.append(self._gate(number, gate, transport) | seed)
            name = compiled[-1]["name"]
            try:
                DeclaredGate(compiled[-1])  # the same test as for the gates of viewers
            except ValueError as error:
                self._fail(self._places.key(number), f"{str(error).removeprefix(f'gate {name}: ')}; take out some")
            if name in names:
                self._fail(self._places.value(number, "name"), f"two gates have the name {shown(name)}; rename one")
            names.add(name)
            texts += count_texts(compiled[-1]["when"])
            if texts > TEXTS:
                self._fail(
                    self._places.key(number), f"the filters of the file have more than {TEXTS} texts; take out some"
                )
        return compiled

    def _gate(self, number: int, gate: dict[str, Any], transport: str) -> dict[str, Any]:
        self._refuse_unknown(number, gate, _KEYS)
        read = {key: self._read(number, key, _KEYS[key], value) for key, value in gate.items() if key != "when"}
        chosen = [key for key in gate if key in ACTIONS]
        if len(chosen) > 1:
            what = f"{chosen[0]} and {chosen[1]} are two actions; make two gates of them"
            self._fail(self._places.key(number, chosen[1]), what)
        if not chosen and "delay" not in gate:
            what = f"the gate does nothing; give it an action: {', '.join(ACTIONS)} or delay"
            self._fail(self._places.key(number), what)
        self._check_company(number, gate, chosen)
        for key in chosen:
            if key in _ONLY and transport not in _ONLY[key][0]:
                self._fail(self._places.key(number, key), _ONLY[key][1])
        action = {key: read[key] for key in (*chosen, "delay") if key in read}
        if "answer-from" in action:
            action["answer-from"] = self._recording(number, action["answer-from"], read.get("miss", "forward"))
        return {"name": read.get("name", str(number + 1)), "when": self._when(number, gate), "action": action} | {
            key: read[key] for key in ("after", "times", "chance", "reorder") if key in read
        }

    def _check_company(self, number: int, gate: dict[str, Any], chosen: list[str]) -> None:
        """Refuse keys that have no effect without another key."""
        if "miss" in gate and chosen != ["answer-from"]:
            self._fail(self._places.key(number, "miss"), "miss says what answer-from does; use them together")
        if "reorder" in gate and not any(key in gate for key in _WAITING):
            what = f"no frame waits here; use reorder together with {series(_WAITING, 'or')}"
            self._fail(self._places.key(number, "reorder"), what)

    def _when(self, number: int, gate: dict[str, Any]) -> dict[str, Any]:
        """Compile the filter of a gate; without one, the gate names every frame."""
        text = gate.get("when", "")
        if not isinstance(text, str):
            what = f"when is {shown(text)}; write a filter in quotes, such as 'method:tools/call'"
            self._fail(self._places.value(number, "when"), what)
        try:
            return compile_when(text)
        except GateError as error:
            self._fail(self._places.inside(number, "when", error.column - 1), f"when: {error.what}")

    def _recording(self, number: int, name: str, miss: str) -> dict[str, str]:
        """Return the capture with the answers. It must be a capture that can be replayed."""
        from mcpspy.replay import settings
        from mcpspy.replay.script import load  # takes 0.25 s, and only this action needs it

        path = os.path.join(os.path.dirname(os.path.abspath(self._path)), os.path.expanduser(name))
        try:
            load(path, lambda _: None)  # its notices are shown when the capture is used
            settings.read(settings.place(path))
        except ConfigError as error:
            self._fail(self._places.value(number, "answer-from"), f"answer-from cannot use the settings: {error}")
        except (CaptureError, OSError, ValueError) as error:
            what = f"answer-from cannot use the capture: {error}; 'mcpspy ls' lists captures"
            self._fail(self._places.value(number, "answer-from"), what)
        return {"file": path, "miss": miss}

    def _read(self, gate: int | None, key: str, reader: Reader, value: Any) -> Any:
        try:
            return reader(value)
        except ValueError as error:
            self._fail(self._places.value(gate, key), f"{key}: {error}")

    def _refuse_unknown(self, gate: int | None, found: dict[str, Any], known: Iterable[str]) -> None:
        for key in found:
            if key not in known:
                what = f"{'a gate' if gate is not None else 'a gate file'} has no key {shown(key)}"
                self._fail(self._places.key(gate, key), f"{what}; {instead(key, list(known))}")

    def _fail(self, at: int, what: str) -> NoReturn:
        raise GateError(what, *self._places.line_and_column(at), self._path)
