"""One side of the session in `session.txt`: says what is its own and waits for what is the other's, line by line."""

import os
import sys

HERE = os.path.dirname(os.path.realpath(__file__))


def play(mine, theirs, source, sink):
    """Play the side that says the lines with the mark `mine`; both streams are binary. A line that differs ends it."""
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
