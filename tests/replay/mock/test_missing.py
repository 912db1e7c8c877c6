"""Which lines go to the real server and which to the client; a mock of a transcript, without a process."""

import json

from mcpspy.replay.mock import Missing, Mock
from tests.each import each
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result, script

RECORDED = f"> {INITIALIZE}\n< {INITIALIZED}\n> {call(2, 'a')}\n< {result(2, 'A')}"
READY = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
SAMPLE = '{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"_meta":{"progressToken":"t"}}}'
LIVE = SAMPLE.replace('"id":0', '"id":"mcpspy-live-1"')


class Session:
    """A client in front of a mock, and behind it a server that sends the lines of the test."""

    def __init__(self, text=RECORDED):
        self.sent = []
        """The lines sent to the server."""
        self.started = 0
        self.missing = Missing(self._begin)
        self.mock = Mock([script(text)] if text else [], missing=self.missing)

    def _begin(self, missing):
        assert missing is self.missing
        self.started += 1
        return lambda line: self.sent.append(line.decode())

    def client(self, *lines):
        """Send lines from the client; return the lines that the client receives."""
        for line in lines:
            self.mock.feed(line.encode(), 0)
        return self.told()

    def server(self, *lines):
        """Send lines from the server; return the lines that the client receives."""
        for line in lines:
            self.missing.said(line.encode())
        return self.told()

    def told(self):
        return [it.raw.decode() for it in self.mock.due(0)]

    def shaken(self):
        """Complete the handshake and a first missing call with its answer; return the session."""
        self.client(INITIALIZE, READY, call(5, "b"))
        assert self.server(INITIALIZED, result(5, "B")) == [result(5, "B")]
        self.sent.clear()
        return self


def test_what_was_recorded_needs_no_server():
    session = Session()
    ping = '{"jsonrpc":"2.0","id":9,"method":"ping"}'
    told = session.client(INITIALIZE, READY, call(3, "a"), ping, '{"id":10,"method":"server/discover"}')
    assert told[:3] == [INITIALIZED, result(3, "A"), '{"jsonrpc":"2.0","id":9,"result":{}}']
    assert "Method not found" in told[3]
    assert (session.started, session.sent, session.mock.failed) == (0, [], False)


def test_the_first_missing_request_follows_the_handshake_of_today_whose_answer_is_ours():
    session = Session()
    today = INITIALIZE.replace('"id":1', '"id":"init"').replace("scripted", "today")
    session.client(today, READY)
    odd = call(7, "b").replace('"b"', '"b" ')
    assert session.client(odd) == []
    assert session.sent == [today]
    assert session.server(INITIALIZED.replace('"id":1', '"id":"init"')) == []
    assert session.sent == [today, READY, odd], "byte for byte"
    assert session.server(result(7, "B")) == [result(7, "B")]
    assert session.missing.asked == ["tools/call b"]
    session.client(call(8, "c"))
    assert (session.started, session.sent[3:]) == (1, [call(8, "c")])


def test_a_client_that_ends_its_handshake_later_ends_it_with_the_server_too():
    session = Session()
    session.client(INITIALIZE, call(5, "b"))
    session.server(INITIALIZED)
    assert session.sent == [INITIALIZE, call(5, "b")]
    session.client(READY)
    assert session.sent[2:] == [READY]
    meanwhile = Session()
    meanwhile.client(INITIALIZE, call(5, "b"), READY)
    meanwhile.server(INITIALIZED)
    assert meanwhile.sent == [INITIALIZE, READY, call(5, "b")], "once, also if it comes during the handshake"


def test_a_handshake_that_is_missing_itself_is_the_servers():
    session = Session("")
    assert session.client(INITIALIZE) == []
    assert session.server(INITIALIZED) == [INITIALIZED]
    session.client(READY, call(2, "a"))
    assert session.sent == [INITIALIZE, READY, call(2, "a")]


def test_without_a_capture_a_question_which_revision_it_is_goes_to_the_server():
    session = Session("")
    discover = '{"jsonrpc":"2.0","id":1,"method":"server/discover"}'
    session.client(discover)
    assert session.sent == [discover]


def test_of_a_batch_only_what_is_missing_goes_to_the_server():
    session = Session().shaken()
    told = session.client(f"[{call(6, 'a')}, {call(7, 'c')}]")
    assert (told, session.sent) == ([result(6, "A")], [call(7, "c")])


def test_questions_of_the_server_have_ids_that_nobody_else_has():
    recorded = SAMPLE.replace('"t"', '"u"')
    text = f"> {call(1, 'a')}\n< {recorded}\n> {result(0, 'yes')}\n< {result(1, 'A')}"
    session = Session(text)
    assert session.client(call(4, "a"), call(5, "b")) == [recorded]
    assert session.server(SAMPLE) == [LIVE]
    session.client(result('"mcpspy-live-1"', "live"))
    assert session.sent == [call(5, "b"), result(0, "live")]
    assert session.client(result(0, "yes")) == [result(4, "A")]
    assert not session.mock.wrong


def test_the_server_takes_its_question_back_under_the_clients_id():
    session = Session().shaken()
    session.server(SAMPLE)
    taken = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":0}}'
    assert session.server(taken) == [taken.replace('"requestId":0', '"requestId":"mcpspy-live-1"')]


def test_progress_logs_and_changed_lists_come_as_they_are():
    session = Session().shaken()
    token = '{"progressToken":5}'
    session.client(call(9, "b", '{"n":1}', token))
    progress = f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{token}}}'
    changed = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
    said = [progress, changed, "this is no JSON", result(9, "B")]
    assert session.server(*said) == said


def test_what_the_client_tells_the_server_hears_where_it_concerns_it():
    session = Session().shaken()
    session.client(call(9, "b", '{"n":1}'))
    session.server(SAMPLE)
    session.sent.clear()

    def cancelled(n):
        return f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{n}}}}}'

    def progress(token):
        return f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"{token}"}}}}'

    roots = '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}'
    session.client(cancelled(2), cancelled(9), progress("else"), progress("t"), roots)
    assert session.sent == [cancelled(9), progress("t"), roots]
    session.missing.ended("was ended by the signal 9")
    assert session.told() == [], "the client wants no answer to 9"


def test_what_is_cancelled_before_it_was_sent_is_not_sent():
    session = Session()
    session.client(INITIALIZE, READY, call(5, "b"))
    session.client('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}')
    assert session.server(INITIALIZED) == []
    assert session.sent == [INITIALIZE, READY]
    assert not session.missing.pending


def refused(line, number):
    found = json.loads(line)
    assert (found["id"], found["error"]["code"]) == (number, -32603)
    return found["error"]["message"]


def test_a_server_that_ends_fails_what_it_was_asked_and_what_it_would_be():
    session = Session()
    session.client(INITIALIZE, READY, call(5, "b"))
    assert session.missing.pending
    session.missing.ended("ended with the exit code 3")
    why = "tools/call b was not recorded, and the server ended with the exit code 3"
    assert refused(*session.told(), 5) == why
    assert refused(*session.client(call(6, "b")), 6) == why
    assert (session.started, session.mock.failed, session.missing.pending) == (1, True, False)
    assert session.client(call(7, "a")) == [result(7, "A")]


def test_a_server_that_refuses_the_handshake_fails_what_it_was_asked():
    session = Session()
    session.client(INITIALIZE, READY, call(5, "b"))
    told = session.server('{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"too old"}}')
    assert refused(*told, 5).endswith("and the server refused the handshake: too old")


@each("line", ["[]", '{"id":1}', "null", '{"jsonrpc":"2.0","id":99,"result":{}}'])
def test_what_the_server_says_to_nothing_comes_to_the_client_as_from_the_server_itself(line):
    assert Session().shaken().server(line) == [line]


def test_a_recorded_request_without_an_answer_is_missing():
    session = Session(f"> {call(1, 'a')}")
    session.client(call(4, "a"))
    assert session.sent == [call(4, "a")]
