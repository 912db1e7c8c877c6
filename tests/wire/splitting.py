"""Feeding a stream to a decoder in chunks of any size."""


def decoded_by(decoder, *chunks):
    """Return everything that a decoder yields for a stream in these chunks."""
    return [found for chunk in chunks for found in decoder.feed(chunk)] + decoder.end()


def bytes_of(stream):
    """Split a stream into chunks of one byte."""
    return [stream[i : i + 1] for i in range(len(stream))]
