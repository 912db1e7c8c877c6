"""`mcpspy mcp`, as a process."""

import json
import signal
import subprocess
import sys

import pytest

from mcpspy.cli import commands
from mcpspy.errors import UsageError
from tests import limits
from tests.transcript import capture

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def test_it_speaks_on_stdout_and_ends_with_its_stdin(tmp_path):
    capture(str(tmp_path / "a.jsonl"), "= 2025-11-25\n> 2 ping\n< 2 = {}")
    requests = [
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {}}},
    ]
    with limits.Popen(
        [sys.executable, "-m", "mcpspy", "mcp", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as server:
        told = []
        for request in requests:
            server.stdin.write(json.dumps({"jsonrpc": "2.0"} | request).encode() + b"\n")
            server.stdin.flush()
            if "id" in request:
                told.append(json.loads(server.stdout.readline()))
        server.stdin.close()
        assert server.wait(limits.LIMIT) == 0
        assert server.stderr.read() == b""
    assert told[0]["result"]["protocolVersion"] == "2025-06-18"
    assert told[1]["result"]["structuredContent"]["sessions"][0]["server"] == "weather"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_a_signal_ends_it_while_it_waits_for_the_client(tmp_path):
    with limits.Popen(
        [sys.executable, "-m", "mcpspy", "mcp", str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        server.stdin.write(json.dumps(hello).encode() + b"\n")
        server.stdin.flush()
        assert server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait(limits.LIMIT) == -signal.SIGINT


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
