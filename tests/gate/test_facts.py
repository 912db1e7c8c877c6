from mcpspy.gate.gate import Facts, InFlight
from mcpspy.gate.messages import read
from tests.memory import objects_in

CALL = b'{"id":1,"method":"tools/call","params":{"name":"Search"}}'


def test_a_frame_is_decoded_once_and_only_if_somebody_asks():
    facts = Facts("client", "lines", None, InFlight())
    facts.begin(CALL)
    assert not facts.decoded
    assert facts.messages is facts.messages
    assert facts.decoded
    assert b'"search"' in facts.lower
    facts.begin(b"{}")
    assert not facts.decoded
    assert (facts.messages, facts.lower) == ((), b"{}")
    facts.end()
    assert (set(objects_in(facts, bytes)), facts.lower) == ({b""}, b""), "a frame of 1 MiB is not kept"


def test_a_response_has_method_and_name_from_the_request_of_the_other_side():
    table = InFlight()
    server, client = Facts("server", "lines", "s", table), Facts("client", "lines", "s", table)
    server.begin(b'{"id":1,"result":{}}')
    client.begin(b'{"id":1,"result":{}}')
    assert not server.may_answer
    assert server.about(server.messages[0]) == (None, None)
    table.note("s", "client", read(CALL, "lines")[0])
    assert server.may_answer
    assert not client.may_answer
    assert server.about(server.messages[0]) == ("tools/call", "Search")
    assert client.about(client.messages[0]) == (None, None)
    server.begin(b'{"method":"a"}')
    assert not server.may_answer
