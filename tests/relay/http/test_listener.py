"""The listener: its routes, their captures, and its end."""

import asyncio
import json
import time

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Open
from mcpspy.recording.recording import Clock, Recording
from mcpspy.relay.http.heads import Address
from mcpspy.relay.http.host_guard import Guard
from mcpspy.relay.http.listener import Relay
from mcpspy.relay.http.route import HttpRoute, Upstream
from tests.relay.http.aiohttp_internals import let_an_hour_pass
from tests.relay.http.test_forward import CALL, LAST, OK, POST, memory
from tests.relay.stage import scripted, stage

HOST = b" HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/one", "/one"),
        ("/one/", "/one"),
        ("/one?x", "/one"),
        ("/one/two/mcp", "/one"),
        ("/two/mcp", "/two"),
        ("/oneself", ""),
        ("/", ""),
        ("/three", ""),
    ],
)
def test_a_route_is_found_by_its_prefix(target, expected):
    """H-09."""
    routes = [
        HttpRoute(address, Upstream(address), Recording(print))
        for address in (Address("http://h/", prefix) for prefix in ("/one", "/two", ""))
    ]
    assert Relay(routes, Guard("", []), print).route_of(target).address.prefix == expected


def test_the_time_of_a_route_counts_from_the_start_of_its_capture():
    address = Address("http://h/")
    started = time.monotonic_ns() - 5_000_000_000
    route = HttpRoute(address, Upstream(address), Recording(print, Clock(started)))
    assert 5_000_000_000 <= route.now() <= time.monotonic_ns() - started


@scripted
async def test_each_route_has_its_upstream_and_its_capture(tmp_path):
    """H-09: several upstreams on one listener; one capture is one server."""
    folder = tmp_path / "captures"
    routes = ("--route", "one=http://127.0.0.1:{port}/mcp", "--route", "two=http://localhost:{port}/sse?a=1")
    async with stage(tmp_path, *routes, "--capture-dir", str(folder)) as there:
        assert [url.split()[0] for url in there.urls] == ["one", "two"]
        assert there.urls[0].endswith(f"http://127.0.0.1:{there.port}/one/mcp")
        assert there.urls[1].endswith("/two/sse?a=1")
        for target, forwarded, host in (
            (b"/one/mcp?x=%7e", b"/mcp?x=%7e", b"127.0.0.1"),
            (b"/two", b"/", b"localhost"),
        ):
            client, server, head = await there.both(b"GET " + target + HOST)
            assert head.startswith(b"GET " + forwarded + b" HTTP/1.1\r\nHost: %b:%d\r\n" % (host, there.upstream))
            await server.send(LAST)
            await client.until(b"{}")
        client = await there.client()
        await client.send(b"GET /three/mcp" + HOST)
        assert (await client.head()).startswith(b"HTTP/1.1 404 Not Found\r\n")
        assert there.arrived.empty()
    captures = {Capture(str(path)).header.name: Capture(str(path)) for path in folder.iterdir()}
    assert sorted(captures) == ["one", "two"]
    assert captures["two"].header.url == f"http://localhost:{there.upstream}/sse?a=1"
    for name, target, forwarded in (("one", "/one/mcp?x=%7e", "/mcp?x=%7e"), ("two", "/two", "/")):
        asked, answer = (record for record in captures[name].records() if isinstance(record, Open))
        assert (asked.head["target"], asked.sent["target"], asked.by) == (target, forwarded, "host")
        assert answer.answers == asked.ch


@scripted
async def test_whoever_may_not_use_the_port_does_not_learn_what_stands_there(tmp_path):
    """H-02: only clients that may use the port get the names of the routes."""
    routes = ("--route", "secret-project=http://127.0.0.1:{port}/mcp", "--capture-dir", str(tmp_path / "captures"))
    async with stage(tmp_path, *routes) as there:
        for host, status in ((b"evil.example", b"403 Forbidden"), (b"localhost", b"404 Not Found")):
            client = await there.client()
            await client.send(b"GET / HTTP/1.1\r\nHost: %b\r\nConnection: close\r\n\r\n" % host)
            answer = await client.rest()
            assert answer.startswith(b"HTTP/1.1 " + status)
            assert (b"secret-project" in answer) is (host == b"localhost")


@scripted
async def test_no_time_ends_a_stream_that_is_open():
    """H-06: checked on the objects of aiohttp, whose only time limit is for idle connections."""
    address = Address("http://127.0.0.1:1/")
    entered, left = asyncio.Event(), asyncio.Event()

    class Waits(Relay):
        async def handle(self, request):
            entered.set()
            await left.wait()
            return await super().handle(request)

    relay = Waits([HttpRoute(address, Upstream(address), Recording(print))], Guard("", []), print)
    factory = relay.server()
    server = await asyncio.get_running_loop().create_server(factory, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"GET /" + HOST)
    await entered.wait()
    (connection,) = factory.connections
    let_an_hour_pass(connection)
    left.set()
    assert (await reader.readline()).startswith(b"HTTP/1.1 502 ")
    writer.close()
    server.close()
    await relay.end()


@scripted
async def test_memory_is_flat_after_many_exchanges(tmp_path):
    """Issue 7 on a small scale; the benchmark has 10,000 exchanges and 100 open streams."""
    async with stage(tmp_path) as there:
        client, server, _ = await there.both(POST + b"Content-Length: 46\r\n\r\n" + CALL)

        async def exchange():
            await server.read(46)
            await server.send(OK)
            await client.until(b"{}")
            await client.send(POST + b"Content-Length: 46\r\n\r\n" + CALL)
            await server.head()

        for _ in range(300):
            await exchange()
        before = memory(there.process.pid)
        for _ in range(1000):
            await exchange()
        assert memory(there.process.pid) - before < 1 << 19
    assert len(there.opens()) == 2 * 1300 + 1


@scripted
async def test_the_capture_says_which_server_it_is_and_is_live_meanwhile(tmp_path):
    """The header has the transport, the name and the URL without secrets; the capture is live until the relay ends."""
    async with stage(tmp_path, "--name", "weather", path="/mcp?token=hunter2") as there:
        header = Capture(str(there.path)).header
        assert (header.transport, header.name, header.argv) == ("http", "weather", ())
        assert header.url.startswith(f"http://127.0.0.1:{there.upstream}/mcp?token=«redacted:")
        assert header.pid == there.process.pid
        assert Capture(str(there.path)).live
    assert b"hunter2" not in there.path.read_bytes()
    assert json.loads(there.path.read_bytes().splitlines()[-1])["kind"] == "end"
