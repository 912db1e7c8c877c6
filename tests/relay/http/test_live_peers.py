"""A viewer edits frames of a real SDK client and server in the middle of their session through `mcpspy proxy`.

SDK client ── mcpspy proxy ── SDK server        Streamable HTTP with JSON and with events, HTTP+SSE, and WebSocket
"""

import json
import signal
import sys

import pytest

from mcpspy.capture.records import Frame, Gates
from mcpspy.wire.sse import parse_event
from tests.peers import prepare
from tests.peers.serving import LIMIT, each, running, serving
from tests.relay.harness import until
from tests.relay.talking import hold_and_edit, talking
from tests.relay.viewer import viewing

needs_python1 = pytest.mark.needs(".peers/python1")


def proxied(url, capture):
    return running([sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", "-o", str(capture), url])


@needs_python1
@pytest.mark.parametrize("transport", each(["json", "http", "sse", "ws"], ["sse", "ws"]))
def test_a_call_and_a_result_are_edited_and_a_request_is_sent_again(tmp_path, transport):
    capture = tmp_path / "capture.jsonl"
    kind = "http" if transport == "json" else transport
    with serving("python1", transport) as url, proxied(url, capture) as process:
        ours = process.stdout.readline().strip()
        with talking(prepare.talker(kind, ours)) as talk:
            assert talk.ask("one") == "one"
            with viewing(capture) as viewer:
                known = []

                def settle():
                    known.append(True)
                    until(lambda: len(viewer.records(Gates)) >= len(known), "gates that are in force")

                hold_and_edit(viewer, talk, settle)
                call = next(it for it in viewer.records(Frame) if b'"one"' in it.raw)
                again = json.loads(call.raw) | {"id": "mcpspy-1"}
                again["params"]["arguments"]["text"] = "again"
                viewer.send(json.dumps(again))
                own, answer = until(lambda: of_viewer(viewer), "the answer to a viewer's request")
            assert talk.ask("five") == "five"
        process.send_signal(signal.SIGINT)
        assert process.wait(LIMIT) == 0
    assert json.loads(own.raw) == again
    raw = parse_event(answer.raw).data if transport in ("http", "sse") else answer.raw
    assert json.loads(raw)["result"]["content"][0]["text"] == "again"
    assert (own.sender, own.dropped, answer.sender, answer.dropped) == ("mcpspy", False, None, True)


def of_viewer(viewer):
    """Return the frames of a viewer's own request and its response, if the capture has both."""
    found = [it for it in viewer.records(Frame) if it.by == "viewer" and b"mcpspy-1" in it.raw]
    return found if len(found) == 2 else None
