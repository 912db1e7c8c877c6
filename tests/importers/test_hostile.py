"""Files of every form, damaged at random: the result is a capture or a one-line error."""

import json
import random

from mcpspy.errors import CaptureError
from mcpspy.timeline import final_rows
from tests import NIGHTLY
from tests.importers.files import AT, PING, PONG, brought, dumps, entry, fixture, flow, har
from tests.importers.test_claude import NEWER, OLDER
from tests.importers.test_inspector import ANSWER, fetch, message
from tests.importers.test_mcpsnoop import META, envelope

CASES = 5000 if NIGHTLY else 200
SOCKET = {"messages": [[1, True, PING, AT + 1.0, False, False]], "close_code": 1000, "close_reason": "bye"}
SAID = [{"type": "send", "time": AT, "opcode": 1, "data": "x"}]
FILES = [
    dumps(flow()) + dumps(flow(websocket=SOCKET | {"timestamp_end": AT + 2.0})) + dumps(flow()),
    fixture("weather.mitm"),
    har(entry(), entry(_webSocketMessages=SAID), entry()),
    fixture("weather.har"),
    json.dumps([message(response=ANSWER, duration=3)] * 3).encode(),
    json.dumps([fetch()] * 3).encode(),
    (OLDER + NEWER).encode(),
    META + envelope(2, "c2s", PING) + envelope(3, "s2c", PONG),
]
BITS = b'{ } [ ] " \\ , : null -1 1e999 99999999999999999999 NaN \xff true {} [] "" ~ 0:~ [:: \xef\xbb\xbf'.split()


def damaged(raw, chance):
    """Return a file with one to four faults: flipped bits, inserted words, removed, doubled or truncated parts."""
    raw = bytearray(raw)
    for _ in range(chance.randint(1, 4)):
        place, size = chance.randrange(len(raw) + 1), chance.randint(1, 80)
        fault = chance.randrange(6)
        if fault == 0 and place < len(raw):
            raw[place] ^= 1 << chance.randrange(8)
        elif fault == 1:
            raw[place:place] = chance.choice(BITS)
        elif fault == 2:
            raw[place : place + size % 12] = chance.choice(BITS)
        elif fault == 3:
            del raw[place : place + size]
        elif fault == 4:
            raw[place:place] = raw[place : place + size]
        elif chance.random() < 0.3:
            del raw[place:]
    return bytes(raw)


def test_whatever_is_in_a_file_the_end_is_a_capture_or_one_line(tmp_path):
    chance = random.Random(20260317)  # noqa: S311 (no secret)
    made, refused = 0, []
    for number in range(CASES):
        raw = damaged(chance.choice(FILES), chance)
        try:
            _, captures = brought(tmp_path / str(number), raw)
        except CaptureError as error:
            refused.append(str(error))
            continue
        for capture in captures:
            made += 1
            assert len(list(capture.records())) == len(list(final_records(capture)))
            list(final_rows(capture.records, live=False))
    assert made > CASES / 2
    assert len(refused) > CASES / 20
    assert not any("\n" in sentence for sentence in refused)


def final_records(capture):
    """Yield the lines of a capture after its header; each must be valid JSON."""
    with open(capture.path, encoding="utf-8") as file:
        next(file)
        yield from map(json.loads, file)
