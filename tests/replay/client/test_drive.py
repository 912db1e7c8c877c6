import json

import pytest

from mcpspy.replay import run
from mcpspy.replay.run import Player
from mcpspy.transport.link import Ended, Failed, Link
from mcpspy.wire.jsonrpc import Id
from tests.replay.scripts import SERVER, FakeLink, call, result, script

NOTE = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
SAMPLE = '{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"maxTokens":1}}'
GREEN = '{"jsonrpc":"2.0","id":0,"result":{"content":"green"}}'


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Shorten all waits: these servers answer at once or never."""
    monkeypatch.setattr(run, "LEAST", 0.02)
    monkeypatch.setattr(run, "START", 0.02)
    monkeypatch.setattr(run, "TIMES", 0)
    monkeypatch.setattr(run, "GRACE", 0.02)


def play(text, server, skip=()):
    """Play the client of a transcript to a server; return the sent lines and the reasons of the driver."""
    recorded = script(text)
    link = FakeLink(server)
    player = Player(recorded, link, [turn for turn in recorded.turns if turn.cause.n in skip])
    player.run()
    return link.sent, {turn.cause.n: reason for turn, reason in player.driven.reasons.items()}


def echo(line):
    """Answer every call with its name, as a server."""
    message = json.loads(line)
    return [result(json.dumps(message["id"]), message["params"]["name"])] if "params" in message else []


def test_what_the_client_said_is_said_again_byte_for_byte():
    first, second = call(1, "a").replace(",", " , "), call('"two"', "b")
    text = f"> {first}\n< {result(1, 'a')}\n> {NOTE}\n> {second}\n< {result(2, 'b')}"
    sent, reasons = play(text, echo)
    assert sent == [first, NOTE, second]
    assert reasons == {}


def test_each_message_that_is_done_is_counted():
    recorded = script(f"> {call(1, 'a')}\n< {result(1, 'a')}\n> {NOTE}")
    done = []
    Player(recorded, FakeLink(echo), ()).run(done.append)
    assert sum(done) == len(recorded.messages) == 3


def test_a_request_goes_out_when_the_answers_that_came_before_it_have_come():
    held = []

    def server(line):
        """Answer the first call only after the second one."""
        held.append(line)
        return [] if len(held) == 1 else [it for line in reversed(held) for it in echo(line)]

    together = f"> {call(1, 'a')}\n> {call(2, 'b')}\n< {result(1, 'a')}\n< {result(2, 'b')}\n> {call(3, 'c')}"
    sent, reasons = play(together, server)
    assert (len(sent), reasons) == (3, {})
    held.clear()
    apart = f"> {call(1, 'a')}\n< {result(1, 'a')}\n> {call(2, 'b')}\n< {result(2, 'b')}"
    _, reasons = play(apart, server)
    assert reasons == {1: "no answer within 0.02 s"}, "the second waited for the first"


def test_what_the_server_has_issued_goes_back_to_it():
    listing = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
    page = '{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"old"}}'
    answer = '{"jsonrpc":"2.0","id":1,"result":{"tools":[],"nextCursor":"old"}}'
    text = f'> {listing}\n< {answer}\n> {page}\n< {{"jsonrpc":"2.0","id":2,"result":{{"tools":[]}}}}'
    answers = {
        listing: [answer.replace("old", "new")],
        page.replace("old", "new"): [answer.replace('"id":1', '"id":2')],
    }
    sent, reasons = play(text, lambda line: answers[line])
    assert sent == [listing, page.replace("old", "new")]
    assert reasons == {}


def test_the_servers_questions_have_their_recorded_answers_whenever_they_come():
    text = f"> {call(1, 'a')}\n< {SAMPLE}\n> {GREEN}\n< {result(1, 'A')}"
    today = SAMPLE.replace('"id":0', '"id":"q"')

    def server(line):
        message = json.loads(line)
        return [today] if "method" in message else [result(1, "A")]

    sent, reasons = play(text, server)
    assert sent == [call(1, "a"), GREEN.replace('"id":0', '"id":"q"')]
    assert reasons == {}


def test_a_question_that_was_never_asked_is_answered_as_far_as_that_is_possible():
    methods = enumerate(("ping", "roots/list", "sampling/createMessage"), 7)
    ping, roots, again = (f'{{"jsonrpc":"2.0","id":{number},"method":"{method}"}}' for number, method in methods)
    asked = iter([[ping, roots, again, result(1, "A")]])
    text = f"> {call(1, 'a')}\n< {SAMPLE}\n> {GREEN}\n< {result(1, 'A')}"
    sent, _ = play(text, lambda line: next(asked, []))
    assert sent[1] == '{"jsonrpc":"2.0","id":7,"result":{}}'
    assert '"id":8,"error":{"code":-32601' in sent[2]
    assert sent[3] == GREEN.replace('"id":0', '"id":9'), "the nearest of its method"


def test_one_silence_is_an_outcome_and_two_are_the_end():
    lines = [f"> {call(n, 'a')}\n< {result(n, 'a')}" for n in (1, 2, 3)]
    _, reasons = play("\n".join(lines), lambda line: echo(line) if '"id":2' in line else [])
    assert reasons == {1: "no answer within 0.02 s", 5: "no answer within 0.02 s"}
    sent, reasons = play("\n".join(lines), lambda _: [])
    assert len(sent) == 2
    assert reasons[5] == "not sent: the server no longer answered"


def test_talk_without_an_answer_is_silence():
    lines = [f"> {call(n, 'a')}\n< {result(n, 'a')}" for n in (1, 2, 3)]
    _, reasons = play("\n".join(lines), lambda _: [NOTE, "nonsense"])
    assert reasons[5] == "not sent: the server no longer answered"


class Endless:
    """The queue of a server that never stops sending."""

    def get(self, timeout):
        del timeout
        return NOTE.encode()

    def get_nowait(self):
        return NOTE.encode()

    def qsize(self):
        return 1000


def test_a_server_that_never_stops_talking_does_not_hold_up_the_end():
    recorded = script(f"> {call(1, 'a')}\n< {result(1, 'a')}\n> {call(2, 'b')}\n< {result(2, 'b')}")
    link = FakeLink(lambda _: [])
    link.heard = Endless()
    player = Player(recorded, link, ())
    player.run()
    assert list(player.driven.reasons.values()) == ["no answer within 0.02 s"] * 2


def test_an_answer_under_an_id_of_another_type_is_told_at_once(monkeypatch):
    monkeypatch.setattr(run, "LEAST", 30)
    monkeypatch.setattr(run, "START", 30)
    text = f"> {call(1, 'a')}\n< {result(1, 'a')}\n> {call(2, 'b')}\n< {result(2, 'b')}"
    server = lambda line: [result('"1"', "a")] if '"id":1' in line else echo(line)  # noqa: E731
    assert play(text, server)[1] == {1: 'it was answered under the id "1", not 1'}


def test_the_first_answer_may_take_longer(monkeypatch):
    """The server must be started, and perhaps installed."""
    monkeypatch.setattr(run, "START", 0.05)
    text = f"> {call(1, 'a')}\n< {result(1, 'a')}\n> {call(2, 'b')}\n< {result(2, 'b')}"
    assert play(text, lambda _: [])[1] == {1: "no answer within 0.05 s", 3: "no answer within 0.02 s"}


def test_an_answer_that_comes_twice_answers_once():
    text = f"> {call(1, 'a')}\n< {result(1, 'a')}\n> {call(2, 'b')}\n< {result(2, 'b')}"
    sent, reasons = play(text, lambda line: echo(line) * 2)
    assert (len(sent), reasons) == (2, {})


def test_a_server_that_has_ended_is_told_no_more():
    lines = [f"> {call(n, 'a')}\n< {result(n, 'a')}" for n in (1, 2, 3)]
    server = lambda line: echo(line) if '"id":1' in line else [Ended("exited with code 3")]  # noqa: E731
    sent, reasons = play("\n".join(lines), server)
    assert len(sent) == 2
    assert reasons == {
        3: "the server exited with code 3 before it answered",
        5: "not sent: the server exited with code 3",
    }


def test_nonsense_is_passed_over():
    _, reasons = play(
        f"> {call(1, 'a')}\n< {result(1, 'a')}", lambda line: ["nonsense", "[]", '{"id":[]}', *echo(line)]
    )
    assert reasons == {}


def test_a_notification_is_waited_for_before_what_followed_it():
    text = f"> {call(1, 'a')}\n< {result(1, 'a')}\n< {NOTE}\n> {call(2, 'b')}\n< {result(2, 'b')}"
    seen = []

    def server(line):
        seen.append(line)
        return [*echo(line), NOTE] if len(seen) == 1 else echo(line)

    assert play(text, server)[1] == {}
    assert play(text, echo)[1] == {}, "it may have come by chance: the session goes on"


def test_a_cancellation_goes_out_after_what_came_before_it():
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    note = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0}}'
    meta = '{"progressToken":1}'
    text = f"> {call(1, 'hang', meta=meta)}\n< {note}\n> {cancel}\n> {call(2, 'b')}\n< {result(2, 'b')}"
    answers = {"hang": [note], "cancelled": [], '"b"': [result(2, "b")]}
    sent, reasons = play(text, lambda line: next(said for word, said in answers.items() if word in line))
    assert [json.loads(line)["method"] for line in sent] == ["tools/call", "notifications/cancelled", "tools/call"]
    assert reasons == {}


def test_what_is_skipped_is_neither_sent_nor_waited_for():
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    text = f"> {call(1, 'a')}\n< {NOTE}\n> {cancel}\n> {call(2, 'b')}\n< {result(2, 'b')}"
    sent, _ = play(text, echo, skip={1})
    assert sent == [call(2, "b")]


def test_garbage_of_the_client_is_replayed_as_garbage():
    answer = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    sent, _ = play(f"> {{not json\n< {answer}", lambda _: [answer])
    assert sent == ["{not json"]


def test_a_real_server_is_driven_and_the_session_recorded(tmp_path):
    forecast = call(1, "get_forecast", '{"city":"Oslo"}')
    recorded = script(f"> {forecast}\n< {result(1, '12 °C, light rain')}")
    path = str(tmp_path / "new.jsonl")
    driven = run.drive(recorded, lambda: Link(list(SERVER), "weather", path, pytest.fail, 0), skip=())
    assert driven.sent == recorded.turns
    assert driven.path == path


def test_a_request_that_cannot_be_answered_says_why():
    text = f"> {call(1, 'a')}\n< {result(1, 'a')}\n> {call(2, 'b')}\n< {result(2, 'b')}"
    number = Id("number", "1")
    _, reasons = play(text, lambda line: [Failed(number, "HTTP 500 No")] if '"id":1' in line else echo(line))
    assert reasons == {1: "HTTP 500 No"}
