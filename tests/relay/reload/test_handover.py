"""The state that outlives a server: ids, running calls, and requests of servers."""

import json

import pytest

from mcpspy.gate.gate import Drop, Pass, Send
from mcpspy.gate.messages import read
from mcpspy.relay.reload.handover import Handover
from tests.memory import objects_in


class Ends:
    """A handover with messages as values; each direction returns the bytes that are forwarded, or None."""

    def __init__(self):
        self.handover = Handover()
        self.extra = []

    def client(self, value):
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return self._carried(raw, self.handover.to_server(raw, read(raw, "lines")))

    def server(self, value):
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        verdict, self.extra = self.handover.to_client(raw, read(raw, "lines"))
        return self._carried(raw, verdict)

    def leave(self, *, keep=True):
        return [json.loads(it) for it in self.handover.leave("reloaded", {"changed": ["a"]}, keep=keep)]

    def _carried(self, raw, verdict):
        assert isinstance(verdict, Pass | Send | Drop)
        if isinstance(verdict, Drop):
            return None
        return verdict.frames[0] if isinstance(verdict, Send) else raw


@pytest.fixture
def ends():
    return Ends()


def test_everything_passes_while_there_is_one_server(ends):
    for value in (b"", b"no JSON", b"[]", {"id": 1, "method": "x"}, {"method": "y"}, {"id": 9, "result": {}}):
        assert ends.client(value) == (value if isinstance(value, bytes) else json.dumps(value).encode())
        assert ends.server(value) == (value if isinstance(value, bytes) else json.dumps(value).encode())
    assert ends.client({"method": "notifications/cancelled", "params": {"requestId": 77}})


@pytest.mark.parametrize("id_", [1, 1.0, "1", 10**30, "é\n"])
def test_a_running_request_is_answered_with_its_own_id(ends, id_):
    ends.client({"id": id_, "method": "tools/call"})
    assert not ends.handover.idle
    [error] = ends.leave()
    assert (error["id"], type(error["id"])) == (id_, type(id_))
    assert error["error"] == {
        "code": -32603,
        "message": "reloaded",
        "data": {"by": "mcpspy wrap --reload", "changed": ["a"]},
    }
    assert ends.handover.idle
    assert ends.leave() == []
    assert ends.client({"method": "notifications/cancelled", "params": {"requestId": id_}}) is None


def test_an_answered_request_is_not_answered_again(ends):
    ends.client({"id": 1, "method": "a"})
    ends.client([{"id": 2, "method": "b"}, {"id": 3, "method": "c"}])
    ends.server({"id": 1, "result": {}})
    ends.server([{"id": 3, "error": {"code": 1, "message": ""}}])
    assert [it["id"] for it in ends.leave()] == [2]


def test_a_later_server_gets_its_own_ids_back(ends):
    assert ends.server({"id": 1, "method": "ping"}) == b'{"id": 1, "method": "ping"}'
    assert ends.leave() == [{"jsonrpc": "2.0", "method": "notifications/cancelled",
                             "params": {"requestId": 1, "reason": "the server was reloaded"}}]  # fmt: skip
    assert (
        ends.server(b'{"id" : 1,"method":"ping", "x":1.50}') == b'{"id" : "mcpspy-server-1","method":"ping", "x":1.50}'
    )
    assert ends.server({"id": 2, "method": "ping"}) == b'{"id": 2, "method": "ping"}'
    assert ends.client({"id": 1, "result": {}}) is None  # for the first server
    assert ends.client(b'{ "result":{},"id":"mcpspy-server-1" }') == b'{ "result":{},"id":1 }'
    assert ends.client({"id": 2, "result": {}}) == b'{"id": 2, "result": {}}'
    assert ends.leave() == []
    assert b'"mcpspy-server-2"' in ends.server({"id": 1, "method": "ping"})


def test_a_server_cancels_its_renumbered_request(ends):
    for _ in range(2):
        ends.server({"id": 5, "method": "sampling/createMessage"})
        ends.leave()
    ends.server({"id": 5, "method": "sampling/createMessage"})
    cancel = {"method": "notifications/cancelled", "params": {"requestId": 5, "reason": "r"}}
    told = json.loads(ends.server(cancel))
    assert told["params"] == {"requestId": "mcpspy-server-2", "reason": "r"}
    assert ends.leave() == []


def test_a_handshake_that_runs_is_kept_for_the_next_server_only(ends):
    raw = b'{"id":0,"method":"initialize", "params":{}}'
    ends.client(raw)
    assert ends.leave(keep=True) == []
    assert ends.handover.resent(handshake=True) == [raw]
    assert ends.handover.resent(handshake=False) == []
    assert [it["id"] for it in ends.leave(keep=False)] == [0]


def test_a_response_to_our_own_request_goes_no_further(ends):
    key, frame = ends.handover.own(b'{"id":0,"method":"initialize","params":{}}')
    assert frame == b'{"id":"mcpspy-reload-1","method":"initialize","params":{}}'
    assert ends.handover.answer(key) is None
    response = b'{"id":"mcpspy-reload-1","result":{}}'
    assert ends.server(response) is None
    assert ends.handover.answer(key) == response


def test_a_subscription_goes_on_and_is_acknowledged_to_the_client_once(ends):
    key = "io.modelcontextprotocol/subscriptionId"
    listen = {"id": "l", "method": "subscriptions/listen", "params": {"notifications": {"toolsListChanged": True}}}
    acknowledged = {"method": "notifications/subscriptions/acknowledged",
                    "params": {"_meta": {key: "l"}, "notifications": {"toolsListChanged": True}}}  # fmt: skip
    ends.client(listen)
    assert ends.handover.idle  # a subscription does not count as a running call
    assert ends.server(acknowledged)
    assert ends.extra == []
    assert ends.leave() == []
    assert ends.handover.resent(handshake=False) == [json.dumps(listen).encode()]
    assert ends.server(acknowledged) is None
    assert [json.loads(it) for it in ends.extra] == [
        {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {key: "l"}}}
    ]
    assert ends.server(acknowledged)  # a second one of the same server is forwarded to the client


def test_what_was_never_answered_is_not_served(ends):
    ends.client({"id": 1, "method": "initialize"})
    assert not ends.handover.served
    ends.server({"id": 1, "result": {}})
    assert ends.handover.served


def test_a_request_that_was_cancelled_is_over(ends):
    """It gets no response; a cancelled subscription is not sent again, and does not delay a reload."""
    for number, method in enumerate(("tools/call", "subscriptions/listen")):
        ends.client({"id": number, "method": method})
        assert ends.client({"method": "notifications/cancelled", "params": {"requestId": number}})
    assert ends.handover.idle
    assert ends.leave() == []
    assert ends.handover.resent(handshake=False) == []


def test_a_handshake_cannot_be_cancelled(ends):
    ends.client({"id": 1, "method": "initialize"})
    ends.client({"method": "notifications/cancelled", "params": {"requestId": 1}})
    assert ends.handover.shaking


def test_ids_of_servers_take_no_more_than_so_much(ends):
    """After more ids than a handover can keep, each request gets an id of mcpspy."""
    for number in range(5000):
        ends.server({"id": number, "method": "ping"})
        ends.client({"id": number, "result": {}})
    ends.leave()
    assert len(objects_in(ends.handover, tuple)) < 100
    for number in range(5000):
        told = json.loads(ends.server({"id": number, "method": "ping"}))
        assert told["id"] == f"mcpspy-server-{number + 1}"
        assert json.loads(ends.client({"id": told["id"], "result": {}}))["id"] == number
    ends.leave()
    assert len(objects_in(ends.handover, tuple)) < 100
