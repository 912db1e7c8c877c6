import json

import pytest

from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate.gate import PASS, CloseStream, Drop, Facts, Hold, InFlight, Reply, Send
from mcpspy.gate.messages import read

CALL = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"search_docs"}}'
RESULT = b'{"jsonrpc":"2.0","id":3,"result":{"isError":true}}'
ERROR = b'{"jsonrpc":"2.0","id":3,"error":{"code":1}}'
NOTE = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'


def gate(action=None, **rest):
    return DeclaredGate({"name": "g", "action": action or {"drop": True}} | rest)


def decide(gate, frame, sender="client", table=None, t=100):
    facts = Facts(sender, "lines", None, table or InFlight())
    facts.begin(frame)
    return gate.decide(frame, facts, t)


def acts(when, frame, sender="client", table=None):
    return decide(gate(when=when), frame, sender, table) is not PASS


@pytest.mark.parametrize(
    ("action", "kind", "value"),
    [
        ({"drop": True}, Drop, None),
        ({"repeat": 2}, Send, (CALL, CALL)),
        ({"send": "not JSON"}, Send, (b"not JSON",)),
        ({"send": ["a", "b"]}, Send, (b"a", b"b")),
        ({"close": True}, CloseStream, None),
        ({"answer": ' {"result":{"a":1.10}}'}, Reply, b'{"jsonrpc":"2.0","id":3,"result":{"a":1.10}}'),
    ],
)
def test_an_action_that_needs_no_wait(action, kind, value):
    verdict = decide(gate(action), CALL)
    assert (type(verdict), verdict.by) == (kind, "gate g")
    assert getattr(verdict, "frames", getattr(verdict, "frame", None)) == value
    delayed = decide(gate(action | {"delay": 50}), CALL, t=100)
    assert (type(delayed), delayed.until, delayed.how, type(delayed.then)) == (Hold, 150, "delayed", kind)


def test_hold_and_delay_end_by_themselves():
    held = decide(gate({"hold": 60}), CALL, t=100)
    assert (held.until, held.how, held.then, held.by) == (160, "expired", PASS, "gate g")
    delayed = decide(gate({"delay": 60}), CALL, t=100)
    assert (delayed.until, delayed.how, delayed.then) == (160, "delayed", PASS)


@pytest.mark.parametrize("frame", [NOTE, RESULT, b"[" + CALL + b"," + CALL + b"]", CALL.replace(b"3", b"true")])
def test_only_a_single_request_can_be_answered(frame):
    answering = gate({"answer": '{"result":{}}'}, when={"method": "*"})
    table = InFlight()
    table.note(None, "server", read(CALL, "lines")[0])
    with pytest.raises(ValueError, match="only a single request"):
        decide(answering, frame, table=table)


def acted(gate, count=10):
    return [decide(gate, CALL) is not PASS for _ in range(count)]


def test_after_and_times():
    assert acted(gate(after=3)) == [False] * 3 + [True] * 7
    assert acted(gate(times=2)) == [True] * 2 + [False] * 8
    assert acted(gate(after=3, times=1)) == [False] * 3 + [True] + [False] * 6


def test_only_matches_count():
    counting = gate(after=1, when={"method": "tools/call"})
    for _ in range(5):
        assert decide(counting, NOTE) is PASS
    assert decide(counting, CALL) is PASS
    assert decide(counting, CALL) is not PASS


def test_chance_is_the_same_in_every_run():
    first = acted(gate(chance=0.2, seed=7), 2000)
    assert first == acted(gate(chance=0.2, seed=7), 2000)
    assert first != acted(gate(chance=0.2, seed=8), 2000)
    assert 300 < sum(first) < 500
    assert first[:20] == [number in CHOSEN for number in range(1, 21)], "on every machine and in every version"
    assert not any(acted(gate(chance=0)))
    assert all(acted(gate(chance=1)))


CHOSEN = {11, 13, 15}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"when": {"header": "x"}}, "header"),
        ({"action": {"scramble": "bom"}}, "scramble"),
        ({"action": {}}, "one action"),
        ({"name": "\ud800"}, "half a surrogate pair"),
        ({"action": {"edit": [{"op": "add", "path": "", "value": {"\ud800": 1}}]}}, "half a surrogate pair"),
        ({"action": {"edit": [{"op": "add", "path": "", "value": json.loads("[" * 300 + "]" * 300)}]}}, "250 levels"),
        ({"action": {"drop": True, "close": True}}, "one action"),
        (
            {"afetr": 1},
            "gate g has an unknown key afetr; allowed: name, when, action, after, times, chance",
        ),
    ],
)
def test_what_it_does_not_know_is_refused(change, fault):
    with pytest.raises(ValueError, match=fault):
        DeclaredGate(json.loads(json.dumps({"name": "g", "action": {"drop": True}} | change)))


VALUES = [
    ("name", 5, "a text that is not empty"),
    ("name", "", "a text that is not empty"),
    ("when", [], "an object"),
    ("action", "drop", "an object"),
    ("after", -1, "a whole number from 0 to "),
    ("times", 0, "a whole number from "),
    ("times", 1.5, "a whole number from "),
    ("chance", 1.1, "a number from 0 to 1"),
    ("chance", "0.5", "a number from 0 to 1"),
    ("seed", [], "a whole number or a text"),
    ("when.from", "sever", "client or server"),
    ("when.kind", "reqest", "request, notification, result, error or response"),
    ("when.method", "", "a text that is not empty"),
    ("when.name", [""], "a text that is not empty"),
    ("when.id", ["number", 7], "the type and the text of an id"),
    ("when.id", ["number", "seven"], "the type and the text of an id"),
    ("when.id", ["null", "nil"], "the type and the text of an id"),
    ("when.id", ["text", "a"], "the type and the text of an id"),
    ("when.id", ["number", "7", "8"], "the type and the text of an id"),
    ("when.id", 7, "the type and the text of an id"),
    ("action.drop", False, "true"),
    ("action.drop", 1, "true"),
    ("action.close", False, "true"),
    ("action.repeat", 0, "a whole number from "),
    ("action.repeat", "x", "a whole number from "),
    ("action.repeat", True, "a whole number from "),
    ("action.delay", "2s", "a whole number from 1 to 86400000000000"),
    ("action.hold", -1, "a whole number from 1 to 86400000000000"),
    ("action.send", 5, "a text, or several"),
    ("action.send", [], "a text, or several"),
    ("action.send", ["a", None], "a text, or several"),
    ("action.send", "\ud800", "a text, or several"),
    ("action.answer", "{}", "the JSON text of an object with result or error"),
    ("action.answer", "[]", "the JSON text of an object with result or error"),
    ("action.answer", "no JSON", "the JSON text of an object with result or error"),
    ("action.answer", {"result": {}}, "the JSON text of an object with result or error"),
    ("action.answer", '{"result":{},"error":{}}', "the JSON text of an object with result or error"),
    ("action.answer", '{"result":{},"id":1}', "without id and jsonrpc"),
    ("action.answer", '{"result":NaN}', "the JSON text of an object with result or error"),
    ("action.answer", '{"result":[-Infinity]}', "the JSON text of an object with result or error"),
    ("action.answer", '\ufeff{"result":{}}', "the JSON text of an object with result or error"),
]


@pytest.mark.parametrize(("key", "value", "allowed"), VALUES, ids=str)
def test_a_value_that_does_not_suit_its_key_is_refused(key, value, allowed):
    data = {"name": "g", "when": {}, "action": {"drop": True}}
    place, _, inner = key.partition(".")
    if inner:
        data[place] = {inner: value}
    else:
        data[place] = value
    with pytest.raises(ValueError, match=r"^gate .*") as fault:
        DeclaredGate(data)
    name = value if key == "name" else "g"
    assert str(fault.value).startswith(f"gate {name}: {key} is {json.dumps(value)}; it must be ")
    assert allowed in str(fault.value)


def test_a_gate_without_name_or_action_is_refused():
    with pytest.raises(ValueError, match="name is null; it must be a text"):
        DeclaredGate({"action": {"drop": True}})
    with pytest.raises(ValueError, match="action is null; it must be an object"):
        DeclaredGate({"name": "g"})


def test_an_answer_of_several_lines_is_sent_in_one():
    verdict = decide(gate({"answer": '{\r\n  "result": {\n"a": "\\n"}\n}\n'}), CALL)
    assert verdict.frame == b'{"jsonrpc":"2.0","id":3,    "result": { "a": "\\n"} }'


def test_a_long_value_is_named_by_an_excerpt():
    with pytest.raises(ValueError, match=r"action\.send is an array of 1000; it must be a text, or several"):
        gate({"send": [1] * 1000})
