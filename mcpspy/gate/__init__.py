"""What may happen to a frame between read and write.

A relay with a gate asks `Gate.decide` for a verdict on each frame, then waits, writes and records as the verdict says.
Nothing here reads, writes or knows the time: frames and times come in, verdicts and frames go out. A frame is a line of
stdio, an event of an event stream, a body of HTTP with its content coding undone, or a WebSocket message.

Imported only by a relay that has a gate, on the `wrap` path too: nothing heavy here.
"""
