"""Streams that a decoder gets in chunks of any size."""


def decoded_by(decoder, *chunks):
    """All that a decoder makes of a stream that comes in these chunks."""
    return [found for chunk in chunks for found in decoder.feed(chunk)] + decoder.end()


def bytes_of(stream):
    """The chunks of a stream that comes byte by byte."""
    return [stream[i : i + 1] for i in range(len(stream))]
