"""One side of the session in `session.txt`: it sends its own lines and waits for the lines of the other side."""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))


def play(mine, theirs, source, sink):
    """Play the side whose lines have the mark `mine`. Both streams are binary. Exit if a received line differs."""
    with open(os.path.join(HERE, "session.txt"), "rb") as script:
        for line in script:
            mark, _, message = line.partition(b" ")
            if mark == mine:
                sink.write(message)
                sink.flush()
            elif mark == theirs and (heard := source.readline()) != message:
                sys.exit(f"{sys.argv[0]}: heard {heard!r} instead of {message!r}")
            elif mark == b"!" and mine == b"<":
                sys.stderr.buffer.write(message)
                sys.stderr.flush()
