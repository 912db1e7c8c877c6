"""Random gates and random frames: no frame is ever lost, and without gates every frame passes."""

import json
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import Gate, Hold, Pass
from mcpspy.gate.messages import with_message
from mcpspy.gate.order import FrameOrder, GatedFrame

FRAMES = 100
"""The number of frames in one example; the 500 examples of the nightly run have 50,000."""
TEXTS = st.sampled_from(["a", "tools/call", "ping", "search", "é", 'a"b', "\\", "x" * 50])
PARAMS = st.fixed_dictionaries({}, optional={"name": TEXTS, "requestId": st.sampled_from([1, "1"])})
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0"),
        "id": st.sampled_from([1, 2, 1.5, "1", None, True]),
        "method": TEXTS | st.just("notifications/cancelled") | st.none(),
        "params": st.none()
        | st.fixed_dictionaries({}, optional={"name": TEXTS, "requestId": st.sampled_from([1, "1"])}),
        "result": st.sampled_from([{}, None, {"isError": True}]),
        "error": st.sampled_from([{"code": 1, "message": ""}, None]),
    },
)
FRAME = (
    st.builds(lambda value, indent: json.dumps(value, indent=indent).encode(), MESSAGES | st.lists(MESSAGES), st.none())
    | st.binary(max_size=20)
    | st.builds(lambda value: json.dumps(value).encode()[:-1], MESSAGES)
)
TERMS = st.fixed_dictionaries(
    {},
    optional={
        "from": st.sampled_from(["client", "server"]),
        "kind": st.sampled_from(["request", "notification", "response"]),
        "method": st.sampled_from(["*", "tools/*", "ping", "notifications/cancelled"]),
        "name": st.sampled_from(["*", "s?arch"]),
        "text": st.sampled_from(["a", "é"]),
        "not": st.sampled_from([{"method": "ping"}, {}]),
    },
)
ACTIONS = st.sampled_from(
    [
        {"drop": True},
        {"repeat": 3},
        {"answer": '{"result":{}}'},
        {"send": ["x", "y"]},
        {"edit": [{"op": "replace", "path": "/params/name", "value": "é"}]},
        {"edit": [{"op": "remove", "path": "/id"}, {"op": "add", "path": "/new", "value": [1]}]},
        {"cut": 5},
        {"garble": "invalid-utf8"},
        {"garble": "not-json"},
        {"garble": "bom"},
        {"status": 503},
        {"exit": 1},
        {"close": True},
        {"hold": 30},
        {"throttle": 10**9},
        {"answer-from": {"file": "f", "miss": "forward"}},
    ]
)
GATES = st.lists(
    st.builds(
        lambda when, action, rest: {"name": "g", "when": when, "action": action} | rest,
        TERMS,
        st.builds(lambda action, delay: action | delay, ACTIONS, st.sampled_from([{}, {"delay": 10}])),
        st.fixed_dictionaries(
            {},
            optional={
                "after": st.integers(0, 3),
                "times": st.integers(1, 5),
                "chance": st.sampled_from([0, 0.5, 1]),
                "reorder": st.just(True),
            },
        ),
    ),
    max_size=3,
)


def bytes_of(frame, framing):
    return with_message(b"id: 1\ndata: \n", "sse", frame) if framing == "sse" else frame


@given(GATES, st.sampled_from(["lines", "sse", "body"]), st.randoms(use_true_random=False), st.data())
def test_every_frame_comes_out_once(gates, framing, random, data):
    reports = []
    answerers = {"g": lambda frame: frame if random.random() < 0.5 else None}
    gate = Gate([DeclaredGate(it, answerers) for it in gates], reports.append)
    orders = {sender: FrameOrder(count(1), framing) for sender in ("client", "server")}
    facts = {sender: gate.facts(sender, framing) for sender in orders}
    kinds = data.draw(st.lists(FRAME, min_size=1, max_size=10))
    fed, gone, t = [], [], 0
    for number in range(FRAMES):
        sender = random.choice(["client", "server"])
        raw = bytes_of(kinds[number % len(kinds)], framing)
        verdict = gate.decide(raw, facts[sender], t)
        if not gates:
            assert isinstance(verdict, Pass)
        frame = GatedFrame(raw, t, verdict)
        fed.append(frame)
        gone += orders[sender].feed(frame)
        t += random.randrange(20)
        if random.random() < 0.1:
            how = random.choice(["continued", "dropped", "edited", "answered"])
            try:
                gone += orders[sender].release(random.randrange(1, FRAMES), how, b'{"a":1}')
            except ValueError as error:
                assert framing == "sse", error  # noqa: PT017 (an event without data cannot carry a message)
        gone += orders[sender].expire(t)
    for order in orders.values():
        gone += order.end("closed")
        assert len(order) == 0
        assert order.until is None
    assert sorted(map(id, gone)) == sorted(map(id, fed))
    assert not any(isinstance(frame.verdict, Hold) for frame in gone)
    assert len(reports) <= len(gates), "each gate that fails is reported once"
