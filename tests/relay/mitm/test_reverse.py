"""The guard of a reverse mode (A-06): a web page must not be able to use a server through the proxy."""

import asyncio
import json

import pytest

from mcpspy.capture.records import Frame, Open
from tests.relay.interception import certificate, interception, needs_mitmproxy
from tests.relay.mitm.test_addon import CALL, JSON
from tests.relay.stage import Peer, scripted

__all__ = ["certificate"]  # a fixture

pytestmark = needs_mitmproxy


def post(*fields):
    lines = [b"POST /mcp HTTP/1.1", *fields, b"Content-Type: application/json", b"Content-Length: %d" % len(CALL)]
    return b"\r\n".join([*lines, b"", CALL])


async def reverse_client(there):
    return Peer(*await asyncio.open_connection("127.0.0.1", int(there.mitm.place.rpartition(":")[2])))


REFUSED = {
    "a Host of somebody": ([b"Host: evil.example"], "--allow evil.example"),
    "an Origin of somebody": ([b"Host: localhost", b"Origin: http://evil.example"], "--allow evil.example"),
    "a page of another site": ([b"Host: localhost", b"Sec-Fetch-Site: cross-site"], "Sec-Fetch-Site"),
    "two Hosts": ([b"Host: localhost, evil.example"], "Host"),
}


@pytest.mark.parametrize("name", REFUSED)
@scripted
async def test_a_request_that_may_not_pass_is_a_403_that_is_recorded(tmp_path, certificate, name):
    """A-06, H-02: the same as in `proxy`."""
    fields, word = REFUSED[name]
    async with interception(tmp_path, certificate) as upstream:
        mode = ("--mode", f"reverse:https://127.0.0.1:{upstream.upstream}", "--ca", certificate[0])
        (tmp_path / "reverse").mkdir()
        async with interception(tmp_path / "reverse", certificate, *mode) as there:
            client = await reverse_client(there)
            await client.send(post(*fields))
            head = await client.head()
            assert head.startswith(b"HTTP/1.1 403 Forbidden\r\n")
            error = json.loads(await client.until(b"}}"))
            assert error["id"] == json.loads(CALL)["id"]
            assert word in error["error"]["message"]
            client.close()
            server = await upstream.server()  # mitmproxy connects before it has a request
            assert await server.rest() == b""
            records = await there.captured()
    request, response = [record for record in records if isinstance(record, Open)]
    assert (request.role, response.sender, response.head["status"]) == ("request", "mcpspy", 403)
    frames = [record.raw for record in records if isinstance(record, Frame)]
    assert frames[0] == CALL
    assert word.encode() in frames[1]


@pytest.mark.parametrize(
    "fields",
    [[b"Host: localhost:1"], [b"Host: 127.0.0.1", b"Origin: http://localhost:5173", b"Sec-Fetch-Site: cross-site"]],
)
@scripted
async def test_names_of_this_machine_pass_and_the_server_sees_its_own(tmp_path, certificate, fields):
    """A-06."""
    async with interception(tmp_path, certificate) as upstream:
        mode = ("--mode", f"reverse:https://127.0.0.1:{upstream.upstream}", "--ca", certificate[0])
        (tmp_path / "reverse").mkdir()
        async with interception(tmp_path / "reverse", certificate, *mode) as there:
            client = await reverse_client(there)
            await client.send(post(*fields))
            server = await upstream.server()
            head = await server.head()
            assert b"Host: 127.0.0.1:%d\r\n" % upstream.upstream in head
            await server.send(JSON)
            assert (await client.head()).startswith(b"HTTP/1.1 200 ")
            client.close()
