"""The previews of rows. Each is made once."""

from types import SimpleNamespace

import pytest

from mcpspy.browse.timeline import Previews
from mcpspy.timeline import Row

VALUE = {"method": "tools/call", "params": {"name": "f", "arguments": {"a": 1}}}


@pytest.fixture
def asked():
    """The lines that were read, each with the requested number of bytes."""
    return []


@pytest.fixture
def previews(asked):
    def read(n, limit):
        asked.append((n, limit))
        return [Row(n, 0, "request", "client", method="tools/call", value=VALUE)] if n else []

    def pieces(n):
        asked.append((n, 0))
        yield b'{"jsonrpc":"2.0","id":1,"result":{"content":[' + b"1," * 500

    return Previews(read, pieces)


def known(n, size, method="tools/call"):
    return Row(n, 0, "request", "client", method=method, size=size)


def test_a_preview_is_made_once_and_anew_when_the_request_is_known(previews, asked):
    assert [previews.of(known(5, 100)) for _ in range(3)] == ["a=1"] * 3
    assert len(asked) == 1
    previews.of(known(5, 100, "…"))
    assert len(asked) == 2


def test_of_a_large_message_only_the_beginning_is_read(previews, asked):
    previews.of(known(5, 1 << 16))
    assert previews.of(known(6, (1 << 16) + 1)).startswith('{"content":[1,1,')
    assert [limit for _, limit in asked] == [1 << 20, 0]


def test_a_line_that_is_gone_has_none(previews):
    assert previews.of(known(0, 1)) == ""


def test_not_all_are_kept(previews, asked):
    for n in range(1, 5002):
        previews.of(known(n, 1))
    previews.of(known(1, 1))
    assert len(asked) == 5002


def test_a_head_that_resumes_a_stream_has_the_words_of_the_fold(previews):
    head = SimpleNamespace(n=3, text="GET /mcp resumes after #2", frame=None, http=SimpleNamespace(resumes=object()))
    previews.note(head)
    assert previews.head(Row(3, 0, "http", "client", text="GET /mcp")) == "GET /mcp resumes after #2"
    assert previews.head(Row(4, 0, "http", "client", text="GET /mcp")) == "GET /mcp"
