"""Messages inside a line: where they are, and that no line takes long."""

from mcpspy.wire.jsonrpc import Notification, Result, messages_within
from tests.each import each
from tests.limits import proportionate

PING = '{"jsonrpc":"2.0","id":2,"result":{}}'


def test_the_positions_are_in_characters():
    text, found = messages_within(f'é {PING}{{}} {{"jsonrpc":"2.0","method":"x"}}'.encode())
    assert [type(it.body) for it in found] == [Result, Notification]
    assert text[found[0].start : found[0].end] == PING
    assert found[0].start == 2


def test_an_integer_that_python_does_not_convert_hides_no_other_message():
    text, found = messages_within(b'x {"jsonrpc":"2.0","id":' + b"1" * 5000 + b"} " + PING.encode())
    assert [text[it.start : it.end] for it in found] == [PING]


HOSTILE = {
    "long integers": b'{"id":' + (b"1" * 5000 + b'}{"id":') * 100,
    "open brackets": b"{" * 500_000,
    "open objects": b'{"id":' * 100_000,
    "open objects in text": b'x {"id" ' * 100_000,
    "open strings": b'{"id":"' * 100_000,
    "escapes": b'{"id":"\\' * 100_000,
    "nested arrays": b'{"id":' + b"[" * 500_000,
    "spaces": b'{"id":' + b" " * 500_000,
    "broken numbers": b'{"id":1e' * 100_000,
    "messages": PING.encode() * 25_000,
}


@each("name", HOSTILE)
def test_no_line_takes_long(name):
    raw = HOSTILE[name] + b' "jsonrpc"'
    with proportionate(1):
        messages_within(raw)
