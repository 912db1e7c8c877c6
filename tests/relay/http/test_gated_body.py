"""Bodies that a gate does not decide on, or does not change, are forwarded byte for byte in any chunks."""

import gzip
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpspy.gate.gate import Gate
from mcpspy.relay.http import gated_body
from mcpspy.relay.http.gated_body import HELD, EventBlocks, FirstEvent, HeldDocument
from mcpspy.relay.http.own_gates import MetadataGate
from mcpspy.wire.content_coding import Decoder
from mcpspy.wire.sse import Events

LINES = [b"data: {}", b": ping", b"id: 1", b"", b"x", b"\xef\xbb\xbf", "é\u2028".encode()]
ENDS = [b"\n", b"\r", b"\r\n"]
STREAMS = st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS)), max_size=30).map(
    lambda lines: b"".join(line + end for line, end in lines)
)


def chunks(stream, cuts):
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return [stream[a:b] for a, b in itertools.pairwise(places)]


@given(STREAMS | st.binary(max_size=200), st.lists(st.integers(0, 1000)), st.sampled_from([5, 20, 1000]))
def test_no_byte_of_an_event_stream_is_lost_and_the_frames_are_those_of_a_capture(stream, cuts, limit):
    blocks, events = EventBlocks(limit), Events()
    pieces, frames = [], []
    for part in chunks(stream, cuts):
        pieces += blocks.feed(part)
        frames += [raw for raw, _, _ in events.feed(part)]
    pieces += blocks.end()
    assert b"".join(piece.passes for piece in pieces) == stream
    decided = [piece for piece in pieces if piece.frame is not None]
    assert [piece.frame for piece in decided] == [frame for frame in frames if len(frame) <= limit]
    assert all(piece.frame + piece.delimiter == piece.passes for piece in decided)


def test_an_event_that_is_too_long_passes_as_it_comes_and_the_next_one_is_decided_on():
    blocks = EventBlocks(10)
    stream = b"data: 1\n\n" + b"data: " + b"x" * 100 + b"\n\r\ndata: 2\n\n"
    pieces = [piece for byte in stream for piece in blocks.feed(bytes([byte]))]
    assert b"".join(piece.passes for piece in pieces) == stream
    assert [piece.frame for piece in pieces if piece.frame] == [b"data: 1\n", b"data: 2\n"]
    assert [piece.passes[:4] for piece in pieces if piece.undecided] == [b"data"]


def test_no_event_costs_more_for_what_comes_behind_it(monkeypatch):
    """The number of copied bytes is a small multiple of the number of received bytes."""

    class Counted(bytearray):
        copied = 0

        def count(self, copy):
            Counted.copied += len(copy)
            return Counted(copy)

        def __getitem__(self, place):
            found = super().__getitem__(place)
            return found if isinstance(place, int) else self.count(found)

        def lstrip(self, *what):
            return self.count(super().lstrip(*what))

    monkeypatch.setattr(gated_body, "bytearray", Counted, raising=False)
    blocks, stream = EventBlocks(1 << 20), b"data: 1\n\n" * 2000
    assert len(blocks.feed(stream)) == 2000
    assert 0 < Counted.copied < 4 * len(stream)


class Broken:
    """A gate that raises."""

    by, follows, waits = "broken", False, False

    def wants(self, facts):
        return False

    def decide(self, frame, facts, t):
        raise RuntimeError("a bug")


@given(STREAMS, st.lists(st.integers(0, 1000)))
def test_a_gate_that_fails_changes_nothing(stream, cuts):
    said = []
    body = FirstEvent(Gate([Broken()], said.append), "", said.append)
    assert b"".join(body.feed(part, 0) for part in chunks(stream, cuts)) + body.end(0) == stream
    assert b"".join(entry.raw for entry in body.recorded()) == stream
    assert len(said) <= 1


def test_a_decoder_that_fails_changes_nothing_and_is_reported(monkeypatch):
    said = []
    body = FirstEvent(Gate([], said.append), "gzip", said.append)

    def fail(decoder, chunk):
        raise RuntimeError("a bug")

    coded = gzip.compress(b"data: 1\n\n")
    assert body.feed(coded[:5], 0) == b""
    monkeypatch.setattr(Decoder, "feed", fail)
    assert body.feed(coded[5:9], 0) + body.feed(coded[9:], 0) + body.end(0) == coded
    assert said == ["a content coding cannot be decoded (RuntimeError: a bug); the body passes unchanged"]


DOCUMENT = b'{"resource": "http://up/", "a":1}\n'


@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_document_is_changed_as_a_whole(size):
    """O-01: the recorded `sent` comes from the verdict."""
    gate = MetadataGate(lambda url: url.replace("up", "us"))
    body = HeldDocument(Gate([gate], print), "", hold=True)
    parts = [DOCUMENT[at : at + size] for at in range(0, len(DOCUMENT), size)]
    assert all(body.feed(part, 0) == b"" for part in parts)
    sent = body.end(0)
    assert json.loads(sent) == {"resource": "http://us/", "a": 1}
    (entry,) = body.recorded()
    assert (entry.raw, entry.whole, entry.gated) == (DOCUMENT, True, {"sent": sent, "by": "oauth"})
    assert gate.resource == "http://up/"


@pytest.mark.parametrize("document", [DOCUMENT, b"no", b"", b"x" * (HELD + 1)])
@pytest.mark.parametrize("hold", [True, False])
def test_a_document_that_needs_no_change_passes_as_it_is(document, hold):
    body = HeldDocument(Gate([MetadataGate(None)], print), "", hold=hold)
    out = b"".join(body.feed(document[at : at + 5000], 0) for at in range(0, len(document), 5000))
    assert out + body.end(0) == document
    assert b"".join(entry.raw for entry in body.recorded()) == document
