"""Spans of transcripts and of captures."""

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Header
from mcpspy.conversation.conversation import Conversation
from mcpspy.telemetry.spans import Spans
from tests.transcript import records

STDIO = Header("0" * 32, "2026-11-20T19:15:00.000000Z", "mcpspy", "stdio", "weather")


def spans(text, **options):
    """Return the spans of a transcript over stdio, in the order of their output."""
    return fold(STDIO, records(text), **options)


def spans_of(path, **options):
    """Return the spans of a capture."""
    capture = Capture(path)
    return fold(capture.header, capture.records(), **options)


def fold(header, stream, **options):
    conversation, folded = Conversation(), Spans(header, **options)
    found = [span for record in stream for event in conversation.feed(record) for span in folded.feed(event)]
    conversation.end()
    return [*found, *folded.end(conversation.pending())]
