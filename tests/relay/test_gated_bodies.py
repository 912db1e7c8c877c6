"""JSON bodies and events pass a gate, on `proxy` and `mitm` alike: what each peer receives, and what is recorded."""

import asyncio
import gzip
import json
import os
import zlib

import pytest

from mcpspy.capture.live import live_directory
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame, Gates, Release
from mcpspy.relay.http.gated_body import coded
from mcpspy.wire.content_coding import Decoder
from tests.relay.harness import until
from tests.relay.http.test_forward import chunk
from tests.relay.interception import RELAYS, relaying
from tests.relay.stage import scripted
from tests.relay.viewer import HOLD, viewing
from tests.wire.test_content_coding import flushed

pytestmark = pytest.mark.parametrize("relay", RELAYS)
both_senders = pytest.mark.parametrize("sender", ["client", "server"])

SECOND = 1_000_000_000
CLIENT, SERVER = {"from": "client"}, {"from": "server"}
CALL = b'{"jsonrpc":"2.0","id":"a","method":"ping"}'
ANSWER = b'{"jsonrpc":"2.0","id":"a","result":{}}'
LARGE = b'{"jsonrpc":"2.0","id":"a","method":"ping","params":"%b"}' % (b"x" * (1 << 20))
REQUEST = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
RESPONSE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
LAST = b"0\r\n\r\n"


def gate(action, name="g", **when):
    return [{"name": name, "when": when, "action": action}]


def call(method):
    return CALL.replace(b'"ping"', b'"%b"' % method.encode())


def whole(head, body, *fields):
    """Return a message with this body; `fields` are lines of its head."""
    return head + b"".join(field + b"\r\n" for field in fields) + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def arrives(peer, head, body):
    """Check that a peer receives this body after a head, in one chunk or with its length."""
    head = head.lower()
    if b"\r\ntransfer-encoding: chunked\r\n" in head:
        assert b"content-length" not in head
        body = (chunk(body) if body else b"") + LAST
    else:
        assert b"\r\ncontent-length: %d\r\n" % len(body) in head
    assert await peer.read(len(body)) == body


async def exchange(there, request, response, to_server, to_client):
    """Make an exchange, and check the bodies that both sides receive; return both heads."""
    client, server, request_head = await there.both(request)
    await arrives(server, request_head, to_server)
    await server.send(response)
    response_head = await client.head()
    await arrives(client, response_head, to_client)
    client.close()
    return request_head, response_head


async def nothing_arrived(there):
    """Check that no connection to the upstream has received anything; `mitm` connects before it has a request."""
    while not there.arrived.empty():
        assert await (await there.server()).rest() == b""


def bodies(there, sender):
    """Return the frames of each request or response."""
    channels = [it.ch for it in there.opens() if it.role == ("request" if sender == "client" else "response")]
    return [[it for it in there.records(Frame) if it.ch == channel] for channel in channels]


@scripted
async def test_what_no_gate_names_passes_as_it_came(tmp_path, certificate, relay):
    """Also if it is too long for a decision."""
    async with relaying(relay, tmp_path, certificate, gate({"drop": True}, method="never")) as there:
        for asked, answered in ((CALL, ANSWER), (LARGE, LARGE)):
            heads = await exchange(there, whole(REQUEST, asked), whole(RESPONSE, answered), asked, answered)
            assert not any(b"chunked" in head for head in heads)
        await there.captured()
    frames = [(it.raw, it.by, it.held, it.undecided) for it in there.records(Frame)]
    assert frames == [(raw, None, None, raw == LARGE) for raw in (CALL, ANSWER, LARGE, LARGE)]
    assert not any("gate" in (it.by or "") for it in there.opens())
    if relay == "mitm":
        assert set(there.how().values()) == {"eof"}


FORWARDED = {
    "change": ({"send": '{"changed":true}'}, b'{"changed":true}', None),
    "cut": ({"cut": 0}, b"", None),
    "repeat": ({"repeat": 2}, None, None),
    "delay": ({"delay": SECOND // 20}, None, "delayed"),
    "hold": ({"hold": SECOND // 20}, None, "expired"),
    "delayed-change": ({"delay": SECOND // 50, "send": "[]"}, b"[]", "delayed"),
    "drop": ({"drop": True}, b"", None),
}
"""The action of a gate, what it sends in place of a body, and how a held body is released."""


@both_senders
@scripted
async def test_a_body_that_is_changed_or_goes_when_its_time_has_come(tmp_path, certificate, relay, sender):
    """There is one gate for each method. `proxy` sends in chunks what it may still change; `mitm` knows the length."""
    cases = {name: case for name, case in FORWARDED.items() if (name, sender) != ("drop", "client")}
    gates = [it for name, (act, *_) in cases.items() for it in gate(act, name, method=name, **{"from": sender})]
    lengths, resized = [], []
    async with relaying(relay, tmp_path, certificate, gates) as there:
        for name, (_, changed, _) in cases.items():
            body = call(name) if sender == "client" else ANSWER
            sent = body * 2 if name == "repeat" else body if changed is None else changed
            to_server, to_client = (sent, ANSWER) if sender == "client" else (call(name), sent)
            heads = await exchange(there, whole(REQUEST, call(name)), whole(RESPONSE, ANSWER), to_server, to_client)
            resized += [len(sent)] * (name not in ("delay", "hold", "delayed-change"))
            lengths += [name] * (b"content-length" in heads[sender == "server"].lower())
        await there.captured()
    assert lengths == (list(cases) if relay == "mitm" else ["delay"] if sender == "client" else [])
    if relay == "mitm":
        sizes = [it.sent["headers"] for it in there.opens() if it.sent and it.sender == sender]
        assert sizes == [[["content-length", str(size)]] for size in resized]
    releases = {it.held: it for it in there.records(Release)}
    for (frame, *more), (name, (action, changed, how)) in zip(bodies(there, sender), cases.items(), strict=True):
        body = call(name) if sender == "client" else ANSWER
        assert (frame.raw, frame.by, frame.dropped) == (body, f"gate {name}", name == "drop")
        assert [(it.raw, it.sender) for it in more] == [(body, "mcpspy")] * (name == "repeat")
        if how:
            release = releases.pop(frame.held)
            assert (release.how, release.sent) == (how, changed)
            assert release.t - frame.t >= action.get("delay", action.get("hold"))
        else:
            expected = None if name == "drop" else body if changed is None else changed
            assert (frame.held, frame.sent) == (None, expected)
    assert releases == {}


RESULT = '{"result":{"a":1}}'
ANSWERED = {
    "answer": ({"answer": RESULT}, 200, "g"),
    "late": ({"answer": RESULT, "delay": SECOND // 50}, 200, "g"),
    "drop": ({"drop": True}, 202, "g"),
    "refuse": ({"answer": RESULT}, 503, "refuses 503"),
    "refuse-late": ({"answer": RESULT, "delay": SECOND // 50}, 503, "refuses 503"),
}


@scripted
async def test_a_request_that_a_gate_answers_or_drops_never_reaches_the_server(tmp_path, certificate, relay):
    """The connection stays open."""
    gates = [it for method, (act, _, name) in ANSWERED.items() for it in gate(act, name, method=method)]
    bodies_ = []
    async with relaying(relay, tmp_path, certificate, gates) as there:
        client = await there.client()
        for method, (_, status, _) in ANSWERED.items():
            await client.send(whole(REQUEST, call(method)))
            head = (await client.head()).decode().lower()
            assert head.startswith(f"http/1.1 {status} ")
            bodies_.append(await client.read(int(head.partition("content-length: ")[2].partition("\r\n")[0])))
            assert ("content-type: application/json\r\n" in head) is (status != 202)
        await there.captured()
        await nothing_arrived(there)
    responses = [it for it in there.opens() if it.role == "response"]
    assert [(it.sender, it.head["status"]) for it in responses] == [("mcpspy", it[1]) for it in ANSWERED.values()]
    for body, asked, told, (method, (_, status, name)) in zip(
        bodies_, bodies(there, "client"), bodies(there, "server"), ANSWERED.items(), strict=True
    ):
        (frame,) = asked
        assert (frame.raw, frame.by) == (call(method), f"gate {name}")
        assert frame.dropped is ("late" not in method)
        assert [it.raw for it in told] == ([body] if body else [])
        if status == 200:
            assert json.loads(body) == {"jsonrpc": "2.0", "id": "a", "result": {"a": 1}}
        elif status == 503:
            error = json.loads(body)
            assert (error["id"], error["error"]["code"]) == ("a", -32000)
            assert "gate refuses 503" in error["error"]["message"]
        else:
            assert body == b""


@both_senders
@scripted
async def test_a_closing_gate_closes_the_connection(tmp_path, certificate, relay, sender):
    """A closed response does not look finished."""
    async with relaying(relay, tmp_path, certificate, gate({"close": True}, **{"from": sender})) as there:
        client = await there.client()
        await client.send(whole(REQUEST, CALL))
        if sender == "server":
            server = await there.server()
            await server.head()
            await server.send(whole(RESPONSE, ANSWER))
        came = await client.rest()
        if (relay, sender) == ("proxy", "server"):  # it has sent the head
            assert came.endswith(b"\r\n\r\n")
        else:
            assert came == b""
        await there.captured()
    assert [it.dropped for it in there.records(Frame)] == [False, True][sender == "client" :]
    assert there.how() == ({1: "eof", 2: "abort" if relay == "mitm" else "reset"} if sender == "server" else {1: "eof"})


@scripted
async def test_a_coded_body_stays_coded_and_several_frames_are_one_body(tmp_path, certificate, relay):
    """A client would not decode a second `deflate` stream after the first one (RFC 1950)."""
    gates = gate({"send": "{}"}, method="send") + gate({"repeat": 2}, method="repeat", **SERVER)
    async with relaying(relay, tmp_path, certificate, gates) as there:
        for coding in ("gzip", "gzip, br"):
            field = b"Content-Encoding: " + coding.encode()
            asked = whole(REQUEST, coded(call("send"), coding), field)
            answered = whole(RESPONSE, coded(ANSWER, coding), field)
            heads = await exchange(there, asked, answered, coded(b"{}", coding), coded(b"{}", coding))
            assert all(field + b"\r\n" in head for head in heads)
        client, server, _ = await there.both(whole(REQUEST, call("repeat")))
        await server.send(whole(RESPONSE, zlib.compress(ANSWER), b"Content-Encoding: deflate"))
        await arrives(client, await client.head(), coded(ANSWER * 2, "deflate"))
        await there.captured()
    frames = [(it.raw, it.sent, it.by) for it in there.records(Frame)]
    assert frames[:2] == [(call("send"), b"{}", "gate g"), (ANSWER, b"{}", "gate g")]
    assert frames[2:4] == frames[:2]
    assert [(it.raw, it.sender) for it in there.records(Frame)][5:] == [(ANSWER, None), (ANSWER, "mcpspy")]


UNDECODED = {b"gzip": gzip.compress(ANSWER)[:-4], b"unknown": ANSWER, b"exi": ANSWER}
"""Bodies that cannot be decoded: one is damaged, and the others have an unknown coding."""


@both_senders
@scripted
async def test_a_coding_that_cannot_be_undone_passes_and_is_said_once(tmp_path, certificate, relay, sender):
    async with relaying(relay, tmp_path, certificate, gate({"drop": True}, **{"from": sender})) as there:
        for coding, packed in UNDECODED.items():
            field = b"Content-Encoding: " + coding
            asked = whole(REQUEST, packed, field) if sender == "client" else whole(REQUEST, CALL)
            answered = whole(RESPONSE, packed, field) if sender == "server" else whole(RESPONSE, ANSWER)
            to_server, to_client = (packed, ANSWER) if sender == "client" else (CALL, packed)
            await exchange(there, asked, answered, to_server, to_client)
        await there.captured()
    what = "request" if sender == "client" else "response"
    assert there.said().count(f"a {what} has a content coding that cannot be decoded; such {what}s pass") == 1
    frames = [frame for body in bodies(there, sender) for frame in body]
    assert [(it.undecided, it.dropped) for it in frames] == [(relay == "mitm", False)] * 3


@both_senders
@scripted
async def test_a_body_that_decodes_to_too_much_passes_undecided(tmp_path, certificate, relay, sender):
    packed, field = coded(LARGE, "gzip"), b"Content-Encoding: gzip"
    async with relaying(relay, tmp_path, certificate, gate({"drop": True}, **{"from": sender})) as there:
        asked = whole(REQUEST, packed, field) if sender == "client" else whole(REQUEST, CALL)
        answered = whole(RESPONSE, packed, field) if sender == "server" else whole(RESPONSE, ANSWER)
        to_server, to_client = (packed, ANSWER) if sender == "client" else (CALL, packed)
        await exchange(there, asked, answered, to_server, to_client)
        await there.captured()
    ((frame,),) = bodies(there, sender)
    assert (frame.raw, frame.undecided, frame.dropped) == (LARGE, True, False)


@scripted
async def test_a_sequence_of_json_goes_on_as_it_comes(tmp_path, certificate, relay):
    """Such a sequence may never end."""
    async with relaying(relay, tmp_path, certificate, gate({"drop": True})) as there:
        for kind in (b"application/x-ndjson", b"application/json-seq", b"application/stream+json"):
            asked = REQUEST.replace(b"application/json", kind) + CHUNKED + chunk(CALL + b"\n")
            client, server, _ = await there.both(asked)
            assert await server.read(len(chunk(CALL + b"\n"))) == chunk(CALL + b"\n")
            await server.send(RESPONSE.replace(b"application/json", kind), CHUNKED)
            await client.head()
            for line in (ANSWER + b"\n", CALL + b"\n"):
                await server.send(chunk(line))
                assert await client.read(len(chunk(line))) == chunk(line)
        await there.captured()
    assert not any(it.undecided or it.dropped for it in there.records(Frame))


@scripted
async def test_a_held_request_holds_up_no_other_and_goes_nowhere_after_the_end(tmp_path, certificate, relay):
    async with relaying(relay, tmp_path, certificate, gate({"hold": 60 * SECOND}, method="ping")) as there:
        held = await there.client()
        await held.send(whole(REQUEST, CALL))
        if relay == "mitm":
            unasked = await there.server()  # connected before there is a request
        await exchange(there, whole(REQUEST, call("a")), whole(RESPONSE, ANSWER), call("a"), ANSWER)
        await there.captured()
        if relay == "mitm":
            assert await unasked.rest() == b""
        await nothing_arrived(there)
    assert [(it.how, it.dropped) for it in there.records(Release)] == [("closed", True)]


def cancelling(request_id):
    return b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%b}}' % request_id


@scripted
async def test_a_cancellation_in_another_request_drops_the_held_one_and_itself(tmp_path, certificate, relay):
    """Only in the same session, and only the request of that id."""
    one, two, this = b"Mcp-Session-Id: one", b"Mcp-Session-Id: two", cancelling(b'"a"')
    accepted = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    async with relaying(relay, tmp_path, certificate, gate({"hold": 60 * SECOND}, method="ping")) as there:
        holder = await there.client()
        await holder.send(whole(REQUEST, CALL, one))
        if relay == "mitm":
            await there.server()  # connected before there is a request
        await asyncio.to_thread(until, lambda: b'"held":1' in there.written())
        for body, session in ((this, two), (cancelling(b'"b"'), one)):
            await exchange(there, whole(REQUEST, body, session), accepted, body, b"")
        other = await there.client()
        await other.send(whole(REQUEST, this, one))
        for client in (holder, other):
            assert (await client.head()).startswith(b"HTTP/1.1 202 Accepted\r\n")
        await there.captured()
        await nothing_arrived(there)
    (release,) = there.records(Release)
    assert (release.held, release.how, release.dropped, release.by) == (1, "cancelled", True, "gate g")
    cancelled = [it for it in there.records(Frame) if it.raw == this]
    assert [(it.dropped, it.by) for it in cancelled] == [(False, None), (True, "gate g")]


@both_senders
@scripted
async def test_a_client_that_leaves_drops_what_is_held(tmp_path, certificate, relay, sender):
    """H-05: the hold ends with the client."""
    async with relaying(relay, tmp_path, certificate, gate({"hold": 60 * SECOND}, **{"from": sender})) as there:
        client = await there.client()
        await client.send(whole(REQUEST, CALL))
        if sender == "server":
            server = await there.server()
            await arrives(server, await server.head(), CALL)
            await server.send(whole(RESPONSE, ANSWER))
        await asyncio.to_thread(until, lambda: b'"held":1' in there.written())
        client.abort()
        await asyncio.to_thread(until, lambda: b'"kind":"release"' in there.written())
        await there.captured()
    assert [(it.how, it.dropped) for it in there.records(Release)] == [("closed", True)]


@scripted
async def test_a_gate_with_a_bug_and_one_that_refuses_a_response_let_frames_pass(tmp_path, certificate, relay):
    """Each is reported once."""
    gates = gate({"drop": True}, "raises", method="a")
    gates += gate({"hold": SECOND // 50}, "refuses 503", method="ping", **SERVER)
    async with relaying(relay, tmp_path, certificate, gates) as there:
        for body in (CALL, call("a"), CALL):
            await exchange(there, whole(REQUEST, body), whole(RESPONSE, ANSWER), body, ANSWER)
        await there.captured()
    assert [it.raw for it in there.records(Frame)] == [CALL, ANSWER, call("a"), ANSWER, CALL, ANSWER]
    assert there.said().count("gate raises failed") == 1
    assert there.said().count("gate refuses 503 can answer only requests over HTTP with a status") == 1


EDITED = b'{"jsonrpc":"2.0","id":7,"method":"edited"}'
DECISIONS = [  # the message of the viewer, what the server receives, and the status of another response
    ("continued", None, CALL, None),
    ("edited", EDITED, EDITED, None),
    ("dropped", None, None, b"202"),
    ("answered", ANSWER, None, b"200"),
]


@scripted
async def test_viewers_set_gates_on_a_running_relay_and_decide_on_held_bodies(tmp_path, certificate, relay):
    def decide(viewer, held, how, message=None):
        viewer.release(held, how, message and message.decode())

    calls = whole(REQUEST, CALL), whole(RESPONSE, ANSWER), CALL, ANSWER
    async with relaying(relay, tmp_path, certificate, []) as there:
        await exchange(there, *calls)
        await there.recorded(lambda it: isinstance(it, Frame))
        header = Capture(str(there.path)).header
        assert header.control
        with viewing(there.path) as viewer:
            gates = viewer.gate(HOLD, **CLIENT, kind="request")
            for held, (how, message, forwarded, status) in enumerate(DECISIONS, 1):
                client = await there.client()
                await client.send(whole(REQUEST, CALL))
                (frame,) = await viewer.holds()
                assert (frame.raw, frame.held, frame.by) == (CALL, held, "gate g")
                decide(viewer, held, how, message)
                if forwarded or relay == "mitm":  # which connects before it has a request
                    server = await there.server()
                if forwarded:
                    await arrives(server, await server.head(), forwarded)
                    await server.send(whole(RESPONSE, ANSWER))
                    await arrives(client, await client.head(), ANSWER)
                else:
                    head = await client.head()
                    assert head.startswith(b"HTTP/1.1 %b " % status)
                    await arrives(client, head, message or b"")
                client.close()
            results = viewer.gate(HOLD, **SERVER)
            client, server, head = await there.both(calls[0])
            await arrives(server, head, CALL)
            await server.send(calls[1])
            (frame,) = await viewer.holds()
            assert frame.raw == ANSWER
            decide(viewer, 5, "answered", ANSWER)  # is refused for a response
            decide(viewer, 5, "edited", EDITED)
            await arrives(client, await client.head(), EDITED)
            viewer.set_gates([])
            await exchange(there, *calls)
        folder = live_directory(str(there.path), header.id)
        assert folder in [entry.path for entry in os.scandir(there.path.parent)]
        await there.captured()
        assert folder not in [entry.path for entry in os.scandir(there.path.parent)]
    assert there.said().count("frame 5 is not a request") == 1
    sent = [(it.how, it.sent, it.by) for it in there.records(Release)]
    edited = ("edited", EDITED, "gate g")
    assert [how for how, *_ in sent] == [*(how for how, *_ in DECISIONS), "edited"]
    assert [sent[1], sent[4]] == [edited, edited]
    assert [(list(it.gates), it.by) for it in there.records(Gates)] == [
        (gates, "viewer"),
        (results, "viewer"),
        ([], "viewer"),
    ]


# Events

EVENT = b'id: %d\ndata: {"jsonrpc":"2.0","method":"notifications/%b"}\n\n'
A, B, C = EVENT % (1, b"a"), EVENT % (2, b"b"), EVENT % (3, b"c")
CHANGES = {
    "send": ({"send": "x"}, [b"id: 2\ndata: x\n"]),
    "several": ({"send": ["x", "y"]}, [b"id: 2\ndata: x\n", b"id: 2\ndata: y\n"]),
    "repeat": ({"repeat": 2}, [(EVENT % (2, b"repeat"))[:-1]] * 2),
    "drop": ({"drop": True}, []),
}


async def listening(there, *fields, framing=CHUNKED):
    """Answer a request with an event stream; return the client, the server, and the head for the client."""
    client, server, _ = await there.both(whole(REQUEST, CALL))
    await server.send(STREAM + b"".join(field + b"\r\n" for field in fields) + framing)
    return client, server, await client.head()


@scripted
async def test_an_event_is_replaced_repeated_or_dropped(tmp_path, certificate, relay):
    """An event is forwarded when its blank line arrives; all bytes of other events and comments are kept."""
    gates = [it for name, (act, _) in CHANGES.items() for it in gate(act, method=f"notifications/{name}")]
    async with relaying(relay, tmp_path, certificate, gates) as there:
        for name, (_, sent) in CHANGES.items():
            event, odd = EVENT % (2, name.encode()), b"\r\n: alive\r\r" + C
            client, server, _ = await listening(there)
            await server.send(chunk(A), chunk(event[:20]))
            assert await client.read(len(chunk(A))) == chunk(A)
            await server.send(chunk(event[20:]))
            expected = chunk(b"".join(part + b"\n" for part in sent)) if sent else b""
            assert await client.read(len(expected)) == expected, name
            await server.send(chunk(odd), LAST)
            assert await client.read(len(chunk(odd) + LAST)) == chunk(odd) + LAST
        await there.captured()
    if relay == "mitm":
        assert set(there.how().values()) == {"eof"}
    for (first, changed, *added, comment, last), (name, (_, sent)) in zip(
        bodies(there, "server"), CHANGES.items(), strict=True
    ):
        assert (first.raw, comment.raw, last.raw) == (A[:-1], b": alive\r", C[:-1])
        assert (changed.raw, changed.dropped) == ((EVENT % (2, name.encode()))[:-1], not sent)
        assert (changed.by, changed.sent) == ("gate g", sent[0] if sent else None)
        assert [(it.raw, it.sender) for it in added] == [(part, "mcpspy") for part in sent[1:]]


@scripted
async def test_a_closing_gate_breaks_the_stream_off(tmp_path, certificate, relay):
    """The client gets no last chunk, and the connection to the server ends at once (H-05).

    Events that arrived in the same chunk are recorded as dropped: the capture has everything that the server sent.
    """
    async with relaying(relay, tmp_path, certificate, gate({"close": True}, method="notifications/b")) as there:
        client, server, _ = await listening(there)
        await server.send(chunk(A + B + C + A + b"data: 1"))
        assert await client.rest() == chunk(A)
        assert await server.gone() in ("eof", "reset")
        await there.captured()
    assert [(it.raw, it.dropped, it.by, it.cut) for it in there.records(Frame)[1:]] == [
        (A[:-1], False, None, False),
        (B[:-1], True, "gate g", False),
        (C[:-1], True, "gate g", False),
        (A[:-1], True, "gate g", False),
        *([(b"data: 1", True, "gate g", True)] if relay == "mitm" else []),
    ]
    assert there.how() == {1: "eof", 2: "abort"}


@scripted
async def test_an_answer_to_a_server_passes_and_is_said_once(tmp_path, certificate, relay):
    question = b'data: {"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}\n\n'
    async with relaying(relay, tmp_path, certificate, gate({"answer": '{"result":{}}'}, **SERVER)) as there:
        client, server, _ = await listening(there)
        for _ in range(2):
            await server.send(chunk(question))
            assert await client.read(len(chunk(question))) == chunk(question)
        await there.captured()
    assert there.said().count("gate g cannot answer a server over HTTP") == 1


@scripted
async def test_a_coded_stream_stays_coded_and_is_flushed_with_each_event(tmp_path, certificate, relay):
    """H-04, H-11."""
    names, changed = ("gzip", "deflate", "br", "zstd"), b"id: 2\ndata: x\n\n"
    async with relaying(relay, tmp_path, certificate, gate({"send": "x"}, method="notifications/b")) as there:
        for name in names:
            field, decoder = b"Content-Encoding: " + name.encode(), Decoder(name)
            client, server, head = await listening(there, field)
            assert field + b"\r\n" in head
            for packed, plain in zip(flushed(name, [A, B, C]), [A, changed, C], strict=True):
                await server.send(chunk(packed))
                size = int(await client.until(b"\r\n"), 16)
                assert b"".join(decoder.feed((await client.read(size + 2))[:-2])) == plain
        await there.captured()
    frames = [(A[:-1], None), (B[:-1], changed[:-1]), (C[:-1], None)]
    assert [[(it.raw, it.sent) for it in body] for body in bodies(there, "server")] == [frames] * len(names)


@scripted
async def test_a_stream_with_a_length_gets_none_and_a_long_event_passes_undecided(tmp_path, certificate, relay):
    long = b'data: {"jsonrpc":"2.0","method":"notifications/b","params":"%b"}\n\n' % (b"x" * (1 << 20))
    stream = A + long + B + C
    async with relaying(relay, tmp_path, certificate, gate({"drop": True}, method="notifications/b")) as there:
        client, server, head = await listening(there, framing=b"Content-Length: %d\r\n\r\n" % len(stream))
        assert b"content-length" not in head.lower()
        await server.send(stream)
        body = b""
        while size := int(await client.until(b"\r\n"), 16):
            body += (await client.read(size + 2))[:-2]
        assert body == A + long + C
        await there.captured()
    frames = [(it.undecided, it.dropped) for it in there.records(Frame)[1:]]
    assert frames == [(False, False), (True, False), (False, True), (False, False)]
    response = there.opens()[1]
    expected = ["content-length", None] if relay == "mitm" else ["transfer-encoding", "chunked"]
    assert expected in [[name.lower(), value] for name, value in response.sent["headers"]]
    assert response.by == "gate"


@scripted
async def test_the_beginning_of_an_event_goes_on_when_the_server_breaks_off(tmp_path, certificate, relay):
    async with relaying(relay, tmp_path, certificate, gate({"drop": True}, method="notifications/b")) as there:
        client, server, _ = await listening(there)
        await server.send(chunk(A), chunk(b"data: 1"))
        assert await client.read(len(chunk(A))) == chunk(A)
        server.abort()
        assert await client.rest() == chunk(b"data: 1")
        await there.captured()
    assert [(it.raw, it.cut) for it in there.records(Frame)][1:] == [(A[:-1], False), (b"data: 1", True)]
    assert there.how()[2] == "reset"
