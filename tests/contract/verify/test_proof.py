"""Whole proofs: of mcpspy, and of wrappers with a planted fault."""

import pytest

from mcpspy.contract.verify import launch, stdio
from mcpspy.contract.verify import proof as proofs
from mcpspy.contract.verify.proof import found_out, proof
from mcpspy.contract.verify.session import NoSession
from mcpspy.contract.verify.stdio import ENDINGS
from mcpspy.errors import UsageError


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(proofs, "STARTS", 1)
    monkeypatch.setattr(proofs, "PINGS", 3)


@pytest.fixture
def no_signals(monkeypatch):
    """Leave out the runs that end the server by a signal."""
    monkeypatch.setattr(proofs, "ENDINGS", {})


def differing(found):
    return {check.name: " ".join(check.differences) for check in found.checks if not check.equal}


def test_wrap_is_transparent(bench):
    own = bench("stateless", fault=None)
    found = proof(own, found_out(own.connect, 20, {}))
    assert differing(found) == {}
    assert found.transparent
    assert found.figures.starts.through
    assert len(found.figures.latencies.bare) == 3


@pytest.mark.usefixtures("no_signals")
def test_what_the_server_itself_changes_is_named(bench):
    own = bench("random", fault=None)
    found = proof(own, found_out(own.connect, 20, {}))
    assert differing(found) == {}
    assert [it.detail for it in found.checks if it.name == "answers"] == [
        "5 answers; new in each run: tools/call look /result/content/0/text"
    ]


def test_an_honest_wrapper_is_transparent(bench, plan):
    assert differing(proof(bench(), plan)) == {}


FAULTS = [
    ("drop-in", {"client to server"}, """: the client wrote 'y","""),
    ("drop-out", {"server to client", "answers"}, '/result/serverInfo/name is "small" bare, "smal" through'),
    ("variable", {"environment"}, "PLANTED is set through it, and not bare"),
    ("swallow", {"SIGTERM"}, "the server got SIGTERM bare, no signal through"),
    ("respell", {"server to client", "answers", "odd lines"}, """, and '"2.0","method":"x/numbe"""),
    ("cut", {"odd lines"}, r", and '\n{"),
    ("status", {"SIGTERM", "SIGINT"}, "sees that it exited with status 7 bare, exited with status 0 through"),
]
MORE = [
    ("late", {"delay"}, "half of the requests take "),
    ("banner", {"server to client", "answers", "odd lines"}, "'wrapper 1.0 ready"),
    ("chatter", {"stderr"}, "the client got 18 bytes more than the server wrote: 'wrapper 1.0 ready\\n'"),
    ("directory", {"start"}, "directory: "),
    ("descriptor", {"start"}, "descriptors: "),
    ("group", {"start"}, "group: the client's bare, another one through"),
]


@pytest.mark.parametrize(
    ("fault", "names", "sentence"), [*FAULTS, *(pytest.param(*fault, marks=pytest.mark.field) for fault in MORE)]
)
def test_a_planted_fault_is_told(bench, plan, monkeypatch, fault, names, sentence):
    monkeypatch.setattr(stdio, "GRACE", 1.0)
    if not names & ENDINGS.keys():
        monkeypatch.setattr(proofs, "ENDINGS", {})
    found = proof(bench(fault=fault), plan)
    told = differing(found)
    assert set(told) == names
    assert sentence in " ".join(told.values())
    assert "s3cr3t" not in str(found.checks)
    assert not found.transparent


@pytest.mark.parametrize(
    ("habit", "sentence"),
    [
        ("exits", "the server ended before it answered initialize; it exited with status 4; stderr: no such table"),
        ("hangs", "no answer to initialize within 0.2 s"),
        ("garbage", r"no answer to initialize within 0.2 s; it wrote 'this is no message\n"),
        ("floods", "the server ended before it answered initialize; it did not stop writing"),
    ],
)
def test_a_server_without_a_session_is_an_error(bench, monkeypatch, habit, sentence):
    monkeypatch.setattr(launch, "ROOM", 10_000)
    with pytest.raises(NoSession) as error:
        found_out(bench(habit).connect, 20 if habit in ("exits", "floods") else 0.2, {})
    assert str(error.value).startswith(sentence)


def test_a_tool_that_is_not_there_is_an_error_with_the_nearest(bench):
    with pytest.raises(UsageError, match="there is no tool 'wirte'; did you mean 'write'"):
        found_out(bench().connect, 20, {"wirte": {}})


def test_a_server_that_ignores_everything_is_the_same_through_wrap(bench, plan, monkeypatch):
    monkeypatch.setattr(stdio, "GRACE", 0.3)
    found = proof(bench("stubborn", fault=None), plan)
    assert differing(found) == {}
    assert [it.detail for it in found.checks if it.name == "SIGTERM"] == [
        "the server got SIGTERM and was still running after 0.3 s"
    ]


@pytest.mark.usefixtures("no_signals")
def test_what_the_server_does_not_answer_is_left_out_and_named(bench, plan):
    own = bench("mute", fault=None, seconds=2)
    found = proof(own, plan)
    assert found.plan.left_out == ("no answer to tools/call look within 2 s",)
    assert differing(found) == {}


@pytest.mark.usefixtures("no_signals")
def test_a_session_that_breaks_off_says_so(bench):
    own = bench("dies", fault=None)
    found = proof(own, found_out(own.connect, 20, {}))
    assert differing(found) == {}
    assert found.broke_off == "the server ended before it answered tools/call look"


def test_a_server_that_behaves_otherwise_each_time_proves_nothing(bench, plan, tmp_path):
    own = bench(f"once={tmp_path / 'times'}", fault=None, seconds=2)
    with pytest.raises(NoSession, match="one bare run differs from the next: no answer to server/discover within"):
        proof(own, plan)
