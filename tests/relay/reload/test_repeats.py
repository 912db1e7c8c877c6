"""The messages that a new server gets again, and its comparison with the server that the client knows."""

import json

import pytest

from mcpspy.gate.messages import read
from mcpspy.relay.reload.handover import Repeats

INITIALIZE = b'{"id":0,"method":"initialize"}'


def answer(capabilities, version="2025-11-25"):
    return json.dumps({"id": 0, "result": {"protocolVersion": version, "capabilities": capabilities}}).encode()


def told(capabilities, *, initialized=True, method="initialize"):
    repeats = Repeats()
    repeats.agreed(method, INITIALIZE, answer(capabilities))
    if initialized:
        sent(repeats, {"method": "notifications/initialized"})
    return repeats


def sent(repeats, value):
    raw = json.dumps(value).encode()
    repeats.sent(read(raw, "lines")[0], raw)
    return raw


def changed(frames):
    return [json.loads(frame)["method"] for frame in frames]


def test_list_changed_goes_where_it_was_promised():
    lists = {name: {"listChanged": True} for name in ("tools", "prompts", "resources")}
    frames, sentences = told(lists).compare(answer(lists))
    assert changed(frames) == [f"notifications/{name}/list_changed" for name in lists]
    assert sentences == []
    assert told(lists, initialized=False).compare(answer(lists)) == ([], [])
    assert told(lists, method="server/discover").compare(answer(lists)) == ([], [])


def test_a_client_without_that_promise_is_named_once():
    repeats = told({"tools": {}})
    hint = "the server does not declare listChanged for tools: the client keeps its old lists"
    assert repeats.compare(answer({"tools": {"listChanged": True}})) == ([], [hint])
    assert repeats.compare(answer({"tools": {"listChanged": True}})) == ([], [])


def test_what_cannot_be_told_is_for_the_user():
    repeats = told({"tools": {"listChanged": True}, "logging": {}})
    frames, sentences = repeats.compare(answer({"prompts": {"listChanged": True}}, "2025-06-18"))
    assert frames == []
    assert sentences == [
        "the client cannot be told that the server no longer has logging, tools",
        "the client cannot be told that the server now has prompts",
        "the server answers with revision 2025-06-18, and the client was told 2025-11-25",
        "restart the client to let it see the new server",
    ]


@pytest.mark.parametrize(
    ("response", "why"),
    [
        ({"error": {"code": 1, "message": "no"}}, "it refused initialize: no"),
        ({"error": {"code": 1, "message": 5}}, "it refused initialize"),
        ({"result": []}, "it refused initialize"),
        ({"error": None}, "it refused initialize"),
    ],
)
def test_a_refusal_has_its_reason(response, why):
    with pytest.raises(ValueError, match=f"^{why}$"):
        told({}).compare(json.dumps({"id": 0, **response}).encode())


@pytest.mark.parametrize("capabilities", [None, [], "x", {"tools": None}, {"tools": []}])
def test_odd_capabilities_are_none(capabilities):
    assert told(capabilities).compare(answer(capabilities))[0] == []


def test_the_last_level_and_the_subscriptions_that_are_left_are_repeated():
    repeats = told({})
    sent(repeats, {"id": 1, "method": "logging/setLevel", "params": {"level": "info"}})
    level = sent(repeats, {"id": 2, "method": "logging/setLevel", "params": {"level": "debug"}})
    sent(repeats, {"id": 3, "method": "resources/subscribe", "params": {"uri": "a"}})
    kept = sent(repeats, {"id": 4, "method": "resources/subscribe", "params": {"uri": "b"}})
    sent(repeats, {"id": 5, "method": "resources/unsubscribe", "params": {"uri": "a"}})
    sent(repeats, {"id": 6, "method": "resources/subscribe", "params": {"uri": 7}})
    assert repeats.requests() == [level, kept]


def test_a_discovery_does_not_replace_an_initialize():
    repeats = told({})
    repeats.agreed("server/discover", b"d", answer({}))
    assert repeats.handshake == INITIALIZE
