"""No finding blames a peer for an act of a gate, and the faults of the peers themselves are still found.

Each session is clean without its gate. The peers react to the gate as real peers do: they wait, cancel, retry, or
answer the message that they received. The gate is recorded as a relay records it.
"""

import pytest

from mcpspy.capture.records import Frame
from tests.each import each
from tests.rules.examples import judged
from tests.rules.gate_sessions import TRANSPORTS, error, notification, request, result

ECHO = {
    "name": "echo",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}
OTHER = {"name": "other", "inputSchema": {"type": "object"}}
CALL = request(3, "tools/call", name="echo", arguments={"text": "a"}, _meta={"progressToken": 3})
DONE = result(3, content=[], structuredContent={"n": 1})
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
INITIALIZE = request(
    1,
    "initialize",
    protocolVersion="2025-06-18",
    capabilities={"roots": {"listChanged": True}},
    clientInfo={"name": "c", "version": "1"},
)
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def progress(value, token=3):
    return notification("notifications/progress", progressToken=token, progress=value)


def cancel(number):
    return notification("notifications/cancelled", requestId=number)


def begin(wire, *, answer=None, initialized=None, listed=None):
    """Add the handshake and the listing, and the acts of a gate on them."""
    wire.client(INITIALIZE)
    wire.server(result(1, **HELLO), of=1, **(answer or {}))
    wire.client(INITIALIZED, **(initialized or {}))
    wire.client(request(2, "tools/list"))
    wire.server(result(2, tools=[ECHO, OTHER]), of=2, **(listed or {}))


def plant(wire, number):
    """Add faults of both peers: a call with bad arguments, and two answers to it, one of them without a version."""
    wire.client(request(number, "tools/call", name="echo", arguments={"text": number}))
    wire.server({"id": number, "result": {"content": [], "structuredContent": {"n": 1}}}, of=number, open=True)
    wire.server(result(number, content=[], structuredContent={"n": 1}), of=number)


PLANTED = {
    ("jsonrpc/version-missing", "server"),
    ("pairing/duplicate-response", "server"),
    ("tools/arguments", "client"),
}


def work(wire, *, of=3):
    """Add what the server sends for the call, and the client's answer to its request."""
    wire.server(progress(1), of=of)
    wire.server(request(1, "roots/list"), of=of)
    wire.client(result(1, roots=[]))
    wire.server(progress(2), of=of)
    wire.server(DONE, of=of)


def go_on(wire):
    """Continue the session for so long that unanswered requests become findings."""
    wire.wait(200)
    wire.client(request(20, "tools/call", name="other", arguments={}))
    wire.server(result(20, content=[]), of=20)
    wire.wait(300)


# Acts on the request of the client.


def request_passes(wire):
    wire.client(CALL)
    work(wire)


def request_dropped(wire):
    wire.client(CALL, sent=None)
    wire.wait(70)
    wire.client(cancel(3))


def request_dropped_and_never_cancelled(wire):
    wire.client(CALL, sent=None)


def request_repeated(wire):
    wire.client(CALL, sent=CALL)
    wire.made("client", CALL)
    for _ in range(2):
        wire.server(progress(1), of=3, open=True)
        wire.server(progress(2), of=3, open=True)
        wire.server(DONE, of=3, open=True)


def request_answered(wire):
    wire.client(CALL, sent=None, answered=True)
    wire.made("server", error(3), of=3)


def request_answered_after_a_hold(wire):
    wire.client(CALL, sent=None, hold=12, how="answered", answered=True)
    wire.wait(12)
    wire.made("server", DONE, of=3)


def request_for_another_tool(wire):
    wire.client(CALL, sent=request(3, "tools/call", name="other", arguments={}))
    wire.server(result(3, content=[]), of=3)


def request_of_another_method(wire):
    wire.client(CALL, sent=request(3, "prompts/list"))
    wire.server(result(3, prompts=[]), of=3)


def request_with_another_id(wire):
    wire.client(CALL, sent=CALL | {"id": 33})
    wire.server(DONE | {"id": 33}, of=3)
    wire.wait(70)
    wire.client(cancel(3))


def request_with_another_token(wire):
    wire.client(CALL, sent=request(3, "tools/call", name="echo", arguments={"text": "a"}, _meta={"progressToken": "x"}))
    wire.server(progress(1, "x"), of=3)
    wire.server(DONE, of=3)


def request_garbled(wire):
    wire.client(CALL, sent=b'{"jsonrpc":"2.0","id":')
    wire.server(error(None, -32700, "Parse error"), of=3)
    wire.wait(70)
    wire.client(cancel(3))


def request_held_and_cancelled(wire):
    wire.client(CALL, sent=None, hold=60.001, how="cancelled")
    wire.wait(60)
    wire.client(cancel(3), sent=None)


def request_held_for_too_long(wire):
    wire.client(CALL, hold=61, how="expired")
    wire.wait(62)
    wire.server(progress(1), of=3)
    wire.client(cancel(3))
    wire.server(DONE, of=3)


def request_held_until_the_end(wire):
    wire.client(CALL, hold=1000, how="expired")


def request_delayed(wire):
    wire.client(CALL, hold=2, how="delayed")
    wire.wait(2)
    work(wire)


def request_delayed_and_edited(wire):
    wire.client(CALL, hold=2, how="delayed", sent=request(3, "tools/call", name="other", arguments={}))
    wire.wait(2)
    wire.server(result(3, content=[]), of=3)


def request_sent_by_a_viewer(wire):
    request_passes(wire)
    again = CALL | {"id": "mcpspy-1"}
    wire.made("client", again, by="viewer")
    wire.server(progress(1), of="mcpspy-1")
    wire.server(DONE | {"id": "mcpspy-1"}, of="mcpspy-1", sent=None, by="viewer")


# Acts on the response.


def response_dropped(wire):
    wire.client(CALL)
    wire.server(DONE, of=3, sent=None)
    wire.wait(70)
    wire.client(cancel(3))


def response_dropped_and_sent_again(wire):
    wire.client(CALL)
    wire.server(DONE, of=3, sent=None)
    wire.client(request(6, "tools/call", name="echo", arguments={"text": "a"}))
    wire.server(result(6, content=[], structuredContent={"n": 1}), of=6)


def response_edited(wire):
    wire.client(CALL)
    wire.server(DONE, of=3, sent=result(3, content=[]))


def response_with_another_id(wire):
    wire.client(CALL)
    wire.server(DONE, of=3, sent=DONE | {"id": "3"})
    wire.wait(70)
    wire.client(cancel(3))


def response_garbled(wire):
    wire.client(CALL)
    wire.server(DONE, of=3, sent=b"\xef\xbb\xbf{")
    wire.wait(70)
    wire.client(cancel(3))


def response_repeated(wire):
    wire.client(CALL)
    wire.server(DONE, of=3, sent=DONE, open=True)
    wire.made("server", DONE, of=3)


def response_held_and_cancelled(wire):
    wire.client(CALL)
    wire.server(DONE, of=3, hold=65, how="expired")
    wire.wait(60)
    wire.client(cancel(3))


def response_delayed(wire):
    wire.client(CALL)
    wire.server(DONE, of=3, hold=2, how="delayed")
    wire.wait(2)


# Acts on notifications.


def notification_dropped(wire):
    wire.client(CALL)
    wire.server(progress(1), of=3, sent=None)
    wire.server(DONE, of=3)


def notification_repeated(wire):
    wire.client(CALL)
    wire.server(progress(1), of=3, sent=progress(1))
    wire.made("server", progress(1), of=3)
    wire.server(progress(2), of=3)
    wire.server(DONE, of=3)


def notification_held_beyond_the_response(wire):
    wire.client(CALL)
    wire.server(progress(1), of=3, hold=2, how="delayed")
    wire.server(DONE, of=3, hold=2, how="delayed")
    wire.wait(2)


def cancellation_dropped(wire):
    wire.client(CALL)
    wire.client(cancel(3), sent=None)
    wire.server(progress(1), of=3)
    wire.server(DONE, of=3)


def cancellation_made(wire):
    """The server takes it for a cancellation by the client, and never answers."""
    wire.client(CALL)
    wire.client(notification("notifications/roots/list_changed"), sent=cancel(3))


def request_of_the_server_dropped(wire):
    """The call gets no answer, because the server waits for its client."""
    wire.client(CALL)
    wire.server(request(1, "roots/list"), of=3, sent=None)


def response_of_the_client_dropped(wire):
    wire.client(CALL)
    wire.server(request(1, "roots/list"), of=3)
    wire.client(result(1, roots=[]), sent=None)


KINDS = ("request", "response", "notification", "cancellation")
SCENES = [scene for name, scene in globals().items() if name.split("_")[0] in KINDS and "_" in name]


@pytest.mark.parametrize("transport", TRANSPORTS)
@each("scene", SCENES, ids=lambda scene: scene.__name__)
def test_a_gate_makes_no_finding(transport, scene):
    wire = TRANSPORTS[transport]("edit")
    begin(wire)
    scene(wire)
    go_on(wire)
    wire.end()
    assert judged(wire.records) == []


@pytest.mark.parametrize("transport", TRANSPORTS)
@each("scene", SCENES, ids=lambda scene: scene.__name__)
def test_faults_of_the_peers_are_found_before_and_after_a_gate_acts(transport, scene):
    wire = TRANSPORTS[transport]("edit")
    begin(wire)
    plant(wire, 10)
    scene(wire)
    plant(wire, 11)
    go_on(wire)
    wire.end()
    found = judged(wire.records)
    assert {(it.rule, it.blame) for it in found} == PLANTED
    assert len(found) == 2 * len(PLANTED)


# Acts on the handshake and the listing.


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_speaks_the_revision_that_a_gate_told_it(transport):
    wire = TRANSPORTS[transport]("edit")
    wire.version = "2025-03-26"
    begin(wire, answer={"sent": result(1, **HELLO | {"protocolVersion": "2025-03-26"})})
    if transport == "stdio":
        wire.client([request(5, "ping"), request(6, "ping")])
    wire.client(INITIALIZE | {"id": 7})
    wire.server(error(7), of=7)
    wire.end()
    found = [it.rule for it in judged(wire.records) if it.rule.startswith(("lifecycle/", "http/", "jsonrpc/"))]
    assert found == (["lifecycle/handshake-failed"] if transport == "http" else [])  # over HTTP it is another session


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_calls_tools_as_a_gate_listed_them(transport):
    wire = TRANSPORTS[transport]("edit")
    ghost, echo = OTHER | {"name": "ghost"}, OTHER | {"name": "echo"}
    begin(wire, listed={"sent": result(2, tools=[ghost, echo])})
    for number, name in ((5, "ghost"), (6, "echo")):
        wire.client(request(number, "tools/call", name=name, arguments={}))
        wire.server(result(number, content=[], isError=True), of=number)
    wire.end()
    assert judged(wire.records) == []


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_does_not_answer_for_the_words_that_a_gate_has_listed(transport):
    wire = TRANSPORTS[transport]("answer")
    begin(wire)
    wire.client(request(4, "tools/list"), sent=None, answered=True)
    wire.made("server", result(4, tools=[ECHO | {"description": "Of the gate"}]), of=4)
    wire.client(request(5, "tools/list"))
    wire.server(result(5, tools=[ECHO]), of=5)
    wire.end()
    assert [it for it in judged(wire.records) if it.rule.endswith("definition-changed")] == []


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_client_calls_tools_as_they_were_listed_before_while_a_gate_holds_the_new_listing(transport):
    wire = TRANSPORTS[transport]("delay")
    begin(wire)
    wire.client(request(4, "tools/list"))
    strict = ECHO | {"inputSchema": {"type": "object", "required": ["more"]}}
    wire.server(result(4, tools=[strict]), of=4, hold=5, how="delayed")
    for number in (5, 6):
        wire.client(request(number, "tools/call", name="echo", arguments={"text": "a"}))
        wire.server(result(number, content=[], isError=True), of=number)
        wire.wait(6)
    wire.end()
    assert [(it.rule, it.blame) for it in judged(wire.records)] == [
        ("tools/definition-changed", "server"),
        ("tools/arguments", "client"),
    ], "of the second call only"


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("gated", [{"sent": None}, {"hold": 9, "how": "delayed"}], ids=["dropped", "delayed"])
def test_a_server_that_waits_for_its_client_is_not_to_blame(transport, gated):
    wire = TRANSPORTS[transport]("drop")
    begin(wire, initialized=gated)
    wire.client(request(5, "tools/call", name="other", arguments={}))
    wire.server(error(5, -32600, "not initialized"), of=5)
    wire.wait(10)
    wire.end()
    assert judged(wire.records) == []


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("gated", [{"sent": result(4, tools=[OTHER])}, {}], ids=["edited", "not edited"])
def test_a_client_reads_the_pages_that_a_gate_let_it_know(transport, gated):
    wire = TRANSPORTS[transport]("edit")
    begin(wire)
    wire.client(request(4, "tools/list"))
    wire.server(result(4, tools=[OTHER], nextCursor="2"), of=4, **gated)
    go_on(wire)
    wire.end()
    found = [it.rule for it in judged(wire.records) if it.rule.startswith("paging/")]
    assert found == ([] if gated else ["paging/unread-pages"])


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("gated", [{"sent": None}, {}], ids=["dropped", "not dropped"])
def test_a_client_knows_only_the_changes_that_a_gate_let_through(transport, gated):
    wire = TRANSPORTS[transport]("drop")
    begin(wire)
    wire.client(request(4, "tools/call", name="other", arguments={}))
    wire.server(notification("notifications/tools/list_changed"), of=4, **gated)
    wire.server(result(4, content=[]), of=4)
    go_on(wire)
    wire.end()
    found = [it.rule for it in judged(wire.records) if it.rule.startswith("paging/")]
    assert found == ([] if gated else ["paging/change-ignored"])


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("gated", [{"sent": request(5, "tools/list", cursor="1")}, {}], ids=["edited", "not edited"])
def test_a_server_answers_the_cursor_that_a_gate_let_through(transport, gated):
    wire = TRANSPORTS[transport]("edit")
    begin(wire)
    wire.client(request(4, "tools/list"))
    wire.server(result(4, tools=[OTHER], nextCursor="2"), of=4)
    wire.client(request(5, "tools/list", cursor="2"), **gated)
    wire.server(result(5, tools=[OTHER], nextCursor="2"), of=5)
    wire.end()
    found = [it.rule for it in judged(wire.records) if it.rule.startswith("paging/")]
    assert found == ([] if gated else ["paging/no-advance"])


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("edited", [True, False], ids=["edited", "not edited"])
def test_a_server_refuses_the_arguments_that_a_gate_let_through(transport, edited):
    wire = TRANSPORTS[transport]("edit")
    begin(wire)
    bad = request(5, "tools/call", name="echo", arguments={"text": 5})
    wire.client(request(5, "tools/call", name="echo", arguments={"text": "a"}), **({"sent": bad} if edited else {}))
    wire.server(error(5, -32602, "text must be a string"), of=5)
    wire.end()
    assert [it.rule for it in judged(wire.records)] == ([] if edited else ["tools/arguments-fit"])


# A gate ends a stream, or the server.


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("declared", ["close", None], ids=["declared", "unknown"])
def test_nobody_is_to_blame_for_what_would_have_come_on_a_stream_that_a_gate_closed(transport, side, declared):
    wire = TRANSPORTS[transport](declared)
    begin(wire)
    plant(wire, 10)
    if side == "client":
        wire.client(CALL, sent=None, answered=True)
    else:
        wire.client(CALL)
        wire.server(progress(1), of=3, sent=None)
    wire.close(side)
    if transport == "http":
        go_on(wire)
    wire.end(code=1, gone=transport == "stdio")
    assert {(it.rule, it.blame) for it in judged(wire.records)} == PLANTED


@pytest.mark.parametrize("side", ["client", "server"])
def test_nobody_is_to_blame_for_a_server_that_a_gate_killed(side):
    wire = TRANSPORTS["stdio"]("exit")
    begin(wire)
    wire.client(request(4, "tools/call", name="other", arguments={}))
    wire.client(CALL, **({"sent": None} if side == "client" else {}))
    if side == "server":
        wire.server(progress(1), sent=None)
    wire.end(code=3, gone=True)
    assert judged(wire.records) == []


def test_a_server_that_ends_by_itself_is_to_blame_although_a_gate_delays_frames():
    wire = TRANSPORTS["stdio"]("delay")
    begin(wire)
    wire.client(request(5, "tools/call", name="other", arguments={}), hold=2, how="delayed")
    wire.wait(2)
    wire.server(result(5, content=[]), hold=4, how="delayed")
    wire.wait(4)
    wire.client(CALL)
    wire.end(code=3, gone=True)
    assert [(it.rule, it.blame) for it in judged(wire.records)] == [("lifecycle/server-exit", "server")]


def test_a_request_that_no_gate_named_is_unanswered_although_another_one_was_dropped():
    wire = TRANSPORTS["stdio"]("drop")
    begin(wire)
    wire.client(request(5, "tools/call", name="other", arguments={}))
    wire.server(notification("notifications/message", level="info", data="x"), sent=None)
    go_on(wire)
    wire.end()
    assert ("pairing/unanswered", "server") in {(it.rule, it.blame) for it in judged(wire.records)}


@pytest.mark.parametrize("code", [400, 404, 503])
def test_nobody_is_to_blame_for_a_status_that_a_gate_gave(code):
    wire = TRANSPORTS["http"]("status")
    begin(wire)
    wire.client(CALL, sent=None, answered=True)
    wire.status(3, code)
    wire.client(CALL | {"id": 6})
    wire.server(DONE | {"id": 6}, of=6)
    wire.end()
    assert judged(wire.records) == []


# Memory bounds.


def test_what_a_gate_did_is_remembered_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("mcpspy.conversation.bounds.ACTS", 8)
    monkeypatch.setattr("mcpspy.conversation.bounds.FORGOTTEN", 4)
    wire = TRANSPORTS["stdio"]("drop")
    begin(wire)
    for number in range(5000):
        wire.client(request(number + 100, "tools/call", name="other", arguments={}), sent=None)
    wire.end()
    assert {it.rule for it in judged(wire.records)} <= {"pairing/unanswered"}


def test_a_reload_makes_no_finding_and_a_fault_of_the_next_server_does():
    """`wrap --reload`: a second handshake, a refused call, a request with an id of the old server, a cut line."""
    wire = TRANSPORTS["stdio"]()
    begin(wire)
    wire.client(CALL)
    wire.server(request(1, "ping"))
    last = wire.records[-1]
    half = b'{"jsonrpc":"2.0","id":3,"res'
    wire.records.append(Frame(last.n + 1, 2, last.t + 1, half, cut=True, dropped=True, by="reload"))
    wire.made("server", notification("notifications/cancelled", requestId=1), by="reload")
    wire.made("server", error(3), by="reload")
    wire.made("client", INITIALIZE | {"id": "mcpspy-reload-1"}, by="reload")
    wire.server(result("mcpspy-reload-1", **HELLO), sent=None, by="reload")
    wire.made("client", INITIALIZED, by="reload")
    wire.client(result(1), sent=None, by="reload")
    wire.server(request(1, "ping"), sent=request("mcpspy-server-1", "ping"), by="reload")
    wire.client(result("mcpspy-server-1"), sent=result(1), by="reload")
    wire.client(CALL | {"id": 4}, hold=1, how="delayed", by="reload")
    wire.wait(1)
    wire.server(DONE | {"id": 4})
    assert judged(wire.records) == []
    wire.client(CALL | {"id": 5})
    wire.server({"id": 5, "result": DONE["result"]})
    wire.client(CALL | {"id": 6})
    wire.server(result(6, content=5, structuredContent={"n": 1}))
    assert [it.rule for it in judged(wire.records)] == ["jsonrpc/version-missing", "schema/invalid"]
