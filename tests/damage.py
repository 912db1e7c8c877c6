"""Damage by chance: bytes of a file, and members of the JSON in a capture. The same chance makes the same damage."""

import contextlib
import json

LINES = 60  # taken from a capture
VALUES = [None, True, -1, 0, 1.5, 10**25, 1e308, "", "a", [], {}, [[]], {"": None}, "\ud800", "\u202e\x00", "é" * 300]
TEXTS = [
    "",
    "\x00",
    "NaN",
    "1e999",
    "-0",
    "{",
    "[",
    '"',
    '{"jsonrpc":"2.0"',
    "9" * 5000,
    "\ufeff{}",
    "[]",
    "[[]]",
    "null",
]
PIECES = [
    *(b"\n", b"\0", b'"', b"\\", b"{", b"}", b"[", b"]"),
    *(b",", b":", b"null", b"true", b"-1", b"1e999", b"9" * 40, b"\xff"),
    *(b"\\ud800", b"\\u0000", b"\xef\xbb\xbf", b"\r"),
    *(b"\x1b]0;x\x07", b"\xe2\x80\xae", b"[" * 300, b'{"a":' * 300, b"NaN"),
    *(b'"ch":', b'"t":', b'"raw":', b'"b64":', b'"more":true,', b'"cut":true,', b'"id":', b'"method":', b'"_meta":'),
]  # fmt: skip


def nested(levels, kind):
    """Return a value as text, nested this many levels deep."""
    return '{"a":' * levels + "1" + "}" * levels if kind else "[" * levels + "]" * levels


def spoiled(value, chance):
    """Return a JSON value in which one member or element has another type, is missing, doubled, or nested deeply."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice(list(value))
        fault = chance.randrange(8)
        if fault == 0:
            return {key: inner for key, inner in value.items() if key != name}
        if fault == 1:
            return {
                chance.choice(["", "\ud800", "_meta", "id", "method"]) if key == name else key: inner
                for key, inner in value.items()
            }
        return value | {name: spoiled(value[name], chance)}
    if isinstance(value, list) and value and chance.random() < 0.7:
        place = chance.randrange(len(value))
        return [*value[:place], spoiled(value[place], chance), *value[place + chance.randrange(2) :]]
    if isinstance(value, str) and value[:1] in "{[" and chance.random() < 0.8:
        try:
            return json.dumps(spoiled(json.loads(value), chance))
        except (ValueError, RecursionError):
            return value
    return chance.choice(VALUES)


def spoiled_line(line, chance):
    """Return a line of a capture with a fault in it."""
    fault = chance.randrange(10)
    if fault == 0:
        raw = bytearray(line)
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
        return bytes(raw)
    if fault == 1:
        return line[: chance.randrange(len(line))]
    record = json.loads(line)
    if not isinstance(record, dict):
        return line
    if fault < 5 and isinstance(record.get("raw"), str):
        text = record["raw"]
        if fault == 2:
            text = chance.choice(TEXTS)
        else:
            levels = chance.choice([100, 250, 260, 500, 900, 960, 990, 1010, 1500, 2000])
            place = [at for at in range(len(text)) if text.startswith(":", at)] or [0]
            at = chance.choice(place) + 1
            text = text[:at] + nested(levels, chance.randrange(2)) + text[text.find(",", at) :]
        return json.dumps(record | {"raw": text}).encode()
    if "raw" in record and chance.random() < 0.7:
        return json.dumps(
            record | {"raw": json.dumps(record["raw"]) if fault == 5 else spoiled(record["raw"], chance)}
        ).encode()
    return json.dumps(spoiled(record, chance)).encode()


def hostile(lines, chance, most=LINES):
    """Return up to `most` lines of a capture with one to five faults in them, rarely in the header."""
    first = chance.randrange(max(len(lines) - most, 1)) if chance.random() < 0.5 else 0
    found = [lines[0], *lines[max(first, 1) : first + most]]
    for _ in range(chance.randint(1, 5)):
        place = chance.randrange(len(found)) if chance.random() < 0.1 else chance.randrange(1, len(found))
        fault = chance.randrange(8)
        if fault == 0:
            found.insert(place or 1, found[place])
        elif fault == 1:
            del found[place or 1]
        elif found[place]:
            with contextlib.suppress(ValueError, RecursionError):
                found[place] = spoiled_line(found[place], chance)
        if len(found) < 3:
            break
    return b"\n".join(found) + b"\n"


def patches(data, chance):
    """Return the bytes with one to eight patches: bits, inserts, deletions, copies, pieces of JSON."""
    for _ in range(chance.randint(1, 8)):
        at = chance.randrange(len(data) + 1)
        end = min(at + int(2 ** chance.uniform(0, 10)), len(data))
        kind = chance.randrange(7)
        if kind == 0 and at < len(data):
            data = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        elif kind == 1:
            data = data[:at] + chance.choice(PIECES) + data[at:]
        elif kind == 2:
            data = data[:at] + data[end:]
        elif kind == 3:
            data = data[:end] + data[at:end] * chance.randint(1, 3) + data[end:]
        elif kind == 4:
            data = data[:at] + chance.choice(PIECES) + data[end:]
        elif kind == 5:
            data = data[:at] + chance.randbytes(end - at) + data[end:]
        else:
            other = chance.randrange(len(data) + 1)
            data = data[:at] + data[other : other + end - at] + data[end:]
    return data
