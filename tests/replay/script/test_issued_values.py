import pytest

from mcpspy.replay.script.issued_values import Values, begins, canonical, matches, renamed

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


@pytest.mark.parametrize("message", [None, [], "text", {"result": None}, {"result": {"tasks": {"taskId": 1}}}])
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
