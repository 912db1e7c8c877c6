"""What a gate does with a frame that it names, in every framing."""

import pytest

from mcpspy.gate.compiled import GateAction
from mcpspy.gate.gate import PASS, Exit, Facts, Hold, InFlight, Refuse, Reply, Send

SECOND = 1_000_000_000
CALL = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","arguments":{"n":1.10}}}'
EVENT = b"id: 1\ndata: " + CALL + b"\n"


def facts_of(frame, framing="lines"):
    facts = Facts("client", framing, None, InFlight())
    facts.begin(frame)
    return facts


def verdict(action, frame=CALL, framing="lines", t=0, answerer=None, reorder=False):
    return GateAction("gate g", action, answerer, reorder=reorder).verdict(frame, facts_of(frame, framing), t)


CHANGED = [
    ({"edit": [{"op": "replace", "path": "/params/arguments/n", "value": 2}]}, CALL.replace(b"1.10", b"2")),
    ({"edit": [{"op": "remove", "path": "/params"}]}, b'{"jsonrpc":"2.0","id":3,"method":"tools/call"}'),
    ({"send": "oops"}, b"oops"),
    ({"cut": 10}, CALL[:10]),
    ({"cut": 0}, b""),
    ({"garble": "not-json"}, CALL[:-1]),
    ({"garble": "invalid-utf8"}, CALL[:-1] + b"\xff}"),
    ({"garble": "bom"}, b"\xef\xbb\xbf" + CALL),
]


@pytest.mark.parametrize(("action", "result"), CHANGED, ids=str)
@pytest.mark.parametrize("framing", ["lines", "sse", "body", "message"])
def test_the_message_is_changed_and_the_rest_of_the_frame_stays(action, result, framing):
    frame = EVENT if framing == "sse" else CALL
    found = verdict(action, frame, framing)
    assert isinstance(found, Send)
    assert found.frames == (frame.replace(CALL, result),)


def test_an_edit_that_cannot_be_applied_is_an_error_which_lets_the_frame_pass():
    with pytest.raises(ValueError, match="replace /params/nothing: there is no such place in the message"):
        verdict({"edit": [{"op": "replace", "path": "/params/nothing", "value": 2}]})


@pytest.mark.parametrize(
    "action", [{"cut": 10_000}, {"edit": [{"op": "test", "path": "/id", "value": 3}]}], ids=["cut", "edit"]
)
def test_a_frame_that_is_the_same_afterwards_passes(action):
    assert verdict(action) is PASS


def test_status_and_exit():
    refused, ended = verdict({"status": 503}), verdict({"exit": 0})
    assert isinstance(refused, Refuse)
    assert (refused.status, refused.by) == (503, "gate g")
    assert isinstance(ended, Exit)
    assert (ended.code, ended.by) == (0, "gate g")


def test_frames_of_a_throttled_line_follow_each_other_at_its_speed():
    action = GateAction("gate g", {"throttle": len(CALL)}, None, reorder=False)
    times = [action.verdict(CALL, facts_of(CALL), t).until for t in (0, 0, SECOND // 2, 10 * SECOND)]
    assert times == [SECOND, 2 * SECOND, 3 * SECOND, 11 * SECOND]
    delayed = verdict({"throttle": len(CALL), "delay": 5}, t=1)
    assert (delayed.until, delayed.how, delayed.then) == (SECOND + 6, "delayed", PASS)


def test_a_frame_that_waits_may_let_others_go_before_it():
    assert verdict({"delay": 5}, reorder=True).reorder
    assert not verdict({"delay": 5}).reorder
    assert isinstance(verdict({"delay": 5, "cut": 3}), Hold)


def test_an_answer_that_was_recorded_is_found_by_who_was_given_for_that():
    action = {"answer-from": {"file": "a.jsonl", "miss": "forward"}}
    found = verdict(action, answerer=lambda frame: b"answer to " + frame)
    assert isinstance(found, Reply)
    assert found.frame == b"answer to " + CALL
    assert verdict(action, answerer=lambda _: None) is PASS
    with pytest.raises(ValueError, match="nobody has been given"):
        verdict(action)
    with pytest.raises(ValueError, match="only a single request"):
        verdict(action, b'{"method":"a"}', answerer=lambda frame: frame)


VALUES = [
    ("edit", [], "the operations of a JSON Patch"),
    ("edit", [{"op": "replace", "path": "/a"}], "the operations of a JSON Patch"),
    ("edit", [{"op": "replace", "path": "a", "value": 1}], "the operations of a JSON Patch"),
    ("edit", [{"op": "change", "path": "/a", "value": 1}], "the operations of a JSON Patch"),
    ("edit", [{"op": ["add"], "path": "/a", "value": 1}], "the operations of a JSON Patch"),
    ("edit", [{"op": "move", "path": "/a"}], "the operations of a JSON Patch"),
    ("edit", {"op": "remove", "path": "/a"}, "the operations of a JSON Patch"),
    ("cut", -1, "from 0 to 1073741824"),
    ("garble", "rot13", "not-json, invalid-utf8 or bom"),
    ("status", 200, "from 400 to 599"),
    ("exit", 256, "from 0 to 255"),
    ("throttle", 0, "from 1 to "),
    ("answer-from", "a.jsonl", "an object with file and miss"),
    ("answer-from", {"file": "a.jsonl", "miss": "random"}, "an object with file and miss"),
]


@pytest.mark.parametrize(("name", "value", "words"), VALUES, ids=str)
def test_a_value_that_has_no_meaning_is_named(name, value, words):
    with pytest.raises(ValueError, match=words) as fault:
        verdict({name: value})
    assert str(fault.value).startswith(f"gate g: action.{name} is ")


@pytest.mark.parametrize("action", [{}, {"drop": True, "cut": 1}, {"hold": 1, "throttle": 1}])
def test_it_is_exactly_one_besides_delay(action):
    with pytest.raises(ValueError, match="gate g needs exactly one action"):
        verdict(action)
