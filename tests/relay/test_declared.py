from mcpspy.gate.verdicts import PASS, Drop
from mcpspy.relay.declared import declared


def test_compiled_gates_become_one_gate():
    said = []
    gates = [{"name": "a", "when": {"method": "a"}, "action": {"drop": True}}, {"name": "b", "action": {"close": True}}]
    gate = declared(gates, {}, said.append)
    facts = gate.facts("client", "lines")
    assert isinstance(gate.decide(b'{"id":1,"method":"a"}', facts, 0), Drop)
    assert gate.decide(b'{"id":1,"method":"b"}', facts, 0).by == "gate b"
    assert declared([], {}, said.append).decide(b"{}", facts, 0) is PASS
    assert said == []
