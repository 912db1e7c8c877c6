from mcpspy.gate import gate
from mcpspy.gate.gate import REQUESTS, InFlight
from mcpspy.gate.messages import Envelope


def request(token, kind="number", method="tools/call", name="a"):
    return Envelope("request", method, name, (kind, str(token)))


def test_ids_are_told_apart_by_type_sender_and_session():
    table = InFlight()
    table.note(None, "client", request(1, name="number"))
    table.note(None, "client", request("1.0", name="decimal"))
    table.note(None, "client", request(1, "string", name="string"))
    table.note(None, "server", request(1, name="server"))
    table.note("s", "client", request(1, name="session"))
    keys = [("number", "1"), ("number", "1.0"), ("string", "1")]
    assert [table.find(None, "client", key)[1] for key in keys] == ["number", "decimal", "string"]
    assert table.find(None, "server", keys[0]) == ("tools/call", "server")
    assert table.find("s", "client", keys[0]) == ("tools/call", "session")
    assert table.find("t", "client", keys[0]) == (None, None)
    assert table.find(None, "client", None) == (None, None)


def test_what_was_answered_is_forgotten():
    table = InFlight()
    table.note(None, "client", request(1))
    assert table.any(None, "client")
    table.forget(None, "client", ("number", "2"))
    assert table.any(None, "client")
    table.forget(None, "client", ("number", "1"))
    assert not table.any(None, "client")
    assert table.find(None, "client", ("number", "1")) == (None, None)
    table.forget(None, "client", ("number", "1"))


def test_the_oldest_request_gives_way():
    table = InFlight()
    for n in range(REQUESTS + 10):
        table.note(None, "client", request(n))
    assert table.find(None, "client", ("number", "9")) == (None, None)
    assert table.find(None, "client", ("number", "10")) == ("tools/call", "a")
    table.note("other", "client", request(1))
    assert table.find(None, "client", ("number", "10")) == ("tools/call", "a"), "each session has its own bound"


def test_the_oldest_session_gives_way(monkeypatch):
    monkeypatch.setattr(gate, "SENDERS", 3)
    table = InFlight()
    for session in "abcd":
        table.note(session, "client", request(1))
    assert [table.any(session, "client") for session in "abcd"] == [False, True, True, True]


def test_what_is_too_long_is_not_kept():
    table = InFlight()
    for long in (request("1" * 2000), request(1, method="m" * 2000), request(1, name="n" * 2000)):
        table.note(None, "client", long)
    assert not table.any(None, "client")
