"""A real SDK client that calls a server for each line, and a viewer that edits frames."""

import json
import subprocess
from contextlib import contextmanager

from mcpspy.wire.sse import parse_event
from tests import limits


class Talk:
    """A conversation: `say` sends a line, and `heard` returns the answer to the oldest one."""

    def __init__(self, process):
        self._process = process

    def say(self, text):
        self._process.stdin.write(f"{text}\n")
        self._process.stdin.flush()

    def heard(self):
        return self._process.stdout.readline().strip()

    def ask(self, text):
        self.say(text)
        return self.heard()


@contextmanager
def talking(command, environ=None):
    """Start the client with a command of `prepare.talker`."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = limits.Popen(command, env=environ, **pipes)
    try:
        yield Talk(process)
        process.stdin.close()
        assert process.wait(limits.LIMIT) == 0
    finally:
        process.kill()
        process.wait(limits.LIMIT)
        process.stdin.close()
        process.stdout.close()


def message_of(frame):
    """Return the message of a held frame, which may be an SSE event."""
    return json.loads(parse_event(frame.raw).data if frame.raw.startswith((b"event:", b"data:")) else frame.raw)


def hold_and_edit(viewer, talk, settled):
    """Hold and edit a call and then a result; `settled` waits until the relay has the gates."""
    viewer.gate({"hold": 60_000_000_000}, **{"from": "client", "method": "tools/call"})
    settled()
    talk.say("two")
    (frame,) = viewer.held()
    message = message_of(frame)
    message["params"]["arguments"]["text"] = "edited"
    viewer.release(frame.held, "edited", json.dumps(message))
    assert talk.heard() == "edited"
    viewer.gate({"hold": 60_000_000_000}, **{"from": "server", "method": "tools/call"})
    settled()
    talk.say("three")
    (frame,) = viewer.held()
    message = message_of(frame)
    assert message["result"]["content"][0]["text"] == "three"
    message["result"]["content"][0]["text"] = "changed"
    viewer.release(frame.held, "edited", json.dumps(message, indent=1))
    assert talk.heard() == "changed"
    viewer.set_gates([])
    settled()
    assert talk.ask("four") == "four"
