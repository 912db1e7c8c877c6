"""A foreign Host, a cancelled call and a resumed stream (H-02, H-05, H-12), from the wire to the timeline."""

import http.client
import json
import subprocess
import sys
from datetime import datetime

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, Open
from mcpspy.report.checked import check
from mcpspy.timeline import final_rows
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import LIMIT, running
from tests.relay.http.test_forward import POST, STREAM, chunk
from tests.relay.stage import scripted, stage

CANCELS = """
import anyio, sys
from mcp import Client

async def main():
    async with Client(sys.argv[1]) as client:
        for _ in range(3):
            begun = anyio.Event()
            async def on_progress(*_):
                begun.set()
            async with anyio.create_task_group() as group:
                group.start_soon(lambda: client.call_tool("hang", {}, progress_callback=on_progress))
                await begun.wait()
                group.cancel_scope.cancel()

anyio.run(main)
"""


def told(path):
    """Return the rows of a capture that has ended."""
    return list(final_rows(Capture(str(path)).records, live=False))


def test_a_client_that_closes_an_idle_call_cancels_it_in_the_server(tmp_path):
    """H-05, H-13; case 9: the SDK's server cancels within 100 ms without a notification; the capture shows it."""
    require_peers("python2")
    capture = tmp_path / "capture.jsonl"
    with running(prepare.server("python2", "--http")) as server:
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/mcp"
        with running(
            [sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", "-o", str(capture), url]
        ) as proxy:
            ours = proxy.stdout.readline().strip()
            client = [prepare.python("python2"), "-c", CANCELS, ours]
            subprocess.run(client, check=True, capture_output=True, timeout=2 * LIMIT)
            cancelled = [int(server.stdout.readline().removeprefix("cancelled ")) for _ in range(3)]
            proxy.terminate()
            assert proxy.wait(LIMIT) == 0
    calls = [row for row in told(capture) if row.kind == "request" and row.name == "hang"]
    assert [(row.status, row.revision) for row in calls] == [("cancelled", "2026-07-28")] * 3
    assert "notifications/cancelled" not in capture.read_text()
    records = list(Capture(str(capture)).records())
    began = datetime.fromisoformat(Capture(str(capture)).header.started).timestamp() * 1e9
    left = [began + record.t for record in records if isinstance(record, Close) and record.how == "abort"]
    assert len(left) == 3
    delays = sorted(abs(there - here) / 1e9 for there, here in zip(cancelled, left, strict=True))
    assert delays[1] < 0.1  # the median: one of them may be slow on a busy machine


SESSION = b"Mcp-Session-Id: s1\r\nMCP-Protocol-Version: 2025-11-25\r\n"
ASK = POST + b"Accept: application/json, text/event-stream\r\n"
RESUME = b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n%bLast-Event-ID: %b\r\n\r\n"


HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}


def request(number, method, **params):
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


def event(number, message=None):
    data = json.dumps(message).encode() if message else b""
    return b"id: e%d\ndata: %b\n\n" % (number, data)


PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": "p", "progress": 1},
}


@pytest.mark.parametrize("drop", ["in order", "abruptly"])
@scripted
async def test_a_call_that_is_resumed_is_one_call(tmp_path, drop):
    """H-12; case 11: priming event, retry, server closes, GET with Last-Event-ID, a repeated event, the response."""
    answer = {
        "jsonrpc": "2.0",
        "id": 0,
        "result": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        },
    }
    async with stage(tmp_path) as there:

        async def post(body, session=SESSION):
            framed = ASK + session + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
            client, server, _ = await there.both(framed)
            assert await server.read(len(body)) == body
            return client, server

        client, server = await post(request(0, "initialize", **HELLO), b"")
        body = json.dumps(answer).encode()
        reply = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s1\r\nConnection: close\r\n"
        await server.send(reply + b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
        await client.until(body)
        client, server = await post(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        await server.send(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await client.head()

        client, server = await post(request(1, "tools/call", name="x", arguments={}, _meta={"progressToken": "p"}))
        first = [event(1), b"retry: 10\n\n", event(2, PROGRESS)]
        await server.send(STREAM, *map(chunk, first))
        await client.until(first[-1])
        if drop == "in order":
            await server.send(b"0\r\n\r\n")
            await client.until(b"0\r\n\r\n")
        server.close()
        await (server if drop == "in order" else client).gone()

        client, server, head = await there.both(RESUME % (SESSION, b"e1"))
        assert b"Last-Event-ID: e1\r\n" in head
        second = [event(2, PROGRESS), event(3, {"jsonrpc": "2.0", "id": 1, "result": {"content": []}})]
        await server.send(STREAM, *map(chunk, second), b"0\r\n\r\n")
        await client.until(b"0\r\n\r\n")
    rows = told(there.path)
    (call,) = (row for row in rows if row.kind == "request" and row.method == "tools/call")
    (result,) = (row for row in rows if row.kind == "result" and row.request == call.n)
    assert (call.status, call.response) == ("ok", result.n)
    opened = {record.ch: record for record in there.records(Open)}
    assert opened[result.channel].answers != call.channel  # it came in the response to the GET
    (progress,) = (row for row in rows if row.method == "notifications/progress")
    (again,) = (row for row in rows if row.kind == "event" and "again" in (row.text or ""))
    assert f"#{progress.n}" in again.text
    assert there.how()[progress.channel] == ("eof" if drop == "in order" else "reset")
    assert [it for it in check(str(there.path)).findings if it.severity == "error"] == []


@pytest.mark.parametrize("server", ["python1", "python2"])
def test_a_server_that_checks_the_host_is_reached_under_a_name_of_ours(tmp_path, server):
    """H-01, H-02; case 8: a forwarded Host would give a 421, and a page of another origin still gets a 403."""
    require_peers(server)
    body = request(0, "initialize", **HELLO)

    def ask(port, **headers):
        """Return the status that a client gets which connects to mcp.local."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
        accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        connection.request("POST", "/mcp", body, accept | {"Host": f"mcp.local:{port}"} | headers)
        status = connection.getresponse().status
        connection.close()
        return status

    with running(prepare.server(server, "--http")) as process:
        upstream = int(process.stdout.readline())
        assert ask(upstream) == 421
        for options, expected in (((), 200), (("--preserve-host",), 421)):
            command = [sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", *options]
            command += ["--allow-host", "mcp.local", "--capture-dir", str(tmp_path), f"http://127.0.0.1:{upstream}/mcp"]
            with running(command) as proxy:
                ours = int(proxy.stdout.readline().rpartition(":")[2].partition("/")[0])
                assert ask(ours) == expected
                assert ask(ours, Origin=f"http://mcp.local:{ours}") == (200 if not options else 421)
                assert ask(ours, Origin="http://evil.example") == 403
                assert ask(ours, Host="evil.example") == 403
