"""The messages of the client: derived from a server, or taken from a capture."""

import json
import queue

import pytest

from mcpspy.contract.verify.session import NoSession, SessionPlan, recorded, said, scouted
from mcpspy.errors import UsageError
from mcpspy.replay.script import load
from mcpspy.transport.link import Ended
from tests.each import each
from tests.transcript import capture

PAGES = {None: (["a", "b"], "2"), "2": (["c"], None)}


class Scripted:
    """A server that answers with the messages that a function returns; None means no answer."""

    def __init__(self, answer):
        self.asked = []
        self.heard = queue.SimpleQueue()
        self._answer = answer

    def send(self, line):
        message = json.loads(line)
        self.asked.append(message)
        if "id" in message and "method" in message:
            for it in self._answer(message) or []:
                self.heard.put(json.dumps(it).encode() if it else Ended("ended"))

    @property
    def methods(self):
        return [message.get("method") for message in self.asked]


def modern(message):
    method, number = message["method"], message["id"]
    result = {
        "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "prompts": {}}},
        "tools/call": {"content": []},
        "prompts/list": {"prompts": []},
        "ping": {},
    }.get(method)
    if method == "tools/list":
        names, cursor = PAGES[message.get("params", {}).get("cursor")]
        hints = {"a": {"readOnlyHint": True}, "b": {"readOnlyHint": True}, "c": {}}
        schemas = {"b": {"required": ["x"]}}
        tools = [{"name": it, "inputSchema": schemas.get(it, {}), "annotations": hints[it]} for it in names]
        result = {"tools": tools} | ({"nextCursor": cursor} if cursor else {})
    if result is None:
        return [{"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no such method"}}]
    return [{"jsonrpc": "2.0", "id": number, "result": result}]


def test_listings_are_asked_for_and_tools_called_that_read_and_need_nothing():
    plan = scouted(Scripted(modern), 1, {})
    assert [message.label for message in plan.messages] == [
        "server/discover", "initialize", "notifications/initialized", "tools/list", "tools/list", "prompts/list",
        "ping", "tools/call a",
    ]  # fmt: skip
    assert [message.method for message in plan.greeting] == [
        "server/discover",
        "initialize",
        "notifications/initialized",
    ]
    assert plan.ping(7).line == b'{"jsonrpc":"2.0","id":7,"method":"ping"}'


@pytest.mark.parametrize(
    ("calls", "called"),
    [({"c": {"x": 1}}, {"a": {}, "c": {"x": 1}}), ({"all": {}, "b": {"x": 2}}, {"a": {}, "b": {"x": 2}, "c": {}})],
)
def test_more_tools_are_called_when_they_are_named(calls, called):
    server = Scripted(modern)
    scouted(server, 1, calls)
    params = [message["params"] for message in server.asked if message.get("method") == "tools/call"]
    assert {it["name"]: it["arguments"] for it in params} == called


def test_a_plan_is_said_as_it_was():
    server = Scripted(modern)
    plan = scouted(server, 1, {})
    again = Scripted(modern)
    transcript = said(plan, again, 1)
    assert again.asked == server.asked
    assert len(transcript.answers) == 7
    assert transcript.trouble is None


def test_requests_of_the_server_are_answered():
    def asks(message):
        asked = [
            {"jsonrpc": "2.0", "id": n, "method": method} for n, method in ((8, "ping"), ("é", "roots/list"), (9, "x"))
        ]
        return [*asked, *modern(message)] if message["method"] == "ping" else modern(message)

    server = Scripted(asks)
    scouted(server, 1, {})
    answers = [message for message in server.asked if "method" not in message]
    assert [it.get("result", it.get("error", {}).get("code")) for it in answers] == [{}, {"roots": []}, -32601]
    assert [it["id"] for it in answers] == [8, "é", 9]


def test_a_request_without_an_answer_is_left_out():
    plan = scouted(Scripted(lambda message: None if message["method"] == "ping" else modern(message)), 0.01, {})
    assert "ping" not in [message.method for message in plan.messages]
    assert plan.left_out == ("no answer to ping within 0.01 s",)


def test_a_session_that_breaks_off_is_told():
    plan = scouted(Scripted(modern), 1, {})
    transcript = said(plan, Scripted(lambda message: [None] if message["method"] == "ping" else modern(message)), 1)
    assert transcript.trouble == "the server ended before it answered ping"


@each(
    "answer, sentence",
    [
        (lambda _: None, "no answer to initialize within 0.01 s"),
        (lambda _: [None], "the server ended before it answered server/discover"),
        (
            lambda it: [{"jsonrpc": "2.0", "id": it["id"], "error": {"code": 1, "message": "go away"}}],
            "the server refuses initialize: go away",
        ),
    ],
)
def test_a_server_that_does_not_greet(answer, sentence):
    with pytest.raises(NoSession, match=sentence):
        scouted(Scripted(answer), 0.01, {})


TOOLS = '{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"write","inputSchema":{}}'
SESSION = """
    = 2025-11-25
    > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
    < {"jsonrpc":"2.0","id":2,"result":{"tools":[TOOLS],"nextCursor":"abc"}}
    > {"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"cursor":"abc"}}
    < {"jsonrpc":"2.0","id":3,"result":{"tools":[]}}
    > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"write","arguments":{}}}
    < {"jsonrpc":"2.0","id":4,"result":{"content":[]}}
    > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"look","arguments":{}}}
    < {"jsonrpc":"2.0","id":5,"result":{"content":[]}}
    > {"jsonrpc":"2.0","id":6,"method":"logging/setLevel","params":{"level":"debug"}}
    < {"jsonrpc":"2.0","id":6,"result":{}}
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    capture("a.jsonl", SESSION.replace("TOOLS", TOOLS))
    return load("a.jsonl", lambda _: None)


@pytest.mark.parametrize(
    ("calls", "called"), [((), ["tools/call look"]), (("write",), ["tools/call write", "tools/call look"])]
)
def test_a_capture_gives_what_only_reads(script, calls, called):
    plan = recorded(script, calls)
    assert [message.label for message in plan.messages] == [
        "initialize", "notifications/initialized", "tools/list", "tools/list", *called,
    ]  # fmt: skip


def test_a_tool_that_the_capture_does_not_call(script):
    with pytest.raises(UsageError, match="there is no tool 'wirte'; did you mean 'write'"):
        recorded(script, ["wirte"])


def test_a_cursor_is_that_of_the_server_that_is_asked(script):
    def answer(message):
        result = {"tools": [], "nextCursor": "other"} if message["id"] == 2 else {}
        return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]

    server = Scripted(answer)
    said(recorded(script, ()), server, 1)
    assert [it["params"]["cursor"] for it in server.asked if "cursor" in it.get("params", {})] == ["other"]


def test_without_a_handshake_requests_state_their_revision():
    assert json.loads(SessionPlan((), stateless=True).ping(1).line)["method"] == "server/discover"


@each("name", [None, 5, ["a"], {}])
def test_a_22_a_tool_whose_name_is_not_a_text_is_not_called(name):
    def answer(message):
        answers = modern(message)
        if message["method"] == "tools/list":
            answers[0]["result"] = {"tools": [{"name": name, "annotations": {"readOnlyHint": True}}]}
        return answers

    server = Scripted(answer)
    scouted(server, 1, {"all": {}})
    assert "tools/call" not in server.methods
