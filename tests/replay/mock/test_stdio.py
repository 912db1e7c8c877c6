import json
import os
import threading

from mcpspy.replay.mock import Mock, serve
from mcpspy.replay.tolerance import Echo, Rules, Tolerance
from tests import limits
from tests.each import each
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result, script

NOTE = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
SAMPLE = '{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"maxTokens":1}}'
GREEN = '{"jsonrpc":"2.0","id":0,"result":{"model":"m","content":"green"}}'
SAMPLING = f"> {call(1, 'a')}\n< {SAMPLE}\n> {GREEN}\n< {result(1, 'green')}"


def converse(text, *lines, **options):
    """Send lines to the mock of a transcript; return its answers to each line, and the mock."""
    mock = Mock([script(text)], **options)
    mock.begin(0)
    said = []
    for now, line in enumerate(lines, 1):
        mock.feed(line.encode(), now)
        said.append([it.raw.decode() for it in mock.due(now)])
    return said, mock


def test_a_recorded_request_has_its_recorded_answer_byte_for_byte():
    answer = '{"result" : {"n":1.50, "s":"\\u00e9"},"id":1 ,"jsonrpc":"2.0"}'
    said, mock = converse(f"> {call(1, 'a')}\n< {answer}", call(1, "a"))
    assert said == [[answer]]
    assert not mock.misses


@each("number", ["2", '"two"', "1.0", "1e0", "12345678901234567890123"])
def test_an_answer_has_the_id_of_its_request_today(number):
    said, _ = converse(f"> {call(1, 'a')}\n< {result(1, 'A')}", call(number, "a"))
    assert said == [[result(number, "A")]]


def test_progress_has_the_token_of_today_and_does_not_come_without_one():
    note = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    meta = '{"progressToken":1}'
    text = f"> {call(1, 'a', meta=meta)}\n< {note}\n< {result(1, 'A')}"
    said, _ = converse(text, call(1, "a", meta='{"progressToken":"x"}'), call(2, "a"))
    assert said == [[note.replace('progressToken":1', 'progressToken":"x"'), result(1, "A")], [result(2, "A")]]


def test_of_two_requests_at_once_that_are_alike_each_has_the_progress_of_its_own():
    note = '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}'
    meta = '{"progressToken":1}'
    text = f"> {call(1, 'a', meta=meta)}\n< {SAMPLE}\n> {GREEN}\n< {note}\n< {result(1, 'A')}"
    both = [call(2, "a", meta='{"progressToken":"x"}'), call(3, "a", meta='{"progressToken":"y"}')]
    said, _ = converse(text, *both, GREEN, GREEN.replace('"id":0', '"id":"mcpspy-1"'))
    assert said[2] == [note.replace('progressToken":1', 'progressToken":"x"'), result(2, "A")]
    assert said[3] == [note.replace('progressToken":1', 'progressToken":"y"'), result(3, "A")]


def test_the_same_call_a_hundred_times_and_in_any_order_is_answered():
    turns = "\n".join(f"> {call(n, name)}\n< {result(n, name * n)}" for n, name in enumerate("aab", 1))
    asked = [call(n, "ab"[n % 2]) for n in range(100)]
    said, mock = converse(turns, *asked)
    assert [it for (it,) in said[:4]] == [result(0, "a"), result(1, "bbb"), result(2, "aa"), result(3, "bbb")]
    assert {it.partition(",")[2].partition(",")[2] for (it,) in said[4:]} == {
        result(0, text).partition(",")[2].partition(",")[2] for text in ("aa", "bbb")
    }
    assert not mock.misses


def test_a_subscription_has_the_id_of_today():
    listen = '{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{}}'
    meta = '{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}'
    note = f'{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{meta}}}'
    text = f"> {listen}\n< {note}\n> {call(1, 'grow')}\n< {note}\n< {result(1, 'grown')}"
    said, _ = converse(text, listen.replace('"s"', "7"), call(8, "grow"))
    today = note.replace('"s"', "7")
    assert said == [[today], [today, result(8, "grown")]]


def test_the_server_asks_when_its_cause_comes_and_goes_on_when_it_is_answered():
    said, mock = converse(SAMPLING, call(5, "a"), GREEN)
    mock.end()
    assert said == [[SAMPLE], [result(5, "green")]]
    assert not mock.wrong


def test_another_answer_than_the_recorded_one_is_told():
    _, mock = converse(SAMPLING, call(1, "a"), GREEN.replace("green", "red"))
    assert [(it.question.n, it.difference.pointer, it.difference.observed) for it in mock.wrong] == [
        (2, "/result/content", "red")
    ]
    _, mock = converse(SAMPLING, call(1, "a"), '{"jsonrpc":"2.0","id":0,"error":{"code":-1,"message":"no"}}')
    assert [(it.difference.pointer, list(it.difference.observed)) for it in mock.wrong] == [("", ["error"])]


def test_an_answer_that_does_not_come_is_told():
    _, mock = converse(SAMPLING, call(1, "a"))
    mock.end()
    assert [(it.question.n, it.difference) for it in mock.wrong] == [(2, None)]


def test_a_question_that_is_asked_twice_at_once_has_two_ids():
    said, _ = converse(SAMPLING, call(1, "a"), call(2, "a"), GREEN.replace('"id":0', '"id":"mcpspy-1"'), GREEN)
    other = SAMPLE.replace('"id":0', '"id":"mcpspy-1"')
    assert said == [[SAMPLE], [other], [result(2, "green")], [result(1, "green")]]


def test_what_the_server_says_first_comes_first():
    mock = Mock([script(f"< {NOTE}\n> {INITIALIZE}\n< {INITIALIZED}")])
    mock.begin(5)
    assert [it.raw for it in mock.due(5)] == [NOTE.encode()]


def test_what_a_notification_brought_about_it_brings_about_once():
    done = '{"jsonrpc":"2.0","method":"notifications/initialized"}'
    said, _ = converse(f"> {done}\n< {NOTE}", done, done, '{"jsonrpc":"2.0","method":"notifications/unheard"}')
    assert said == [[NOTE], [], []]


def test_a_cancelled_request_is_not_answered_unless_it_was():
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    today = cancel.replace("1}", "4}")
    said, _ = converse(f"> {call(1, 'a')}\n> {cancel}\n< {result(1, 'A')}", call(4, "a"), today)
    assert said == [[], [result(4, "A")]]
    said, _ = converse(SAMPLING, call(4, "a"), today, GREEN)
    assert said == [[SAMPLE], [], []]


def test_the_next_request_does_not_wait_for_one_that_was_never_answered():
    said, _ = converse(f"> {call(1, 'hang')}\n> {call(2, 'a')}\n< {result(2, 'A')}", call(1, "hang"), call(2, "a"))
    assert said == [[], [result(2, "A")]]


def test_ping_is_answered_and_a_probe_refused_though_neither_was_recorded():
    ping, probe = (f'{{"jsonrpc":"2.0","id":"p","method":"{method}"}}' for method in ("ping", "server/discover"))
    said, mock = converse(f"> {INITIALIZE}\n< {INITIALIZED}", ping, probe)
    assert said == [
        ['{"jsonrpc":"2.0","id":"p","result":{}}'],
        ['{"jsonrpc":"2.0","id":"p","error":{"code":-32601,"message":"Method not found"}}'],
    ]
    assert not mock.misses


def test_a_miss_is_an_error_that_names_the_nearest_request():
    said, mock = converse(f"> {call(1, 'a')}\n< {result(1, 'A')}", call(2, "b"), '{"id":3,"method":"prompts/list"}')
    near = 'tools/call b was not recorded; the nearest is #1, with \\"a\\" at /params/name instead of \\"b\\"'
    assert said[0] == [f'{{"jsonrpc":"2.0","id":2,"error":{{"code":-32603,"message":"{near}"}}}}']
    assert '"code":-32601' in said[1][0]
    assert [miss.method for miss in mock.misses] == ["tools/call", "prompts/list"]


def test_loosely_a_request_is_answered_by_its_name():
    text = f"> {call(1, 'a')}\n< {result(1, 'A')}"
    said, mock = converse(text, call(2, "a", '{"x":1}'), call(3, "b"), loose=True)
    assert said[0] == [result(2, "A")]
    near = "the nearest is #1, with nothing at /params/arguments/x instead of 1"
    assert mock.notices == [f"answered with the nearest recording: tools/call a was not recorded; {near}"]
    assert [miss.name for miss in mock.misses] == ["b"]


def rules(*tolerances, **echoes):
    repeated = (Echo.parse(f"/result/content/0/{at}", f"/params/arguments/{it}") for at, it in echoes.items())
    return Rules(tuple(Tolerance.parse(*it) for it in tolerances), tuple(repeated))


def booking(number, room, nonce):
    return call(number, "book", json.dumps({"room": room, "nonce": nonce}))


def test_requests_that_differ_where_they_may_are_the_same_and_the_last_is_repeated():
    text = "\n".join(f"> {booking(n, r, f'n{n}')}\n< {result(n, f'{r} n{n} ok')}" for n, r in ((1, 5), (2, 5), (3, 6)))
    nonce = rules(("matches", "tools/call book /params/arguments/nonce", "^n[0-9]+$"), text="nonce")
    lines = [booking(9, 6, "n70"), *(booking(9, 5, f"n8{n}") for n in range(3)), booking(9, 5, "n2")]
    said, mock = converse(text, *lines, booking(9, 5, "none"), rules=nonce)
    answers = [result(9, it) for it in ("6 n70 ok", "5 n80 ok", "5 n81 ok", "5 n82 ok", "5 n2 ok")]
    assert said[:5] == [[it] for it in answers]
    rule = "(matcher: matches ^n[0-9]+$)"
    assert str(mock.misses[0]).endswith(f'with "n1" at /params/arguments/nonce instead of "none" {rule}')


def test_what_is_ignored_in_answers_does_not_count_in_requests():
    text = f"> {call(1, 'a')}\n< {result(1, 'A')}"
    for ignored in ("tools/call a", "/result", "tools/call a /error/message"):
        _, mock = converse(text, call(2, "a", '{"x":1}'), rules=rules(("ignore", ignored)))
        assert len(mock.misses) == 1
    assert not converse(text, call(2, "a", '{"x":1}'), rules=rules(("ignore", "/params/arguments/x")))[1].misses
    assert converse(text, call(2, "b"), rules=rules(("ignore", "/params")))[1].misses, "another tool is never the same"


def test_an_answer_of_the_client_may_differ_where_it_may():
    other = GREEN.replace("green", "red")
    for pointer, wrong in (("/result/content", 0), ("sampling/createMessage /result/content", 0), ("/result/model", 1)):
        _, mock = converse(SAMPLING, call(1, "a"), other, rules=rules(("ignore", pointer)))
        assert len(mock.wrong) == wrong


def test_recordings_that_were_not_requested_are_unused():
    calls = "\n".join(f"> {call(n, name)}\n< {result(n, name)}" for n, name in enumerate("abac", 2))
    text = f"> {INITIALIZE}\n< {INITIALIZED}\n> {call(7, 'd')}\n{calls}"
    _, mock = converse(text, call(1, "a"), call(2, "c"), call(3, "c"), call(4, "e"))
    assert [str(it) for it in mock.unused] == ["tools/call d", "tools/call b", "tools/call a"]


def test_a_line_that_is_no_message_is_answered_as_json_rpc_has_it():
    said, _ = converse(f"> {call(1, 'a')}", "nonsense", '{"jsonrpc":"2.0"}')
    assert '"id":null,"error":{"code":-32700' in said[0][0]
    assert '"id":null,"error":{"code":-32600' in said[1][0]


def test_nonsense_that_was_recorded_is_answered_as_it_was():
    refusal = '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    said, _ = converse(f"> {{nonsense\n< {refusal}", "{nonsense", "other nonsense")
    assert said[0] == [refusal]
    assert said[1] != [refusal]


def test_a_batch_is_answered_message_by_message():
    text = f"> [{call(1, 'a')},{call(2, 'b')}]\n< [{result(1, 'A')},{result(2, 'B')}]"
    said, _ = converse(text, f"[{call(7, 'b')},{call(8, 'a')}]")
    assert said == [[result(7, "B"), result(8, "A")]]


def test_several_captures_are_one_server():
    mock = Mock([script(f"> {call(1, name)}\n< {result(1, name)}") for name in "ab"])
    mock.feed(call(1, "b").encode(), 1)
    mock.feed(call(2, "a").encode(), 2)
    assert [it.raw for it in mock.due(2)] == [result(1, "b").encode(), result(2, "a").encode()]


def test_at_the_recorded_pace_lines_are_due_as_long_after_their_cause():
    text = f"@1 > {call(1, 'a')}\n@1.5 < {SAMPLE}\n@9 > {GREEN}\n@9.25 < {NOTE}\n@9.5 < {result(1, 'green')}"
    mock = Mock([script(text)], recorded_pace=True)
    mock.feed(call(1, "a").encode(), 0)
    assert (mock.due(499_999_999), mock.next) == ([], 500_000_000)
    assert [it.raw for it in mock.due(500_000_000)] == [SAMPLE.encode()]
    assert mock.next is None
    mock.feed(GREEN.encode(), 600_000_000)
    assert [it.raw for it in mock.due(850_000_000)] == [NOTE.encode()]
    assert [it.raw for it in mock.due(1_100_000_000)] == [result(1, "green").encode()]


def test_what_is_due_later_is_not_said_of_a_request_that_is_cancelled():
    mock = Mock([script(f"@1 > {call(1, 'a')}\n@2 < {NOTE}\n@3 < {result(1, 'A')}\n")], recorded_pace=True)
    mock.feed(call(1, "a").encode(), 0)
    mock.feed(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}', 1)
    assert mock.next is None


def test_a_client_is_served_until_it_goes():
    (client_in, server_out), (server_in, client_out) = os.pipe(), os.pipe()
    mock = Mock([script(f"> {call(1, 'a')}\n< {result(1, 'A')}")], loose=True)
    said = []
    served = threading.Thread(target=serve, args=(mock, server_in, server_out, said.append), daemon=True)
    served.start()
    os.write(client_out, call(3, "a", '{"x":1}').encode() + b"\n")
    assert limits.read(client_in, 65536).decode() == result(3, "A") + "\n"
    os.close(client_out)
    served.join(10)
    assert not served.is_alive()
    assert said[0].startswith("answered with the nearest recording: tools/call a was not recorded")
    for fd in (client_in, server_out, server_in):
        os.close(fd)


def test_a_line_tells_on_which_stream_it_belongs():
    listen = '{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{}}'
    meta = '{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}'
    note = f'{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{meta}}}'
    mock = Mock([script(f"> {listen}\n> {call(1, 'grow')}\n< {note}\n< {result(1, 'grown')}\n> {NOTE}\n< {NOTE}")])
    for line in (listen.replace('"s"', "7"), call(8, "grow"), NOTE, "junk"):
        mock.feed(line.encode(), 1)
    said = [(it.request and it.request.token, it.answer) for it in mock.due(1)]
    assert said == [("7", False), ("8", True), (None, False), (None, False)]
