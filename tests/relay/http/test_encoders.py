"""A body that a gate has changed is compressed again (H-08)."""

import pytest

from mcpspy.relay.http.gated_body import encoder
from mcpspy.wire.content_coding import Decoder


@pytest.mark.parametrize(
    "name", ["gzip", "x-gzip", "deflate", "br", "zstd", " GZIP ", "gzip, br", "deflate,identity, ,zstd"]
)
def test_each_part_can_be_decoded_when_it_has_come(name):
    compressor, decoder = encoder(name), Decoder(name)
    for part in (b"data: 1\n\n", b"data: 2\n\n" * 100):
        assert b"".join(decoder.feed(compressor.encode(part))) == part
    assert b"".join(decoder.feed(compressor.finish())) == b""
    decoder.end()
    assert decoder.fault is None


@pytest.mark.parametrize("name", ["gzip, exi", "exi", "", ","])
def test_what_cannot_be_encoded_has_no_encoder(name):
    assert encoder(name) is None
