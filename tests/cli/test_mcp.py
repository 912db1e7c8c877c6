"""`mcpspy mcp`, started and refused."""

import json
import signal
import sys

import pytest

from mcpspy.cli import commands
from mcpspy.errors import UsageError
from tests.peers import warm
from tests.transcript import capture

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_it_speaks_on_stdout_and_a_signal_ends_it_while_it_waits_for_the_client(tmp_path):
    """tests/agent/test_server.py has clients that close its stdin."""
    capture(str(tmp_path / "a.jsonl"), "= 2025-11-25\n> 2 ping\n< 2 = {}")
    requests = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {}}},
    ]
    with warm.start("mcp", tmp_path) as server:
        server.stdin.write("".join(json.dumps({"jsonrpc": "2.0"} | request) + "\n" for request in requests))
        told = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.send_signal(signal.SIGINT)
        assert server.wait() == -signal.SIGINT
        assert server.stderr.read() == ""
    assert told[0]["result"]["protocolVersion"] == "2025-06-18"
    assert told[1]["result"]["structuredContent"]["sessions"][0]["server"] == "weather"


def test_without_the_extra_one_line_names_the_command(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.delitem(sys.modules, "mcpspy.agent.server", raising=False)
    with pytest.raises(
        UsageError, match=r"'mcpspy mcp' needs .*mcp.*, which is not installed: .* -m pip install 'mcpspy\[agent\]'"
    ):
        commands.run(["mcp", str(tmp_path)])


def test_a_directory_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match="none is not a directory"):
        commands.run(["mcp", str(tmp_path / "none")])
