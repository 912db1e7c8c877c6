"""A gate file: its tables, their keys, and the gates that are compiled from them.

    seed = 7

    [[gate]]
    name = "slow and flaky search"
    when = 'method:tools/call name:search* from:client'
    delay = "2s"
    chance = 0.2

A mistake is reported in one line: file, line, column, what is wrong, what to do.
"""

import os
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from mcpspy.errors import CaptureError, GateError
from mcpspy.foreign_file import read_foreign
from mcpspy.gate.check import BOUNDS, GATES, TEXTS, count_texts
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate_files import values
from mcpspy.gate_files.places import Places
from mcpspy.gate_files.values import Reader, instead, shown
from mcpspy.gate_files.when import compile_when
from mcpspy.toml_text import toml_values

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
            what = f"no frame waits here; use reorder together with {', '.join(_WAITING[:-1])} or {_WAITING[-1]}"
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
        from mcpspy.replay.script import load  # takes 0.25 s, and only this action needs it

        path = os.path.join(os.path.dirname(os.path.abspath(self._path)), os.path.expanduser(name))
        try:
            load(path, lambda _: None)  # its notices are shown when the capture is used
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
