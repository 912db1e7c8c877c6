"""The captures of the oracle: golden ones, sessions of the rules, and damaged and hostile ones that a seed makes."""

import base64
import json
import random
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mcpspy.capture.records import Close, End, Frame, Gap, Open, Record, Signal
from tests.damage import hostile, patches
from tests.hostile_text import EVERY_MEMBER, planted
from tests.rules.examples import records
from tests.rules.test_sessions import CLEAN, FAULTY, read
from tests.timelines import CAPTURES

PATCHED, SPOILED, PLANTED = 120, 120, 60
"""The numbers of captures with damaged bytes, with damaged JSON, and with hostile text."""
LINES = 16
"""Lines of a damaged capture, besides its header."""
_HEADER = {
    "mcpspy": 1, "id": "00112233445566778899aabbccddeeff", "started": "2026-11-20T19:15:00.123456Z",
    "tool": "mcpspy 0.1.0", "name": "weather", "argv": ["node", "weather.js"], "env": ["HOME", "PATH"],
}  # fmt: skip


def write(folder: Path) -> dict[str, Path]:
    """Write all captures below a folder, and return their paths by name."""
    found = {}
    whole = [*golden(), *sessions()]
    for name, data in [*whole, *damaged([data.splitlines() for _, data in whole])]:
        found[name] = folder / f"{name}.jsonl"
        found[name].parent.mkdir(parents=True, exist_ok=True)
        found[name].write_bytes(data)
    return found


def golden() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the bytes of each capture of a real session."""
    for path in sorted(CAPTURES.glob("*.jsonl")):
        yield f"golden/{path.stem}", path.read_bytes()


def sessions() -> Iterator[tuple[str, bytes]]:
    """Yield each session of `tests/rules/sessions` as a capture."""
    for path in [*CLEAN, *FAULTY]:
        yield f"{path.parent.name}/{path.stem}", capture_of(records(read(path)[0]))


def damaged(sources: list[list[bytes]]) -> Iterator[tuple[str, bytes]]:
    """Yield the damaged and hostile captures; the damaged ones are made from the lines of whole ones."""
    for number in range(PATCHED):
        chance = random.Random(f"patched {number}")  # noqa: S311 (no secret)
        header, *rest = chance.choice(sources)
        first = chance.choice([0, chance.randrange(len(rest))])
        yield f"patched/{number:03}", header + b"\n" + patches(b"\n".join(rest[first : first + LINES]) + b"\n", chance)
    for number in range(SPOILED):
        chance = random.Random(f"spoiled {number}")  # noqa: S311 (no secret)
        yield f"spoiled/{number:03}", hostile(chance.choice(sources), chance, LINES)
    for number in range(PLANTED):
        chance = random.Random(f"planted {number}")  # noqa: S311 (no secret)
        name = chance.choice(list(EVERY_MEMBER))
        yield f"planted/{number:03}", planted(name, lambda it, chance=chance: chance.sample(it, min(len(it), 12)))


def capture_of(found: Iterable[Record]) -> bytes:
    """Return records as a capture."""
    lines = list(map(_line, found))
    transport = "http" if any("head" in line for line in lines) else "stdio"
    return b"".join(json.dumps(line).encode() + b"\n" for line in [_HEADER | {"transport": transport}, *lines])


def _line(record: Record) -> dict[str, Any]:
    fields = {
        name: value
        for name, value in asdict(record).items()
        if name != "n" and value is not None and value is not False
    }
    kind = type(record).__name__.lower()
    match record:
        case Open() | Gap() | Close():
            fields |= {"from": fields.pop("sender")} if "sender" in fields else {}
        case Frame(raw=raw):
            fields |= _text(fields.pop("raw", raw))
        case Signal():
            fields["forwarded"] = record.forwarded
        case End():
            exits = {name: fields.pop(name) for name in ("code", "signal") if name in fields}
            fields |= {"exit": exits or {"code": 0}} if not record.why else {}
    return {"kind": kind} | fields


def _text(raw: bytes) -> dict[str, str]:
    try:
        return {"raw": raw.decode()}
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(raw).decode()}
