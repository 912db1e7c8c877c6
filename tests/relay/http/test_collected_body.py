"""A collected body is decoded only up to the limit for a decision, and is compressed once."""

import gzip
import tracemalloc
import zlib

import brotli
import pytest

from mcpspy.gate.gate import LIMIT, PASS, Send
from mcpspy.relay.http.gated_channel import CollectedBody, announces_too_much
from mcpspy.relay.live_gate import LiveGate

CALL = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search"}}'


def decided(body, action):
    gate = LiveGate([{"name": "g", "action": action}], {}, print)
    return body.decide(gate, gate.facts("client", "body"), 0)


def test_a_body_that_expands_is_decoded_no_further_than_the_limit():
    coded = gzip.compress(b'{"x":"%b"}' % bytes(20 * LIMIT))
    tracemalloc.start()
    body = CollectedBody(coded, "gzip")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * LIMIT
    assert (body.undecided, body.damaged) == (True, False)
    assert decided(body, {"drop": True}).undecided


@pytest.mark.parametrize("size", [LIMIT, LIMIT + 1])
@pytest.mark.parametrize("coding", ["", "gzip"])
def test_the_limit_is_that_of_the_decoded_body(size, coding):
    raw = b" " * size
    body = CollectedBody(gzip.compress(raw) if coding else raw, coding)
    assert body.undecided == (size > LIMIT)


@pytest.mark.parametrize(
    ("coding", "code", "decode"),
    [
        ("", bytes, bytes),
        ("gzip", gzip.compress, gzip.decompress),
        ("deflate", zlib.compress, zlib.decompress),
        ("br", brotli.compress, brotli.decompress),
    ],
)
def test_several_frames_in_the_place_of_one_are_coded_once(coding, code, decode):
    body = CollectedBody(code(CALL), coding)
    verdict = decided(body, {"repeat": 2})
    assert isinstance(verdict, Send)
    assert decode(body.forwarded(verdict.frames)) == CALL * 2
    assert body.forwarded([CALL]) is body.raw


@pytest.mark.parametrize(
    ("raw", "coding"),
    [(b"no", "gzip"), (gzip.compress(CALL)[:-3], "gzip"), (CALL, "exi")],
    ids=["damaged", "cut", "unknown"],
)
def test_a_coding_that_cannot_be_undone_passes(raw, coding):
    body = CollectedBody(raw, coding)
    assert (body.damaged, body.plain) == (True, b"")
    assert decided(body, {"drop": True}) is PASS


@pytest.mark.parametrize(
    ("length", "long"),
    [(b"%d" % LIMIT, False), (b"%d" % (LIMIT + 1), True), (b"9" * 5000, True), (b"x", False)],
    ids=["limit", "more", "digits", "none"],
)
def test_a_length_tells_what_need_not_be_collected(length, long):
    assert announces_too_much([(b"Content-Length", length)]) == long
    assert not announces_too_much([])
