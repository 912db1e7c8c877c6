"""Messages that are held, forwarded or refused while a server is replaced, without processes."""

import json
import os
import threading

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Release
from mcpspy.process.pipes import waiting
from mcpspy.recording.recording import Channel, Recording
from mcpspy.relay.reload import session as module
from mcpspy.relay.reload.server import LineSink, ReloadableServer
from mcpspy.relay.reload.session import FAILED, HOLDING, IDLING, ReloadSession
from tests import limits
from tests.relay.harness import until
from tests.relay.reload.test_server import Pipes
from tests.transcript import begin


class Stage:
    """A session with pipes in place of a client and a server."""

    def __init__(self, path):
        self.path, self.said, self.woken, self.t = path, [], 0, 0
        recording = Recording(self.said.append, sink=begin(path))
        self.there, self.back = Channel(recording, 0, "client", "stdin"), Channel(recording, 0, "server", "stdout")
        self.errors = Channel(recording, 0, "server", "stderr")
        self.session = ReloadSession(self.there, self.back, self.now, self.said.append, self.wake)
        self.reads, writes = os.pipe()
        self.session.client = LineSink(writes, self.back)
        self.pipes, self.servers = [], []
        self.server = self.start()

    def now(self):
        self.t += 1
        return self.t

    def wake(self):
        self.woken += 1

    def start(self):
        """Replace the server by a new one."""
        self.pipes.append(Pipes())
        self.server = self.session.server = ReloadableServer(
            self.pipes[-1].child, len(self.pipes), self.there, self.errors, 0
        )
        self.servers.append(self.server)
        return self.server

    def client(self, **message):
        self.session.from_client(json.dumps(message).encode(), self.now())

    def serve(self, **message):
        self.session.from_server(self.server, json.dumps(message).encode(), True, self.now())

    def got(self):
        """Return the lines that the server has received since the last call."""
        return limits.read(self.pipes[-1].stdin, 65536).splitlines()

    def told(self):
        """Return the messages that the client has received since the last call."""
        return [json.loads(line) for line in limits.read(self.reads, 65536).splitlines()]

    def records(self, kind):
        return [it for it in Capture(str(self.path)).records(1 << 62) if isinstance(it, kind)]


@pytest.fixture
def stage(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "REST", 0.01)
    stage = Stage(tmp_path / "capture.jsonl")
    yield stage
    for pipes in stage.pipes:
        pipes.close()
        os.close(pipes.child.stdout)
        os.close(pipes.child.stderr)
    for server in stage.servers:
        server.stdin.close()
    stage.session.client.close()
    os.close(stage.reads)


def test_all_waits_in_its_order_until_the_server_is_ready(stage):
    """A ping is answered meanwhile; a request that is cancelled while it waits reaches nobody."""
    stage.session.set_mode(HOLDING, "why", {})
    stage.client(id=1, method="tools/call")
    stage.client(method="notifications/progress")
    stage.client(id=2, method="tools/call")
    stage.client(id="p", method="ping")
    assert stage.told() == [{"jsonrpc": "2.0", "id": "p", "result": {}}]
    stage.client(id=3, method="tools/call")
    stage.client(method="notifications/cancelled", params={"requestId": 3})
    server = stage.start()
    stage.session.begin(server)
    assert [json.loads(line).get("id") for line in stage.got()] == [1, None, 2]
    assert server.ready
    releases = {it.held: (it.how, it.by) for it in stage.records(Release)}
    assert releases == dict.fromkeys((1, 2, 3), ("delayed", None)) | {4: ("cancelled", "reload")}
    frames = [(it.held, it.sender, it.by, it.dropped) for it in stage.records(Frame)]
    assert frames == [
        *((held, None, "reload", False) for held in (1, 2, 3)),
        (None, None, "reload", True),
        (None, "mcpspy", "reload", False),
        (4, None, "reload", False),
        (None, None, "reload", True),
    ]
    stage.client(id=4, method="tools/call")
    assert stage.got()
    assert stage.records(Frame)[-1].by is None
    os.close(stage.pipes[-1].stdin)
    stage.pipes[-1].stdin = os.open(os.devnull, os.O_RDONLY)
    stage.client(id=5, method="tools/call")  # no server takes it
    assert [(it.dropped, it.by) for it in stage.records(Frame)][-1] == (True, "reload")
    stage.session.set_mode(FAILED, "it does not run", {})
    stage.session.from_client(b'[{"id":6,"method":"a"},{"method":"b"},{"id":7,"method":"c"}]', 1)
    assert [it["id"] for it in stage.told()] == [6, 7]


@pytest.mark.parametrize("limit", ["HELD_LINES", "HELD_BYTES"])
def test_too_much_is_refused(stage, monkeypatch, limit):
    monkeypatch.setattr(module, limit, 1 if limit == "HELD_LINES" else 60)
    stage.session.set_mode(HOLDING, "too many", {"changed": ["a"]})
    stage.client(id=1, method="tools/call")
    stage.client(id=2, method="tools/call", params={"name": "a long name"})
    [error] = stage.told()
    assert (error["id"], error["error"]["message"]) == (2, "too many")


def test_with_idle_only_requests_wait_and_the_last_response_wakes(stage):
    stage.client(id=1, method="tools/call")
    stage.session.set_mode(IDLING, "why", {})
    assert not stage.session.idle
    stage.client(id=2, method="tools/call")
    stage.client(method="notifications/progress")
    assert [json.loads(line).get("id") for line in stage.got()] == [1, None]
    woken = stage.woken
    stage.serve(id=1, result={})
    assert (stage.session.idle, stage.woken) == (True, woken + 1)


def test_what_waits_for_a_server_that_fails_is_answered(stage):
    stage.session.set_mode(HOLDING, "why", {})
    stage.client(id=1, method="tools/call")
    stage.client(method="notifications/initialized")
    server = stage.start()
    server.exited.set()
    stage.session.fail(server, "it ended", {"exit": 1})
    assert [(it["id"], it["error"]["message"], it["error"]["data"]["exit"]) for it in stage.told()] == [
        (1, "it ended", 1)
    ]
    assert [it.how for it in stage.records(Release)] == ["answered", "dropped"]
    stage.client(id=2, method="tools/call")
    assert [it["id"] for it in stage.told()] == [2]


def test_a_failure_does_not_stop_the_next_server(stage):
    """The files changed again before the failure of the old server was handled."""
    failed = stage.server
    stage.session.set_mode(HOLDING, "why", {})
    stage.client(id=1, method="tools/call")
    failed.exited.set()
    stage.session.fail(failed, "it ended", {})
    stage.session.begin(stage.start())
    assert [json.loads(line)["id"] for line in stage.got()] == [1]


def test_a_server_that_is_replaced_while_it_starts_takes_nothing(stage):
    stage.session.set_mode(HOLDING, "why", {})
    stage.client(id=1, method="tools/call")
    early = stage.start()
    stage.session.set_mode(HOLDING, "again", {})
    stage.session.begin(early)
    assert not early.ready
    stage.session.begin(stage.start())
    assert [json.loads(line)["id"] for line in stage.got()] == [1]


def test_a_handshake_is_waited_for_until_the_server_exits(stage):
    stage.client(id=0, method="initialize", params={})
    stage.got()
    stage.serve(id=0, result={"capabilities": {}})
    stage.session.set_mode(HOLDING, "why", {})
    server = stage.start()
    turning = threading.Thread(target=stage.session.begin, args=(server,), daemon=True)
    turning.start()
    assert json.loads(stage.got()[0])["id"] == "mcpspy-reload-1"
    server.exited.set()
    server.answered.set()
    turning.join(limits.LIMIT)
    assert not turning.is_alive()
    assert not server.ready


def test_the_rest_of_a_line_of_a_server_that_was_replaced_goes_nowhere(stage):
    stage.session.set_mode(HOLDING, "why", {})
    stage.session.from_server(stage.server, b'{"id":1,"resu', False, stage.now())
    stage.server.over = True
    stage.serve(id=2, result={})
    assert [(it.cut, it.dropped, it.by) for it in stage.records(Frame)] == [
        (True, True, "reload"),
        (False, True, "reload"),
    ]


def test_a_client_that_reads_no_more_may_still_send(stage):
    """V-01: the thread of the server never waits for its stdin."""
    os.close(stage.reads)
    stage.reads = os.open(os.devnull, os.O_RDONLY)
    stage.server.ready = True
    size, pipe = 300_000, stage.pipes[-1].stdin
    sender = threading.Thread(target=stage.session.from_client, args=(b"x" * (size - 1), 0), daemon=True)
    sender.start()
    until(lambda: waiting(pipe) >= 65536, "a write that waits for the server")
    limits.within(lambda: stage.serve(id=1, result={}), seconds=10)
    while size:
        size -= len(limits.read(pipe, 65536))
    sender.join(limits.LIMIT)
    assert (stage.session.reader_left, stage.session.client_left) == (True, False)
    assert stage.woken
    assert stage.server.stdout.read() == b""
    stage.client(id=2, method="ping")
    assert len(stage.got()) == 1


def test_a_client_that_leaves_while_its_requests_wait_is_served_first(stage):
    stage.session.set_mode(HOLDING, "why", {})
    stage.client(id=1, method="tools/call")
    stage.session.client_ends()
    stage.session.begin(stage.start())
    assert len(stage.got()) == 1
    assert limits.read(stage.pipes[-1].stdin, 1) == b""


def test_a_bug_of_ours_lets_lines_pass(stage, monkeypatch):
    monkeypatch.setattr(module.Handover, "to_server", lambda *_: 1 / 0)
    monkeypatch.setattr(module.Handover, "to_client", lambda *_: 1 / 0)
    stage.client(id=1, method="x")
    assert stage.got()
    stage.serve(id=1, result={})
    assert stage.told()
    assert all("ZeroDivisionError" in sentence for sentence in stage.said)
