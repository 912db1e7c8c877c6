"""A-22: a member of a server's answer may have any JSON type, in everything that reads answers."""

import json
import threading
from contextlib import suppress

import pytest

from mcpspy.clients import checks
from mcpspy.clients.probe import Answer
from mcpspy.contract.ask import record_offer
from mcpspy.contract.changes import between
from mcpspy.contract.lock import Offered, as_text, locked
from mcpspy.contract.verify.differences import answers
from mcpspy.contract.verify.session import NoSession, said, scouted
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.errors import CaptureError
from mcpspy.replay import run
from mcpspy.replay.offers import changes, surface
from mcpspy.replay.sessions import compare, pair
from mcpspy.replay.tolerance import Rules
from tests.contract.verify.test_session import Scripted
from tests.limits import LIMIT
from tests.replay.scripts import FakeLink, script
from tests.transcript import records
from tests.wrong_types import documents

CAPABILITIES = {"tools": {"listChanged": True}, "resources": {}, "prompts": {}}
INFO = {"name": "weather", "version": "1"}
ANSWERS = {
    "server/discover": {
        "supportedVersions": ["2026-07-28"],
        "capabilities": CAPABILITIES,
        "serverInfo": INFO,
        "_meta": {"io.modelcontextprotocol/serverInfo": INFO},
    },
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": CAPABILITIES,
        "serverInfo": INFO,
        "instructions": "x",
    },
    "tools/list": {
        "tools": [
            {
                "name": "a",
                "description": "d",
                "inputSchema": {"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}},
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
            }
        ],
        "nextCursor": "2",
    },
    "resources/list": {"resources": [{"uri": "a:b", "name": "b"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "a:{b}", "name": "b"}]},
    "prompts/list": {"prompts": [{"name": "p", "arguments": [{"name": "c", "required": True}]}]},
    "tools/call": {"content": [{"type": "text", "text": "x"}], "structuredContent": {"a": 1}, "isError": False},
}
REFUSAL = {"code": -32601, "message": "no", "data": 1}


def servers(method):
    """Yield servers with one wrong answer to a method, each as a function from request to outcome."""
    usual = {name: {"result": result} for name, result in ANSWERS.items()}
    if method != "server/discover":  # an older server, which refuses that
        usual["server/discover"] = {"error": REFUSAL}
    for name, result in documents(ANSWERS[method]):
        yield name, usual | {method: {"result": result}}
    for name, error in documents(REFUSAL):
        yield f"error {name}", usual | {method: {"error": error}}


def every(method, read):
    """Call `read` with each of these servers. Fail with the names of those for which it raises."""
    failed = []
    for name, outcomes in servers(method):

        def answer(request, outcomes=outcomes):
            outcome = outcomes.get(request["method"], {"error": REFUSAL})
            if request["method"] == "tools/list" and request.get("params", {}).get("cursor") is not None:
                outcome = {"result": {"tools": []}}
            return [{"jsonrpc": "2.0", "id": request["id"], **outcome}]

        try:
            read(answer)
        except Exception as error:  # any is a failure, and all are reported
            failed.append(f"{name}: {type(error).__name__}: {error}"[:200])
    assert not failed, f"{len(failed)}: {failed[:20]}"


def verify(answer):
    try:
        plan = scouted(Scripted(answer), 1, {"all": {}})
    except NoSession:
        return
    one, other = (said(plan, Scripted(answer), 1) for _ in range(2))
    answers(plan, [one], [other])


def lines_of(answer):
    """Return a function from a line of the client to the lines of a server."""

    def reply(line):
        message = json.loads(line)
        return [json.dumps(it) for it in answer(message)] if "id" in message and "method" in message else []

    return reply


class WaitingLink(FakeLink):
    """The same, for a caller that waits until it is closed."""

    interrupted = False
    path = ""

    def __init__(self, server):
        super().__init__(server)
        self._end = threading.Event()

    def close(self):
        self._end.set()

    def wait(self):
        self._end.wait(LIMIT)


def offered(answer):
    """Return what is known of a server after all its listings were requested."""
    server = lines_of(answer)
    links = []

    def connect():
        links.append(WaitingLink(server))
        return links[-1]

    with suppress(CaptureError):  # what it lists is not complete
        record_offer(connect, 1, 1)
    link = links[-1]
    text = "\n".join(f"> {line}" + "".join(f"\n< {it}" for it in server(line)) for line in link.sent)
    found = Offered()
    conversation = Conversation()
    for record in records(text):
        for event in conversation.feed(record):
            if isinstance(event, Message):
                found.add(event)
    return found


def usual(request):
    return [{"jsonrpc": "2.0", "id": request["id"], "result": ANSWERS.get(request["method"], {})}]


def lock(answer):
    now = locked(offered(answer))
    as_text({"weather": now})
    for old, new in ((locked(offered(usual)), now), (now, locked(offered(usual)))):
        list(between(old, new))


def doctor(answer):
    for method in ("server/discover", "initialize"):
        [message] = answer({"id": 1, "method": method})
        if isinstance(message.get("result"), dict):
            list(checks.of_answer(Answer(method, message["result"])))


def replay(answer):
    recorded = lines_of(usual)
    asked = [{"jsonrpc": "2.0", "id": number, "method": method} for number, method in enumerate(ANSWERS, 1)]
    text = "\n".join(f"> {json.dumps(it)}\n< {recorded(json.dumps(it))[0]}" for it in asked)
    old = script(text)
    link = FakeLink(lines_of(answer))
    run.Player(old, link, ()).run()
    lines = lines_of(answer)
    new = script("\n".join(f"> {it}" + "".join(f"\n< {one}" for one in lines(it)) for it in link.sent))
    for one, other in ((old, new), (new, old)):
        list(compare(one, other, pair(one, other), Rules()))
        changes(surface(one), surface(other))


@pytest.mark.parametrize("read", [verify, lock, doctor, replay])
@pytest.mark.parametrize("method", ANSWERS)
def test_a_22_any_member_of_an_answer_may_have_any_type(method, read, monkeypatch):
    monkeypatch.setattr(run, "GRACE", 0.01)
    every(method, read)
