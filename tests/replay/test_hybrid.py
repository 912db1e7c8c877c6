"""Some tools are answered from a recording, the others live: gates with `answer-from`, with clients of the SDKs."""

import json

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Frame
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import serving
from tests.replay.scripts import call
from tests.replay.test_peers import MCPSPY, report
from tests.replay.webs import listening
from tests.transcript import capture

SUM = '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"recorded"}],"structuredContent":{"sum":99}}}'
ECHO = '{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"recorded echo"}]}}'
RECORDED = f"""
    > {call(1, "add", '{"a":2,"b":3}')}
    < {SUM}
    > {call(2, "echo", '{"text":"something else"}')}
    < {ECHO}
"""
GATES = """
[[gate]]
name = "recorded"
when = "method:tools/call name:add,echo from:client"
answer-from = "recorded.jsonl"
miss = "{miss}"
"""


@pytest.fixture(params=["forward", pytest.param("nearest", marks=pytest.mark.field)])
def hybrid(request, tmp_path):
    """The path of a gate file beside its recording, and the steps of the scenario that the recording answers."""
    capture(tmp_path / "recorded.jsonl", RECORDED)
    path = tmp_path / "gates.toml"
    path.write_text(GATES.format(miss=request.param))
    answers = {"add": SUM} if request.param == "forward" else {"add": SUM, "echo": ECHO}
    return path, {name: json.loads(answer)["result"]["content"] for name, answer in answers.items()}


def steps(client, *server):
    """Run a client's program; return its report on each step of its session."""
    return {step["name"]: step for step in report(*prepare.client(client, "--scenario", "basic"), *server)["steps"]}


def judge(found, bare, answers, path):
    """Check that the expected steps were answered from the recording and all others by the server."""
    assert found.keys() == bare.keys()
    for name, step in found.items():
        assert step == bare[name] if name not in answers else step["result"]["content"] == answers[name]
    frames = [record for record in Capture(str(path)).records() if isinstance(record, Frame)]
    made = [json.loads(frame.raw) for frame in frames if frame.by == "gate recorded" and not frame.dropped]
    assert [message["result"]["content"] for message in made] == list(answers.values())


@pytest.mark.parametrize(
    ("client", "server"), [("python1", "node"), pytest.param("node", "python1", marks=pytest.mark.field)]
)
def test_some_tools_are_recorded_and_the_others_live_through_wrap(tmp_path, hybrid, client, server):
    require_peers(client, server)
    gates, answers = hybrid
    bare = steps(client, "--", *prepare.server(server))
    path = tmp_path / "a.jsonl"
    wrap = [*MCPSPY, "wrap", "--gate", str(gates), "-o", str(path), "--"]
    judge(steps(client, "--", *wrap, *prepare.server(server)), bare, answers, path)


@pytest.mark.field
@pytest.mark.parametrize(
    ("client", "server"), [("python1", "python2"), pytest.param("node", "python1", marks=pytest.mark.field)]
)
def test_some_tools_are_recorded_and_the_others_live_through_proxy(tmp_path, hybrid, client, server):
    require_peers(client, server)
    gates, answers = hybrid
    path = tmp_path / "a.jsonl"
    with serving(server, "http") as url:
        bare = steps(client, "--http", url)
    with serving(server, "http") as url, listening("proxy", url, "--gate", gates, "-o", path) as proxy:
        found = steps(client, "--http", proxy.url)
        proxy.end()
        judge(found, bare, answers, path)
