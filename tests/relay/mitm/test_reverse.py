"""The guard of a reverse mode (A-06): a web page must not be able to use a server through the proxy."""

import json

from mcpspy.capture.reader import Capture
from tests.relay.interception import interception, needs_mitmproxy
from tests.relay.mitm.test_addon import CALL, JSON
from tests.relay.stage import scripted

pytestmark = needs_mitmproxy


def post(*fields):
    lines = [b"POST /mcp HTTP/1.1", *fields, b"Content-Type: application/json", b"Content-Length: %d" % len(CALL)]
    return b"\r\n".join([*lines, b"", CALL])


REFUSED = {
    "a Host of somebody": ([b"Host: evil.example"], "--allow evil.example"),
    "an Origin of somebody": ([b"Host: localhost", b"Origin: http://evil.example"], "--allow evil.example"),
    "a page of another site": ([b"Host: localhost", b"Sec-Fetch-Site: cross-site"], "Sec-Fetch-Site"),
    "two Hosts": ([b"Host: localhost, evil.example"], "Host"),
}


PASSING = [
    [b"Host: localhost:1"],
    [b"Host: 127.0.0.1", b"Origin: http://localhost:5173", b"Sec-Fetch-Site: cross-site"],
]


@scripted
async def test_a_request_that_may_not_pass_is_a_403_that_is_recorded(tmp_path, certificate):
    """A-06, H-02: the same as in `proxy`. Names of this machine pass, and the server gets its own name as the Host."""
    mode = ("--mode", "reverse:https://127.0.0.1:{port}", "--ca", certificate[0])
    async with interception(tmp_path, certificate, *mode) as there:
        for name, (fields, word) in REFUSED.items():
            client = await there.connect()
            await client.send(post(*fields))
            assert (await client.head()).startswith(b"HTTP/1.1 403 Forbidden\r\n"), name
            error = json.loads(await client.until(b"}}"))
            assert error["id"] == json.loads(CALL)["id"]
            assert word in error["error"]["message"]
            client.close()
            server = await there.server()  # mitmproxy connects before it has a request
            assert await server.rest() == b""
        for fields in PASSING:
            client = await there.connect()
            await client.send(post(*fields))
            server = await there.server()
            assert b"Host: 127.0.0.1:%d\r\n" % there.upstream in await server.head()
            assert await server.read(len(CALL)) == CALL
            await server.send(JSON)
            assert (await client.head()).startswith(b"HTTP/1.1 200 ")
            assert await client.read(2) == b"{}"
            client.close()
        await there.captured()
        assert Capture(str(there.path)).header.url == f"https://127.0.0.1:{there.upstream}"
    responses = [it for it in there.opens() if it.role == "response"]
    told = [(it.sender, it.head["status"]) for it in responses]
    assert told == [("mcpspy", 403)] * len(REFUSED) + [("server", 200)] * len(PASSING)
    for response, (_, word) in zip(responses, REFUSED.values(), strict=False):
        assert there.frames(response.answers) == [CALL]
        assert word.encode() in there.frames(response.ch)[0]
