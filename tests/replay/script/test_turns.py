"""Turns of a session: what belongs to which request, and values that the server has issued."""

import json

from mcpspy.capture.records import Close, Frame, Open
from mcpspy.replay.issued_values import Values, begins, canonical, matches, renamed
from mcpspy.replay.script import progress_token, read
from tests.each import each
from tests.replay.scripts import INITIALIZE, INITIALIZED, call, result, script

NOTE = '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
ROOTS = '{"jsonrpc":"2.0","id":0,"method":"roots/list"}'
HERE = '{"jsonrpc":"2.0","id":0,"result":{"roots":[]}}'


def progress(token):
    return f'{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}'


def said(turn):
    """Return for each message of a turn its line, the lines of its gates, and the line of the linked turn."""
    return [(it.message.n, [gate.n for gate in it.gates], it.link and it.link.cause.n) for it in turn.said]


def test_an_answer_belongs_to_its_request_in_whatever_order_they_come():
    found = script(f"> {call(1, 'a')}\n> {call(2, 'b')}\n< {result(2, 'b')}\n< {result(1, 'a')}")
    assert [(turn.name, said(turn)) for turn in found.turns] == [("a", [(4, [], None)]), ("b", [(3, [], None)])]


def test_what_comes_meanwhile_belongs_to_the_newest_request_without_an_answer():
    found = script(f"> {call(1, 'a')}\n> {call(2, 'b')}\n< {NOTE}\n< {result(2, 'b')}\n< {NOTE}\n< {result(1, 'a')}")
    assert [said(turn) for turn in found.turns] == [[(5, [], None), (6, [], None)], [(3, [], None), (4, [], None)]]


def test_what_comes_when_nothing_was_asked_belongs_to_the_last_thing_that_the_client_said():
    found = script(f"> {call(1, 'a')}\n< {result(1, 'a')}\n< {NOTE}\n> {NOTE}\n< {ROOTS}\n> {HERE}")
    assert [(turn.method, said(turn)) for turn in found.turns] == [
        ("tools/call", [(2, [], None), (3, [], None)]),
        ("notifications/tools/list_changed", [(5, [], None)]),
    ]
    assert [message.n for message in found.asked] == [5]


def test_what_comes_before_the_client_is_the_opening():
    found = script(f"< {NOTE}\n> {INITIALIZE}\n< {INITIALIZED}")
    assert [line.message.n for line in found.opening] == [1]
    assert [line.message.n for line in found.lines] == [1, 3]
    assert [message.n for message in found.unasked] == [1]


def test_progress_belongs_to_the_request_whose_token_it_has():
    found = script(
        f"""
        > {call(1, "a", meta='{"progressToken":"t"}')}
        > {call(2, "b")}
        < {progress('"t"')}
        < {progress(7)}
        < {result(2, "b")}
        < {result(1, "a")}
        """
    )
    first, second = found.turns
    assert said(first) == [(3, [], 1), (6, [], None)]
    assert said(second) == [(4, [], None), (5, [], None)], "a token that nobody gave names nothing"
    assert [message.n for message in first.linked] == [3]
    assert [message.n for message in found.unasked] == [4]


def test_what_a_subscription_brings_is_caused_by_what_the_client_does_besides():
    listen = '{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{}}'
    meta = '{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}'
    note = f'{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{meta}}}'
    found = script(f"> {listen}\n< {note}\n> {call(1, 'grow')}\n< {note}\n< {result(1, 'grown')}\n< {note}")
    listening, calling = found.turns
    assert said(listening) == [(2, [], 1)]
    assert said(calling) == [(4, [], 1), (5, [], None), (6, [], 1)]
    assert [message.n for message in listening.linked] == [2, 4, 6]
    assert not listening.unanswered


def test_a_line_waits_for_what_the_client_had_answered_before_it():
    ask = ROOTS.replace('"id":0', '"id":1')
    here = HERE.replace('"id":0', '"id":1')
    found = script(f"> {call(1, 'a')}\n< {ROOTS}\n< {ask}\n> {here}\n> {HERE}\n< {NOTE}\n< {result(1, 'a')}")
    assert said(found.turns[0]) == [(2, [], None), (3, [], None), (6, [4, 5], None), (7, [], None)]


def test_an_answer_to_a_cancelled_request_waits_for_the_cancellation():
    cancel = '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    found = script(f"> {call(1, 'a')}\n> {cancel}\n< {NOTE}\n< {result(1, 'a')}")
    cancelled, cancelling = found.turns
    assert said(cancelled) == [(4, [2], None)]
    assert said(cancelling) == [(3, [], None)], "what is cancelled is no longer asked"
    assert cancelled.exchange.cancelled


def test_a_request_that_the_client_has_left_is_asked_no_longer_than_it_says_nothing_else():
    """Over HTTP the client cancels by disconnecting, without a message (2026-07-28)."""
    head = {"method": "POST", "target": "/mcp", "headers": [["accept", "application/json, text/event-stream"]]}
    events = {"status": 200, "headers": [["content-type", "text/event-stream"]]}
    meta = '{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}'
    found = read(
        None,
        [
            Open(0, 1, 1, "client", "request", "body", peer="a:1", head=head),
            Frame(1, 1, 1, call(1, "hang", meta=meta).encode()),
            Open(0, 2, 2, "server", "response", "sse", answers=1, head=events),
            Close(0, 2, 3, "abort"),
            Open(0, 3, 4, "client", "request", "body", peer="a:1", head=head),
            Frame(4, 3, 4, NOTE.encode()),
            Open(0, 4, 5, "client", "request", "body", peer="a:1", head=head | {"method": "GET"}),
            Open(0, 5, 5, "server", "response", "sse", answers=4, head=events),
            Frame(5, 5, 5, f"data: {NOTE}\n".encode()),
        ],
    )
    assert [said(turn) for turn in found.turns] == [[], [(5, [], None)]]
    assert found.turns[0].abandoned


def test_the_order_is_that_of_time_not_of_the_file():
    found = script(f"@0.2 < {result(1, 'a')}\n@0.1 > {call(1, 'a')}\n@0.3 > {call(2, 'b')}\n@0.4 < {result(2, 'b')}")
    assert [message.n for message in found.messages] == [2, 1, 3, 4]
    assert [turn.response.n for turn in found.turns] == [1, 4]


def test_what_is_no_message_is_kept_on_both_sides():
    found = script(f"> | not json\n< | neither\n> {call(1, 'a')}\n< {result(1, 'a')}\n< {result(9, 'nobody asked')}")
    assert [turn.method for turn in found.turns] == [None, "tools/call"]
    assert [message.n for message in found.unasked] == [2, 5]


def test_a_stream_of_http_belongs_to_the_request_that_it_answers():
    def request(ch, raw):
        head = {"method": "POST", "target": "/mcp", "headers": [["accept", "application/json, text/event-stream"]]}
        return [Open(0, ch, ch, "client", "request", "body", peer="a:1", head=head), Frame(ch, ch, ch, raw.encode())]

    def answer(ch, answers, *events):
        head = {"status": 200, "headers": [["content-type", "text/event-stream"]]}
        yield Open(0, ch, ch, "server", "response", "sse", answers=answers, head=head)
        for n, event in enumerate(events):
            yield Frame(ch + n, ch, ch + n, f"data: {event}\n".encode())

    found = read(None, [*request(10, call(1, "a")), *request(20, call(2, "b")), *answer(30, 10, NOTE, result(1, "a"))])
    assert [said(turn) for turn in found.turns] == [[(30, [], None), (31, [], None)], []]


def test_an_ended_session_is_complete_and_a_gap_is_told():
    text = f"> {call(1, 'a')}\n< {result(1, 'a')}"
    assert script(text).complete
    assert not script(text, ended=False).complete
    assert script(f"{text}\n~ 3").lost == "no space left on device"
    assert script(f"> {call(1, 'a')}").turns[0].unanswered


def test_peers_may_say_anything_where_tokens_are():
    for params in (None, [], {"_meta": 1}, {"_meta": {"progressToken": None}}):
        assert progress_token(params) is None
    odd = json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": [1]})
    assert [message.n for message in script(f"> {call(1, 'a')}\n< {odd}").unasked] == [2]


def process(ch, t, *spoken):
    """Return the records of a server process from time `t` on: lines of the client (`> `) and of the server."""
    opened = [Open(t, ch, t, "client", "stdin", "lines"), Open(t + 1, ch + 1, t, "server", "stdout", "lines")]
    lines = [
        Frame(t + n, ch if line.startswith("> ") else ch + 1, t + n, line[2:].encode())
        for n, line in enumerate(spoken, 2)
    ]
    return [*opened, *lines]


def test_each_process_of_a_capture_is_a_script_of_its_own():
    note = '{"jsonrpc":"2.0","method":"notifications/message"}'
    first = process(1, 0, f"> {call(1, 'a')}", f"> {call(2, 'left open')}", f"< {result(1, 'A')}")
    found = read(None, [*first, *process(3, 10, f"< {note}", f"> {call(1, 'b')}", f"< {result(1, 'B')}")])
    assert [[turn.name for turn in part.turns] for part in found.processes] == [["a", "left open"], ["b"]]
    assert [len(part.messages) for part in found.processes] == [3, 3]
    assert [line.message.n for part in found.processes for line in part.opening] == [12]
    assert [len(turn.said) for turn in found.turns] == [1, 0, 1]


def test_a_script_of_nothing_is_one_process():
    empty = read(None, [])
    assert empty.processes == [empty]


LISTING = ("resources/list", {})
CALL = ("tools/call", {"name": "ask"})


def test_a_cursor_goes_back_as_the_one_that_was_issued():
    values = Values()
    values.learn(*LISTING, {"result": {"nextCursor": "old"}}, {"result": {"nextCursor": "new"}})
    assert values.changes(*LISTING, {"params": {"cursor": "old"}}) == {("params", "cursor"): "new"}
    assert values.changes(*LISTING, {"params": {"cursor": "another"}}) == {}


def test_a_cursor_belongs_to_its_listing_and_a_state_to_its_call():
    values = Values()
    for params, now in (({"name": "ask"}, "a"), ({"name": "tell"}, "b")):
        values.learn("tools/call", params, {"result": {"requestState": "[]"}}, {"result": {"requestState": now}})
    values.learn("tools/list", {}, {"result": {"nextCursor": "2"}}, {"result": {"nextCursor": "tools"}})
    values.learn("prompts/list", {}, {"result": {"nextCursor": "2"}}, {"result": {"nextCursor": "prompts"}})
    assert values.changes(*CALL, {"params": {"requestState": "[]"}}) == {("params", "requestState"): "a"}
    assert values.changes("tools/list", {}, {"params": {"cursor": "2"}}) == {("params", "cursor"): "tools"}


def test_a_task_is_known_wherever_it_is_named():
    values = Values()
    values.learn(*CALL, {"result": {"task": {"taskId": "1"}}}, {"result": {"task": {"taskId": "f3"}}})
    values.learn("tasks/list", None, {"result": {"tasks": [{"taskId": "2"}]}}, {"result": {"tasks": [{"taskId": "9"}]}})
    assert values.changes("tasks/get", {}, {"params": {"taskId": "1"}}) == {("params", "taskId"): "f3"}
    assert values.changes("tasks/cancel", {}, {"params": {"taskId": "2"}}) == {("params", "taskId"): "9"}


def test_a_progress_token_of_the_server_goes_back():
    values = Values()
    old, new = ({"params": {"_meta": {"progressToken": token}}} for token in (1, "x"))
    values.learn("sampling/createMessage", None, old, new)
    changes = values.changes("notifications/progress", {}, {"params": {"progressToken": 1}})
    assert changes == {("params", "progressToken"): "x"}


def test_inputs_go_back_under_the_names_that_they_have_now():
    values = Values()
    old = {"result": {"inputRequests": {"first": {}, "second": {}}}}
    values.learn(*CALL, old, {"result": {"inputRequests": {"a1": {}, "b2": {}}}})
    changes = values.changes(*CALL, {"params": {"inputResponses": {"second": 2, "first": 1}}})
    assert changes == {("params", "inputResponses"): {"b2": 2, "a1": 1}}


def test_values_that_are_the_same_change_nothing():
    values = Values()
    same = {"result": {"nextCursor": "2", "inputRequests": {"one": {}}}}
    values.learn(*LISTING, same, same)
    assert values.changes(*LISTING, {"params": {"cursor": "2", "inputResponses": {"one": 1}}}) == {}


@each("message", [None, [], "text", {"result": None}, {"result": {"tasks": {"taskId": 1}}}])
def test_peers_may_say_anything(message):
    values = Values()
    values.learn(*CALL, message, message)
    assert values.changes(*CALL, message) == {}


def test_names_go_by_order_only_where_they_differ_and_are_as_many():
    assert renamed({"a": 1, "b": 2}, {"b": 1, "a": 2}) == {"a": "a", "b": "b"}
    assert renamed({"a": 1}, {"x": 1, "y": 2}) == {"a": "a"}
    assert renamed({"a": 1, "b": 2}, {"x": 1, "y": 2}) == {"a": "x", "b": "y"}


def test_a_star_is_any_one_step():
    assert matches(("result", "tasks", 3, "taskId"), ("result", "tasks", "*", "taskId"))
    assert not matches(("result", "tasks", 3), ("result", "tasks", "*", "taskId"))
    assert not matches(("result", "tasks", 3, "taskId", "x"), ("result", "tasks", "*", "taskId"))
    assert begins(("result", "content", 0, "text"), ("result", "content", "0"))
    assert not begins(("result",), ("result", "content"))
    assert begins(("result",), ())


def test_equal_values_have_one_text():
    assert canonical({"a": 1, "b": [2]}) == canonical({"b": [2], "a": 1})
    assert canonical({"a": 1}) != canonical({"a": "1"})
    assert canonical("\ud800") != canonical("\ud801")
    assert canonical({"a": 2**70, "b": 1}) == canonical({"b": 1, "a": 2**70}) != canonical({"a": 2**70 + 1, "b": 1})
