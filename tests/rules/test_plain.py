"""The fast path for plain messages never hides a message from a rule that would find a fault in it."""

import random
from sys import getrefcount

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from mcpspy.conversation.model import Session
from mcpspy.rules import RULES
from mcpspy.rules.judge import Judge
from mcpspy.rules.plain import ASPECTS, aspects, in_bytes
from mcpspy.rules.schema import facts
from mcpspy.spec.revisions import Revision
from tests import NIGHTLY
from tests.each import each
from tests.findings import CAPTURES
from tests.rules.examples import judged, records
from tests.rules.test_judge import EXAMPLES, changed, flipped
from tests.transcript import OPENS


def asking_all(found, monkeypatch):
    """Return the findings when every rule checks every message, without the fast path."""
    with monkeypatch.context() as context:
        context.setattr("mcpspy.rules.judge.aspects", lambda *_: (False,) * len(ASPECTS))
        context.setattr("mcpspy.rules.judge.LISTS", {})
        return judged(found)


@each("example", EXAMPLES)
def test_an_example_has_the_same_findings_the_long_way(example, monkeypatch):
    found = records(EXAMPLES[example])
    assert judged(found) == asking_all(found, monkeypatch)


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.jsonl")), ids=lambda path: path.stem)
def test_a_golden_capture_has_the_same_findings_the_long_way(path, monkeypatch):
    found = list(Capture(str(path)).records())
    assert judged(found) == asking_all(found, monkeypatch)


@pytest.mark.parametrize("mutate", [flipped, changed])
def test_a_message_that_was_changed_somewhere_has_the_same_findings_the_long_way(mutate, monkeypatch):
    chance = random.Random(7)  # noqa: S311 (seeded, so that a failure can be reproduced)
    sessions = [records(text) for text in EXAMPLES.values() if len(text) < 3000 and "|" not in text]
    for _ in range(1500 if NIGHTLY else 150):
        found = list(chance.choice(sessions))
        place = chance.choice([place for place, record in enumerate(found) if isinstance(record, Frame)])
        found[place] = Frame(found[place].n, found[place].ch, found[place].t, mutate(found[place].raw, chance))
        assert judged(found) == asking_all(found, monkeypatch), found[place].raw


def message(raw):
    judge = Judge()
    [event for record in OPENS for event in judge.feed(record)]
    (event, *_) = judge.feed(Frame(1, 1, 1, raw))
    return event


@pytest.mark.parametrize(
    "raw",
    [
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"text":"a tight sketch: mask-off, _xo, AKI, ey"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"resources":[{"uri":"a:b","name":"a","mimeType":"image/png"}]}}',
    ],
)
def test_what_peers_usually_write_is_plain(raw):
    assert in_bytes(message(raw))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"text":"\\u200b"}}',
        '{"jsonrpc":"2.0","id":1,"method":"ping","params":{"text":"\u200b"}}'.encode(),
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\r',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"key":"ghp_' + b"a" * 36 + b'"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"key":"AKIA' + b"A" * 16 + b'"}}',
    ],
)
def test_what_a_rule_about_bytes_may_look_at_is_not_plain(raw):
    assert not in_bytes(message(raw))


def test_every_aspect_that_a_rule_names_has_its_test():
    named = {rule.about for rule in RULES.values()} - {None}
    assert named == set(ASPECTS)
    assert len(aspects(message(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), "ping", Session())) == len(ASPECTS)


def test_a_method_that_a_peer_made_up_is_not_kept():
    """A session may contain any number of such methods, each as long as a frame."""
    method = "".join(["x"] * 1000)
    before = getrefcount(method)
    assert facts(method, Revision.R2025_06_18) == facts(None, Revision.R2025_06_18)
    assert getrefcount(method) == before
