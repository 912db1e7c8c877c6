"""The child of every variant if there is no C compiler. `server.c` explains what it does, and is five times as fast."""

import sys
from collections.abc import Iterator

PING = b',"method":"ping","params":'
RESULT = b',"result":'
WELCOME = (
    b'{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"logging":{}},'
    b'"serverInfo":{"name":"bench","version":"1"}}}\n'
)


def answers(line: bytes, arguments: list[str]) -> Iterator[bytes]:
    head = line[:128]
    if b'"method":"initialize"' in head:
        yield WELCOME
    elif PING in head and not arguments:
        yield line.replace(PING, RESULT, 1)
    elif PING in head:
        path, count = arguments
        with open(path, "rb") as file:
            frame = file.read()
        for n in range(int(count)):
            yield frame.replace(b"1000000", b"%d" % (1_000_000 + n), 1)


if __name__ == "__main__":
    for line in sys.stdin.buffer:
        for answer in answers(line, sys.argv[1:]):
            sys.stdout.buffer.write(answer)
            sys.stdout.buffer.flush()
