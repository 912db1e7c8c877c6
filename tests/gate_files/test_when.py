import pytest

from mcpspy.errors import GateError
from mcpspy.gate.compiled import DeclaredGate
from mcpspy.gate_files.file import compile_when


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("", {}),
        ("method:tools/call name:search* from:client", {"method": "tools/call", "name": "search*", "from": "client"}),
        ('name:"search*"', {"name": {"is": "search*"}}),
        ('name:"search"', {"name": "search"}),
        ('method:tools/call,"a*b"', {"method": ["tools/call", {"is": "a*b"}]}),
        ("-name:search*", {"not": {"name": "search*"}}),
        ("method:a method:b", {"method": "a", "all": [{"method": "b"}]}),
        ("method:a (method:b (method:c method:d))", {"method": "a", "all": [{"method": "b", "all": [
            {"method": "c", "all": [{"method": "d"}]}]}]}),
        ("method:a or kind:error", {"any": [{"method": "a"}, {"kind": "error"}]}),
        ("(a or b) (c or d)", {"any": [{"text": "a"}, {"text": "b"}],
            "all": [{"any": [{"text": "c"}, {"text": "d"}]}]}),
        ("not (kind:result,error or from:client)",
            {"not": {"any": [{"kind": ["result", "error"]}, {"from": "client"}]}}),
        ("kind:*", {"kind": ["request", "notification", "result", "error"]}),
        ("kind:e*", {"kind": "error"}),
        ("from:*", {"from": ["client", "server"]}),
        ('id:3,"3",null,ab*', {"id": [["number", "3"], ["string", "3"], ["null", "null"], ["glob", "ab*"]]}),
        ("id:-1.50e3", {"id": ["number", "-1.50e3"]}),
        ("size:>1kb", {"size": [1001, None]}),
        ("size:>=1kb", {"size": [1000, None]}),
        ("size:<100", {"size": [0, 99]}),
        ("size:<=100", {"size": [0, 100]}),
        ("size:1kib..2kib", {"size": [1024, 2048]}),
        ("size:1kb,7", {"size": [[1000, 1999], [7, 7]]}),
        ('"connection refused" Bergen', {"text": "connection refused", "all": [{"text": "Bergen"}]}),
        ("text:a,b", {"text": ["a", "b"]}),
    ],
)  # fmt: skip
def test_a_filter_becomes_an_object(text, when):
    assert compile_when(text) == when
    assert DeclaredGate({"name": "a", "when": when, "action": {"drop": True}}).by == "gate a"


CAN = "needs more than one frame to answer; a gate can ask for method, name, id, from, kind, size and text"
MISTAKES = [
    ("metod:tools/call", 1, "unknown key 'metod'; did you mean 'method'?"),
    ("from:client (a", 13, "a bracket is not closed"),
    ("from:client status:error", 13, f"status:error {CAN}"),
    ("from:client -(a or latency:>1s)", 20, f"latency:>1s {CAN}"),
    ("session:a*", 1, f"session:a* {CAN}"),
    ("rule:pairing", 1, f"rule:pairing {CAN}"),
    ("severity:error", 1, f"severity:error {CAN}"),
    ("revision:2025-06-18", 1, f"revision:2025-06-18 {CAN}"),
    ("time:>5", 1, f"time:>5 {CAN}"),
    ("kind:stderr", 1, "kind:stderr never passes a gate; kind is request, notification, result or error"),
    ("kind:request,gap", 1, "kind:gap never passes a gate; kind is request, notification, result or error"),
    ("a from:mcpspy", 3, "from:mcpspy never passes a gate; from is client or server"),
    ("kind:reqest", 6, "'reqest' is not a valid kind; did you mean 'request'?"),
    ("id:007", 1, '007 is not a number in JSON; for an id that is a text write id:"007"'),
    ("size:5..1", 1, "no frame has size:5..1; the smaller number comes first, as in 1kb..2kb"),
    ("size:<0", 1, "no frame has size:<0; the smaller number comes first, as in 1kb..2kb"),
    ('""', 1, 'every frame contains ""; name a text, or leave the term out'),
    ('method:""', 1, "no method or name is empty; to ask for frames without one, negate the glob *"),
]


@pytest.mark.parametrize(("text", "column", "what"), MISTAKES)
def test_a_mistake_names_its_column_and_what_to_do(text, column, what):
    with pytest.raises(GateError) as error:
        compile_when(text)
    assert (error.value.column, error.value.what) == (column, what)
    assert str(error.value) == f"column {column}: {what}"
