"""The changes from one session to another, and their places in both."""

import json

from mcpspy.replay.differences import ABSENT
from mcpspy.tui.model.comparison import change_entries
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result, script

LIST = '{"jsonrpc":"2.0","id":9,"method":"tools/list"}'


def listing(*names):
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return json.dumps({"jsonrpc": "2.0", "id": 9, "result": {"tools": tools}})


def session(*lines):
    return script("\n".join(lines))


def test_a_session_does_not_differ_from_itself():
    same = session(f"> {call(1, 'a')}", f"< {result(1, 'A')}")
    assert change_entries(same, same) == ("0 changes in listings · answers: 1 same", [])


def test_each_change_leads_to_the_frames_and_messages_of_both():
    old = session(f"> {call(1, 'a')}", f"< {result(1, 'A')}", f"> {call(2, 'gone')}", f"< {result(2, 'x')}")
    new = session(f"> {LIST}", f"< {listing('a')}", f"> {call(1, 'a')}", f"< {result(1, 'B')}", f"> {call(3, 'new')}")
    totals, found = change_entries(old, new)
    assert totals == "0 changes in listings · answers: 1 changed, 1 missing, 1 extra"
    assert [(it.sign, it.text, it.lines) for it in found] == [
        ("~", "tools/call a: changed", (2, 4)),
        ("-", "tools/call gone: missing", (4, None)),
        ("+", "tools/call new: extra", (None, 5)),
    ]
    assert [it.pointer for it in found[0].differences] == ["/result/content/0/text"]
    assert [it["result"]["content"][0]["text"] for it in found[0].values] == ["A", "B"]
    assert found[1].values[1] is ABSENT
    assert found[2].values[1]["method"] == "tools/call"


def test_what_is_offered_leads_to_the_listings():
    old = session(f"> {INITIALIZE}", f"< {INITIALIZED}", f"> {LIST}", f"< {listing('a', 'b')}")
    other = INITIALIZED.replace('"tools":{}', '"logging":{}')
    new = session(f"> {INITIALIZE}", f"< {other}", f"> {LIST}", f"< {listing('b', 'c')}")
    totals, found = change_entries(old, new)
    assert totals.startswith("3 changes in listings")
    assert [(it.sign, it.text, it.lines) for it in found] == [
        ("~", "the description of the server", (2, 2)),
        ("-", "tool a: removed, breaking", (4, None)),
        ("+", "tool c: added, compatible", (None, 4)),
    ]
    assert found[1].values == ({"name": "a", "inputSchema": {"type": "object"}}, ABSENT)
    assert [it.observed for it in found[2].differences] == [{"name": "c", "inputSchema": {"type": "object"}}]


def test_what_takes_much_longer_is_an_entry_without_values():
    old, new = (session(f"> {call(1, 'a')}", f"@{end} < {result(1, 'A')}") for end in (0.02, 2))
    (entry,) = change_entries(old, new)[1]
    assert entry == ("·", "tools/call a: 19.0 ms became 2.00 s", (), (None, None), (ABSENT, ABSENT))
