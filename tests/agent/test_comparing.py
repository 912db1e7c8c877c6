import sys

import pytest

from mcpspy.agent import sessions
from mcpspy.agent.answers import LARGEST, size_of
from mcpspy.agent.sessions import compare
from mcpspy.errors import UsageError
from tests.agent.conftest import EXAMPLE


def test_two_messages(folder):
    name = folder.add()
    answer = compare(folder.captures, a=f"{name}#10", b=f"{name}#12")
    assert answer["differences"] == [{"pointer": "/params/arguments/text", "a": 5, "b": "a"}]
    assert not answer["same"]
    assert compare(folder.captures, a=f"{name}#10", b=f"{name}#10")["same"]


def test_two_sessions(folder):
    old = folder.add()
    new = folder.add(EXAMPLE.replace('"type":"string"', '"type":"number"').replace("no such file", "a new text"))
    answer = compare(folder.captures, a=old, b=new)
    tool, call = answer["differences"]
    assert (tool["where"], tool["name"], tool["change"]) == ("tools", "echo", "changed")
    assert tool["breaking"]
    assert (call["where"], call["at"], call["outcome"]) == ("exchange", f"{old}#12", "error-changed")
    assert call["differences"][0]["b"] == "a new text"
    assert compare(folder.captures, a=old, b=old)["same"]


def test_many_differences_come_in_pages(folder):
    def session(word):
        return "= 2025-11-25\n" + "\n".join(
            f'> {n} tools/call {{"name":"t{n}"}}\n< {n} = {{"x":"{word * 90}"}}' for n in range(2, 80)
        )

    old, new = folder.add(session("a")), folder.add(session("b"))
    read, cursor = [], ""
    while cursor is not None:
        answer = compare(folder.captures, a=old, b=new, cursor=cursor)
        assert size_of(answer) <= LARGEST
        read += [it["at"] for it in answer["differences"]]
        cursor = answer.get("next")
    assert len(set(read)) == 78


@pytest.mark.parametrize(
    ("a", "b", "sentence"), [("{0}", "{0}#10", "not one of each"), ("{0}#14", "{0}#10", "not a message")]
)
def test_what_cannot_be_compared(folder, a, b, sentence):
    name = folder.add()
    with pytest.raises(UsageError, match=sentence):
        compare(folder.captures, a=a.format(name), b=b.format(name))


def test_a_large_session_is_refused(folder, monkeypatch):
    name = folder.add()
    monkeypatch.setattr(sessions, "LARGEST_SESSION", 100)
    with pytest.raises(UsageError, match="use 'mcpspy diff'"):
        compare(folder.captures, a=name, b=name)


def test_secrets_do_not_come_out(folder):
    call = '= 2025-11-25\n> 2 tools/call {{"name":"login"}}\n< 2 = {{"token":"{}"}}'
    old, new = folder.add(call.format("hunter2xyz1")), folder.add(call.format("correct-horse"))
    for a, b in ((old, new), (f"{old}#9", f"{new}#9")):
        told = str(compare(folder.captures, a=a, b=b))
        assert "hunter2xyz1" not in told
        assert "correct-horse" not in told


def test_a_value_that_its_neighbour_names_a_secret_does_not_come_out(folder):
    call = '= 2025-11-25\n> 2 tools/call {{"name":"e"}}\n< 2 = {{"env":[{{"name":"DB_PASSWORD","value":"{}"}}]}}'
    old, new = folder.add(call.format("walrus77egg")), folder.add(call.format("eggman5599"))
    answer = compare(folder.captures, a=old, b=new)
    call = answer["differences"][0]
    assert (call["at"], call["other"]) == (f"{old}#8", f"{new}#8")
    assert not [it for it in ("walrus77egg", "eggman5599") if it in str(answer)]


def test_what_is_lacking_says_on_which_side(folder):
    old, new = folder.add("= 2025-11-25\n> 2 ping\n< 2 = {}"), folder.add("= 2025-11-25\n> 2 prompts/get\n< 2 = {}")
    told = [(it["outcome"], *(key for key in ("at", "other") if key in it)) for it in _differences(folder, old, new)]
    assert told == [("missing in b", "at"), ("only in b", "other")]


def _differences(folder, old, new):
    return compare(folder.captures, a=old, b=new)["differences"]


def test_a_value_that_is_nested_too_deeply_is_said_to_be(folder):
    init = '> 1 initialize {"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}'
    info = '{"protocolVersion":"2025-11-25","capabilities":%s,"serverInfo":{"name":"s","version":"1"}}'
    deep = f'{{"experimental":{{"x":{"[" * 1000}{"]" * 1000}}}}}'
    a, b = (folder.add(f'{init}\n< | {{"jsonrpc":"2.0","id":1,"result":{info % it}}}') for it in ("{}", deep))
    told = compare(folder.captures, a=a, b=b)["differences"]
    (deepest,) = [it for it in told if it.get("pointer") == "/result/capabilities/experimental"]
    assert deepest["where"] == "server"
    assert deepest["b"] == "(nested too deeply to be shown)" or sys.version_info >= (3, 12)  # 3.12 can show it
