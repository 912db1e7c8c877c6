"""Scripts from transcripts, a link without a server process, and the scripted server of the golden capture."""

import os
import queue
import sys

from mcpspy.capture.records import End
from mcpspy.replay.script import Script, read
from tests.transcript import records

SERVER = (sys.executable, "-I", "-S", os.path.join(os.path.dirname(__file__), "server.py"))
"""The command of the scripted server; append a change as its argument."""

INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
    '"clientInfo":{"name":"scripted","version":"1.0.0"}}}'
)
INITIALIZED = (
    '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},'
    '"serverInfo":{"name":"weather","version":"1.0.0"}}}'
)


def script(text: str, *, ended: bool = True) -> Script:
    """Return the script of a transcript; lines are counted from 1."""
    return read(None, [*records(text), *([End(1000, 10**10, 0)] if ended else [])])


def call(number: int, name: str, arguments: str = "{}", meta: str = "") -> str:
    """Return a tool call."""
    more = f',"_meta":{meta}' if meta else ""
    params = f'{{"name":"{name}","arguments":{arguments}{more}}}'
    return f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}'


def result(number: object, text: str) -> str:
    """Return the result of a tool call."""
    return f'{{"jsonrpc":"2.0","id":{number},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}'


class FakeLink:
    """A link to a server that is a function: it returns the lines that the server sends after a line."""

    def __init__(self, server) -> None:
        self.heard = queue.SimpleQueue()
        self.sent: list[str] = []
        self._server = server

    def send(self, line: bytes) -> None:
        self.sent.append(line.decode())
        for said in self._server(line.decode()):
            self.heard.put(said.encode() if isinstance(said, str) else said)
