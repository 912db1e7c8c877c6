import pytest

from mcpspy.recording.copy import write_with_sessions
from mcpspy.replay.learn import learned
from mcpspy.replay.run import replay, writing
from mcpspy.replay.script import script_of
from mcpspy.replay.tolerance import Rules
from mcpspy.transport.link import Link
from tests.relay.harness import python
from tests.replay.scripts import SERVER, call, result, script
from tests.transcript import capture

TOOLS = (
    '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}},'
    '{"name":"write","annotations":{"readOnlyHint":false}},{"name":"unknown"}]}}'
)
LISTED = f'> {{"jsonrpc":"2.0","id":1,"method":"tools/list"}}\n< {TOOLS}'
TASK = '{"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"7"}}}'
CLOCK = """
import itertools, json, sys
for line, n in zip(sys.stdin, itertools.count(int(sys.argv[1]) if len(sys.argv) > 1 else 0)):
    request = json.loads(line)
    now = str(__import__("time").time_ns())
    content = [{"type": "text", "text": now}, {"type": "text", "text": "fixed"}]
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": {"content": content}}), flush=True)
"""


def clock(path):
    return Link(list(python(CLOCK)), "clock", path, pytest.fail, 0)


def test_only_tools_that_say_so_only_read():
    calls = "\n".join(f"> {call(n, name)}" for n, name in enumerate(("read", "write", "unknown", "unlisted"), 2))
    found = writing(script(f"{LISTED}\n{calls}"))
    assert {turn.name for turn in found} == {"write", "unknown", "unlisted"}


def test_a_task_of_a_call_that_is_left_out_is_not_asked_for():
    asks = [f'{{"jsonrpc":"2.0","id":{n},"method":"tasks/get","params":{{"taskId":"{n}"}}}}' for n in (7, 8)]
    found = writing(script(f"{LISTED}\n> {call(2, 'write')}\n< {TASK}\n> {asks[0]}\n> {asks[1]}"))
    assert sorted(turn.cause.n for turn in found) == [3, 5]


def test_a_replay_is_compared_and_says_what_it_left_out(tmp_path):
    forecast = call(2, "get_forecast", '{"city":"Oslo"}')
    listing = LISTED.replace('"read"', '"get_forecast"')
    recorded = script(
        f"{listing}\n> {forecast}\n< {result(2, '13 °C')}\n> {call(3, 'report')}\n< {result(3, 'thanks')}"
    )
    path = str(tmp_path / "new.jsonl")
    found = replay(recorded, lambda it: Link(list(SERVER), "weather", it, pytest.fail, 0), path, read_only=True)
    told = [(it.request, it.outcome, it.reason) for it in found.compared(Rules())]
    assert told[1:] == [(3, "changed", None), (5, "skipped", "the tool has no readOnlyHint")]


def test_what_differs_from_run_to_run_is_learned(tmp_path):
    recorded = script(f"> {call(1, 'now')}\n< {result(1, 'then')}\n> {call(2, 'now')}\n< {result(2, 'then')}")
    runs = [replay(recorded, clock, str(tmp_path / f"{n}.jsonl"), read_only=False) for n in range(2)]
    patterns = learned(runs, Rules())
    assert [str(it) for it in patterns] == ["tools/call now /result/content/0/text=any"]
    left = runs[-1].compared(Rules(tuple(patterns)))
    assert {one.pointer for it in left for one in it.differences} == {"/result/content/1"}, "that is a change"
    assert learned(runs, Rules(tuple(patterns))) == []


def test_each_process_of_a_capture_is_replayed_with_one_of_its_own(tmp_path):
    texts = [f"> {call(n, 'now')}\n< {result(n, 'then')}" for n in (1, 2)]
    paths = [capture(tmp_path / f"{n}.jsonl", text) for n, text in enumerate(texts)]
    whole = str(tmp_path / "whole.jsonl")
    write_with_sessions(paths[0], paths[1:], whole)
    new = str(tmp_path / "new.jsonl")
    found = replay(script_of(whole), clock, new, read_only=False)
    assert found.path == new
    assert [it.outcome for it in found.compared(Rules(shape=True))] == ["same", "same"]
    assert [len(part.turns) for part in script_of(new).processes] == [1, 1]
