"""Viewers set gates on a running `mitm`, and decide on held frames."""

import asyncio
import time

import pytest

from mcpspy.capture.records import Frame
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import serving
from tests.relay.http.test_upstream import CALL
from tests.relay.interception import intercepting, interception, needs_mitmproxy
from tests.relay.mitm.test_addon import ANSWER, POST, asked
from tests.relay.mitm.test_gated_events import answered
from tests.relay.stage import scripted
from tests.relay.talking import hold_and_edit, talking
from tests.relay.viewer import Viewer, viewing

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
