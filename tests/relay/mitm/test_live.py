"""Viewers set gates on a running `mitm`, and decide on held frames."""

import asyncio
import json
import os
import time

import pytest

from mcpspy.capture.live import live_directory
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gates, Open, Release
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import serving
from tests.relay.http.test_upstream import CALL
from tests.relay.interception import certificate, gated, intercepting, interception, needs_mitmproxy
from tests.relay.mitm.test_addon import ANSWER, POST, asked
from tests.relay.mitm.test_gated_events import answered, lengths
from tests.relay.stage import scripted
from tests.relay.talking import hold_and_edit, talking
from tests.relay.viewer import HOLD, Viewer, viewing

__all__ = ["certificate"]  # a fixture

pytestmark = needs_mitmproxy

ASKED = {"from": "client", "kind": "request"}
LOOKS = 0.12  # seconds; a relay has looked for changes after this time


async def begun(there):
    """Make an exchange that is forwarded unchanged, and wait until the capture exists."""
    client, server, head = await asked(there)
    assert (head, await server.read(len(CALL))) == (POST, CALL)
    assert (await answered(client, server))[1] == ANSWER
    await there.recorded(lambda record: isinstance(record, Frame))
    client.close()


@scripted
async def test_a_held_request_of_json_is_edited_and_what_no_gate_names_passes(tmp_path, certificate):
    edited = '{"jsonrpc":"2.0","id":7,"method":"edited"}'
    async with interception(tmp_path, certificate) as there:
        await begun(there)
        assert Capture(str(there.path)).header.control
        with viewing(there.path) as viewer:
            gates = viewer.gate(HOLD, **ASKED)
            await asyncio.sleep(LOOKS)
            client = await there.client()
            await client.send(POST, CALL)
            (frame,) = await viewer.holds()
            assert (frame.raw, frame.by) == (CALL, "gate g")
            viewer.release(frame.held, "edited", edited)
            server = await there.server()
            assert lengths(await server.head()) == [b"content-length: %d" % len(edited)]
            assert await server.read(len(edited)) == edited.encode()
            assert (await answered(client, server))[1] == ANSWER
            viewer.set_gates([])
            await asyncio.sleep(LOOKS)
            client, server, head = await asked(there)
            assert (head, await server.read(len(CALL))) == (POST, CALL)
            assert (await answered(client, server))[1] == ANSWER
        await there.captured()
        folder = live_directory(str(there.path), Capture(str(there.path)).header.id)
        assert folder not in [entry.path for entry in os.scandir(there.path.parent)]
    assert [(it.how, it.sent) for it in there.records(Release)] == [("edited", edited.encode())]
    assert [list(it.gates) for it in there.records(Gates)] == [gates, []]


@scripted
async def test_a_refused_request_gets_the_status(tmp_path, certificate):
    gates = [{"name": "refuses 503", "when": ASKED, "action": {"answer": '{"result":{}}'}}]
    async with gated(tmp_path, certificate, gates) as there:
        client = await there.client()
        await client.send(POST, CALL)
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 503 ")
        error = json.loads(await client.read(int(lengths(head)[0].split(b": ")[1])))
        assert error["id"] == json.loads(CALL)["id"]
        server = await there.server()  # mitmproxy connects to get its certificate
        await there.captured()
        assert await server.rest() == b""
    _, response = there.records(Open)
    assert (response.sender, response.by, response.head["status"]) == ("mcpspy", "gate refuses 503", 503)
    assert there.records(Frame)[0].dropped
    (recorded,) = there.records(Gates)
    assert (list(recorded.gates), recorded.by) == (gates, "file")


@scripted
async def test_a_viewers_own_request_cannot_be_sent_and_that_is_told(tmp_path, certificate):
    async with interception(tmp_path, certificate) as there:
        await begun(there)
        with viewing(there.path) as viewer:
            viewer.send('{"jsonrpc":"2.0","id":"mcpspy-1","method":"ping"}')
            await asyncio.sleep(LOOKS)
            await begun(there)
        await asyncio.to_thread(there.mitm.says, "this relay cannot send requests of viewers")
        await there.captured()


@pytest.mark.parametrize("transport", ["json", "ws"])
def test_a_call_and_a_result_of_real_peers_are_edited(tmp_path, certificate, transport):
    require_peers("python1")
    with serving("python1", transport) as url:
        origin, slash, path = url.rpartition("/")
        with intercepting(tmp_path, "--mode", f"reverse:{origin}") as mitm:
            kind = "http" if transport == "json" else transport
            with talking(prepare.talker(kind, mitm.url + slash + path)) as talk:
                assert talk.ask("one") == "one"
                viewer = Viewer(mitm.captures()[0])
                try:
                    hold_and_edit(viewer, talk, lambda: time.sleep(LOOKS))
                finally:
                    viewer.close()
