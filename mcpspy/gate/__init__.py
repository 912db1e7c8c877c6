"""The gate: it decides what happens to a frame between the read and the write.

A relay with a gate calls `Gate.decide` for a verdict on each frame. Then it waits, writes and records according to the
verdict. Nothing here reads, writes or knows the time: frames and times are arguments, verdicts and frames are results.
A frame is a line of stdio, an event of an event stream, an HTTP body without its content coding, or a WebSocket
message.

Imported only by a relay that has a gate, also on the `wrap` path: no heavy imports here.
"""
