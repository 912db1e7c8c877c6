"""A directory of captures, as an agent reads it."""

import os

import pytest

from mcpspy.agent.captures import AgentCaptures
from tests.transcript import CHANNELS, WALL, begin, finish, record

EXAMPLE = """
= 2025-11-25
> 2 tools/list
< 2 = {"tools":[{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}
> 3 tools/call {"name":"echo","arguments":{"text":5}}
< 3 ! {"code":-32602,"message":"text must be a string"}
> 4 tools/call {"name":"echo","arguments":{"text":"a"}}
< 4 = {"content":[{"type":"text","text":"no such file"}],"isError":true}
! echo: warning
> 5 tools/call {"name":"echo","arguments":{"text":"b"}}
"""
"""A session in which two calls fail and one has no answer; its first frame is #5."""


class Folder:
    """Writes captures; each one starts a minute after the one before it."""

    def __init__(self, path):
        self.path = path
        self.captures = AgentCaptures(str(path), 60)
        self._made = 0

    def add(self, text=EXAMPLE, name="weather", code=3, why=None, **fields):
        """Write another capture; return its name."""
        writer = begin(self._path(), name=name, wall=self._wall(), **fields)
        record(writer, text)
        writer.close(CHANNELS[">"], 10_000_000_000, "exit")
        finish(writer, 10_000_000_000, code, why)
        return self._named(writer.path)

    def begin(self, name="weather", **fields):
        """Begin a capture that is still recorded; return its writer and its name."""
        writer = begin(self._path(), name=name, wall=self._wall(), **fields)
        return writer, self._named(writer.path)

    def _path(self):
        self._made += 1
        return str(self.path / f"2025-{self._made:03}.jsonl")

    def _wall(self):
        return WALL + self._made * 60_000_000_000

    def _named(self, path):
        self.captures.look()
        entry = next(it for it in self.captures.entries if os.path.samefile(it.path, path))
        return self.captures.name(entry)


@pytest.fixture
def folder(tmp_path):
    """An empty directory of captures."""
    found = Folder(tmp_path)
    yield found
    found.captures.close()
