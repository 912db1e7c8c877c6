"""Viewers control a running session of `mcpspy wrap`, with real processes."""

import hashlib
import json
import os
import signal
import sys
import threading
import time
from random import Random

import pytest

from mcpspy.capture.live import LiveViewer
from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, End, Frame, Gates, Release
from tests import limits
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import running
from tests.relay.harness import LIMIT as SECONDS
from tests.relay.harness import python, until
from tests.relay.stdio.pair import SECOND, compiled, line
from tests.test_layers import LIBRARIES

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}'
OTHER = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
CALLS = {"method": "tools/call", "kind": "request", "from": "client"}
HOLD = compiled({"hold": 60 * SECOND}, **CALLS)
SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {"jsonrpc": "2.0", "id": request["id"], "result": request["method"]}
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message"}), json.dumps(result), sep="\\n", flush=True)
"""


class Session:
    """A running session that looks for viewers before each frame, and a viewer of it."""

    def __init__(self, process):
        self.process, self.path = process, process.path
        until(process.recording)
        self.viewer = LiveViewer(str(self.path), process.capture.header.id)

    def ask(self, *frames):
        self.process.stdin.write(b"".join(frame + b"\n" for frame in frames))

    def line(self):
        return line(self.process.stdout.fileno())

    def passes(self, *frames):
        """Send frames, and check that the server, which returns what it receives, has received them."""
        self.ask(*frames)
        assert [self.line() for _ in frames] == list(frames)

    def records(self, kind):
        return [it for it in Capture(str(self.path)).records(1 << 62) if isinstance(it, kind)]

    def held(self, count=1):
        """Wait for `count` held frames, and return the numbers of all."""
        until(lambda: sum(frame.held is not None for frame in self.records(Frame)) >= count, "a held frame")
        return [frame.held for frame in self.records(Frame) if frame.held]

    def set(self, *gates):
        """Set other gates, and wait until they are in force."""
        before = len(self.records(Gates))
        self.viewer.set_gates(list(gates))
        until(lambda: len(self.records(Gates)) > before, "the gates")

    def obeyed(self):
        """Wait until all orders have been executed."""
        until(lambda: not any(name.endswith(".order.json") for name in os.listdir(self.viewer.path)))

    def finish(self):
        out, err, code = self.process.finish()
        self.viewer.close()
        return out, err, code


@pytest.fixture
def session(wrap):
    """Start a session with compiled gates; the server is `cat` by default."""
    return lambda *command, gates=(): Session(wrap(*(command or ("cat",)), gates=gates))


DECISIONS = [  # the message of the viewer, and what the server and the client receive
    ("continued", None, CALL, None),
    ("edited", '{"id":1,\n"method":"other"}', b'{"id":1, "method":"other"}', None),
    ("dropped", None, None, None),
    ("answered", '{"id":1,\n"result":{}}', None, b'{"id":1, "result":{}}'),
]


def test_a_running_session_is_held_and_released_at_once(session):
    """The frame behind the held one follows it. An order takes at most 10 ms, plus the delays of the machine."""
    live = session()
    live.passes(CALL)
    live.set(HOLD)
    taken = []
    for number, (how, message, forwarded, back) in enumerate(DECISIONS * 2):
        live.ask(CALL, OTHER)
        live.held(2 * number + 2)
        live.viewer.release(2 * number + 1, how, message)
        began = time.monotonic()
        expected = [frame for frame in (forwarded, back) if frame] + [OTHER]
        assert sorted(live.line() for _ in expected) == sorted(expected)
        taken.append(time.monotonic() - began)
    assert sorted(taken)[len(taken) // 2] < 0.05
    live.set()
    live.passes(CALL)
    assert live.finish() == (b"", b"", 0)
    edited = DECISIONS[1][2]
    expected = [(how, edited if how == "edited" else None) for how, *_ in DECISIONS * 2]
    assert [(it.how, it.sent) for it in live.records(Release)[::2]] == expected
    assert [(list(it.gates), it.by) for it in live.records(Gates)] == [([HOLD], "viewer"), ([], "viewer")]
    assert live.process.capture.header.control


def test_gates_are_in_force_from_the_next_frame_on_until_they_are_removed(session):
    """Although nothing has passed meanwhile; the capture also has gates with fractions."""
    live = session()
    live.passes(OTHER)
    gates = [compiled({"answer": json.dumps({"result": name})}, name, **CALLS) for name in ("a", "b", "c")]
    for gate in gates:
        live.set(gate)
        live.ask(CALL)
        assert json.loads(live.line()) == {"jsonrpc": "2.0", "id": 1, "result": gate["name"]}
    gates.append(compiled({"drop": True}, **CALLS))
    live.set(gates[-1])
    live.ask(CALL)
    live.passes(OTHER)
    gates.append(compiled({"edit": [{"op": "add", "path": "/a", "value": 0.5}]}, method="x") | {"chance": 0.25})
    live.set(gates[-1])
    live.passes(CALL, OTHER)
    live.set()
    live.passes(CALL, OTHER)
    assert live.finish() == (b"", b"", 0)
    assert [list(record.gates) for record in live.records(Gates)] == [*([gate] for gate in gates), []]


def test_a_viewer_that_is_killed_holds_ten_frames_no_longer_than_their_limit(session):
    live = session()
    hold = compiled({"hold": SECOND}, **CALLS)
    program = (
        "import sys, time\nfrom mcpspy.capture.live import LiveViewer\n"
        f"viewer = LiveViewer({str(live.path)!r}, {live.process.capture.header.id!r})\n"
        f"viewer.set_gates([{hold!r}])\nprint(flush=True)\ntime.sleep(60)"
    )
    with limits.Popen([sys.executable, "-c", program], stdout=-1) as viewer:
        viewer.stdout.readline()
        live.ask(*[CALL] * 10)
        live.held(10)
        viewer.send_signal(signal.SIGKILL)
        assert [live.line() for _ in range(10)] == [CALL] * 10
    live.passes(CALL)
    assert live.finish() == (b"", b"", 0)
    assert [release.how for release in live.records(Release)] == ["expired"] * 10
    assert live.records(Gates)[-1].gates == ()


def test_an_edit_that_a_frame_has_no_place_for_leaves_it_held(session):
    live = session()
    live.set(HOLD)
    live.ask(CALL)
    (held,) = live.held()
    live.viewer.release(held, "edited")
    live.viewer.release(held, "eaten")
    live.viewer.release(held + 1, "dropped")
    live.viewer.release(held, "continued")
    assert live.line() == CALL
    out, err, code = live.finish()
    assert (out, code) == (b"", 0)
    sentence = f"mcpspy: a viewer's order about held frame {held} cannot be understood: "
    apart, together = {"edited", "eaten"}, {"edited (and 1 more such faults)"}  # as the relay looks between them or not
    assert {line.removeprefix(sentence) for line in err.decode().splitlines()} in (apart, together)


# A viewer's own requests


def test_a_viewers_own_request_is_answered_and_the_client_sees_nothing_of_it(session):
    live = session(*python(SERVER))
    live.ask(OTHER)
    live.line()
    assert json.loads(live.line())["id"] == 2
    request = b'{"jsonrpc":"2.0","id":"mcpspy-1",\n"method":"tools/call"}'
    live.viewer.send(request.decode())
    until(lambda: b'"sent":null,"by":"viewer"' in live.path.read_bytes())
    live.ask(OTHER)
    lines = [live.line() for _ in range(3)]
    assert [json.loads(found).get("id") for found in lines] == [None, None, 2], "the notification is the client's"
    assert live.finish() == (b"", b"", 0)
    frames = live.records(Frame)
    (sent,) = [frame for frame in frames if frame.sender == "mcpspy"]
    assert (sent.ch, sent.by, sent.raw) == (1, "viewer", request.replace(b"\n", b" "))
    (answer,) = [frame for frame in frames if frame.dropped]
    assert (answer.ch, answer.by, json.loads(answer.raw)["result"]) == (2, "viewer", "tools/call")


def test_a_viewers_request_needs_an_id_of_ours_and_does_not_land_inside_a_line(session):
    live = session()
    half = b'{"half":'
    live.process.stdin.write(half)
    assert live.process.stdout.read(len(half)) == half
    refused = ['{"id":1,"method":"a"}', '{"id":"a","method":"a"}', '{"method":"a"}', "[]", "{"]
    for frame in (*refused, '{"id":"mcpspy-a","method":"x"}'):
        live.viewer.send(frame)
        live.obeyed()
    live.process.stdin.write(b"1}\n")
    assert live.line() == b"1}"
    assert live.line() == b'{"id":"mcpspy-a","method":"x"}'
    said = "mcpspy: a viewer's request was not sent: it must be one JSON-RPC request, its id a string mcpspy-…\n"
    assert live.finish() == (b"", said.encode(), 0)
    assert next(frame.raw for frame in live.records(Frame) if frame.ch == 1) == half + b"1}"


# The ends (`test_held_at_the_end` has many held frames)


def test_exit_kills_the_server_and_gives_its_status(session):
    live = session()
    live.set(compiled({"exit": 7}, **CALLS))
    live.passes(OTHER)
    live.ask(CALL)
    assert live.process.wait(SECONDS) == 7
    (call,) = [frame for frame in live.records(Frame) if frame.raw == CALL]
    assert (call.dropped, call.by) == (True, "gate g")
    assert [record.signal for record in live.records(End)] == [9]
    assert {close.ch: close.how for close in live.records(Close)} == {1: "exit", 2: "eof", 3: "eof"}


def test_exit_from_a_file_counts_also_for_what_the_server_wrote_last(wrap):
    wrapped = wrap("echo", "x", gates=[compiled({"exit": 3}, **{"from": "server"})])
    assert wrapped.finish() == (b"", b"", 3)
    assert [record.by for record in wrapped.capture.records() if isinstance(record, Gates)] == ["file"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("gates", [(), [HOLD]], ids=["live", "file"])
def test_a_signal_lets_all_go_that_is_held(session, number, gates):
    """C-01: the server receives every held request before the signal."""
    ignore = "import signal\nfor number in (2, 15): signal.signal(number, lambda *_: None)\n"
    live = session(*python(ignore + "for _ in range(2): print(input(), flush=True)"), gates=gates)
    live.passes(OTHER)
    if not gates:
        live.set(HOLD)
    live.ask(CALL)
    live.held()
    os.kill(live.process.pid, number)
    assert live.line() == CALL
    assert live.process.wait(SECONDS) == 0
    assert [(release.how, release.dropped) for release in live.records(Release)] == [("closed", False)]


def test_the_end_of_stdin_lets_all_go_and_the_live_directory_is_removed(session):
    live = session()
    live.set(HOLD)
    live.ask(CALL, OTHER)
    live.held(2)
    assert os.path.isdir(live.viewer.path)
    assert live.finish() == (CALL + b"\n" + OTHER + b"\n", b"", 0)
    assert [release.how for release in live.records(Release)] == ["closed", "closed"]
    assert not os.path.exists(live.viewer.path)
    never = session()
    never.set(HOLD)
    never.finish()
    assert not os.path.exists(never.viewer.path), "nothing has passed: it is removed all the same"


def test_a_server_that_exits_ends_the_session_within_its_time_although_frames_are_held(session):
    live = session(*python("input()\nprint('done', flush=True)\ninput()"))
    live.set(HOLD, compiled({"hold": 60 * SECOND}, "s", **{"from": "server"}))
    live.ask(CALL)
    live.held()
    live.viewer.release(1, "continued")
    live.held(2)
    live.ask(CALL)
    live.held(3)
    child = live.process.child()
    os.kill(child, signal.SIGKILL)
    began = time.monotonic()
    assert live.process.wait(SECONDS) == -signal.SIGKILL
    assert time.monotonic() - began < 2
    assert live.finish()[0] == b"done\n"
    assert {release.held: release.dropped for release in live.records(Release)} == {1: False, 2: False, 3: True}


def test_a_server_that_exits_leaves_no_response_held(wrap):
    """S-04: it is forwarded within the 0.3 s that clients wait, also if a process keeps the server's stdout open."""
    command = "echo one; sleep 0.2; sleep 30 & echo two"  # so that one is already held when the server exits
    wrapped = wrap("sh", "-c", command, gates=[compiled({"hold": 60 * SECOND}, **{"from": "server"})])
    assert [wrapped.readline(), wrapped.readline()] == [b"one", b"two"]
    assert wrapped.wait(SECONDS) == 0
    releases = [it.how for it in wrapped.capture.records() if isinstance(it, Release)]
    assert releases[0] == "closed"


def test_a_link_in_place_of_the_live_directory_is_refused_and_said_once(session, tmp_path):
    live = session()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    os.symlink(tmp_path / "elsewhere", live.viewer.path)
    for _ in range(3):
        live.passes(CALL)
    said = f"mcpspy: {live.viewer.path} is not a directory; no gate is taken from there\n".encode()
    assert live.finish() == (b"", said, 0)
    assert os.path.islink(live.viewer.path)


# What does not change


def test_a_live_gate_with_a_bug_lets_traffic_pass_and_says_so_once(session):
    live = session()
    live.set(compiled({"drop": True}, "raises"))
    for _ in range(3):
        live.passes(CALL)
    said = b"mcpspy: gate raises failed (RuntimeError: a bug); such frames pass unchanged\n"
    assert live.finish() == (b"", said, 0)


def test_a_gate_that_no_relay_knows_is_said_once_and_others_are_in_force(session):
    live = session()
    live.set(compiled({"eat": True}, "odd"), compiled({"drop": True}, **CALLS), compiled({"status": 503}, "s"))
    live.ask(CALL, OTHER, OTHER)
    assert [live.line(), live.line()] == [OTHER, OTHER]
    _, err, code = live.finish()
    assert code == 0
    assert b"gate odd" in err
    assert err.count(b"\n") == 2


RUN = """
import os, sys
from mcpspy.process.child import environment, spawn
from mcpspy.relay.stdio import relay
options = {"name": None, "output": sys.argv[2], "folder": None, "check": False}
code = relay.run(spawn(["cat"], environment()), ["cat"], {}, control=sys.argv[1] == "control", **options)
os.write(2, " ".join(sys.modules).encode())
os._exit(code)
"""
HEAVY = {"tomllib", "typing", "threading", "base64", "asyncio", "argparse"}
OURS = "capture errors foreign_file gate json_values process recording relay secrets text wire".split()


@pytest.mark.parametrize("control", [False, True])
def test_only_a_relay_under_control_looks_for_viewers_and_imports_gates(tmp_path, control):
    """S-13: neither the filter language, nor TOML, nor more for JSON than orjson needs."""
    path = tmp_path / "a"
    environ = os.environ | {"PYTHONPATH": f"{os.path.dirname(os.path.dirname(prepare.HERE))}{os.pathsep}{LIBRARIES}"}
    command = [sys.executable, *["-S"] * control, "-c", RUN, "control" if control else "none", str(path)]
    with limits.Popen(command, stdin=-1, stdout=-1, stderr=-1, bufsize=0, env=environ) as process:
        until(lambda: path.exists() and path.stat().st_size)
        header = Capture(str(path)).header
        assert header.control is control
        viewer = LiveViewer(str(path), header.id)
        viewer.set_gates([HOLD])
        time.sleep(0.1)  # the documented delay
        process.stdin.write(CALL + b"\n")
        if control:
            until(lambda: b'"held":1' in path.read_bytes())
            viewer.release(1, "edited", OTHER.decode())
        assert line(process.stdout.fileno()) == (OTHER if control else CALL)
        out, err = process.communicate()
        assert (out, process.returncode) == (b"", 0)
    assert os.path.isdir(viewer.path) is not control
    viewer.close()
    modules = set(err.decode().split())
    assert ("mcpspy.relay.stdio.gated" in modules) is control
    assert any("gate" in name for name in modules) is control
    if control:
        assert not modules & HEAVY
        assert {name.split(".")[1] for name in modules if name.startswith("mcpspy.")} <= set(OURS)


@pytest.mark.parametrize("seed", range(2))
def test_what_no_gate_names_keeps_its_bytes_while_gates_come_and_go_under_load(session, seed):
    live = session()
    chance = Random(seed)  # noqa: S311 (the same stream in every run)
    lines = [b'{"method":"m%d","x":"%s"}' % (number, b"x" * chance.randrange(3000)) for number in range(3000)]
    lines[1500] = b"long" * 400_000
    sent = b"\n".join(lines) + b"\n"
    sums, back = hashlib.sha256(), hashlib.sha256()

    def write():
        at = 0
        while at < len(sent):
            size = chance.choice((1, 7, 100, 3000, 65536, 200_000))
            live.process.stdin.write(sent[at : at + size])
            at += size
        sums.update(sent)

    def read():
        left = len(sent)
        while left:
            chunk = limits.read(live.process.stdout.fileno(), 65536)
            back.update(chunk)
            left -= len(chunk)

    threads = [threading.Thread(target=call, daemon=True) for call in (write, read)]
    for thread in threads:
        thread.start()
    while threads[1].is_alive():
        live.viewer.set_gates(chance.choice(([], [HOLD], [compiled({"drop": True}, method="never"), HOLD])))
        threads[1].join(0.05)
    threads[0].join(SECONDS)
    assert live.finish() == (b"", b"", 0)
    assert sums.hexdigest() == back.hexdigest()
    for ch in (1, 2):
        assert live.process.stream(ch) == sent


def test_an_sdk_client_gets_the_result_of_the_call_that_a_viewer_has_edited(tmp_path):
    require_peers("python1")
    capture, go = tmp_path / "capture.jsonl", tmp_path / "go"
    waits = ["sh", "-c", f'until test -e {go}; do sleep 0.02; done; exec "$@"', "sh", *prepare.server("python1")]
    command = [sys.executable, "-m", "mcpspy", "wrap", "-o", str(capture), "--", *waits]
    with running([*prepare.client("python1", "--scenario", "basic"), "--", *command]) as process:
        until(lambda: capture.exists() and b"initialize" in capture.read_bytes())
        viewer = LiveViewer(str(capture), Capture(str(capture)).header.id)
        viewer.set_gates([compiled({"hold": 60 * SECOND}, **CALLS) | {"when": CALLS | {"name": "add"}}])
        go.touch()
        until(lambda: b'"held":1' in capture.read_bytes())
        held = next(it for it in Capture(str(capture)).records() if isinstance(it, Frame) and it.held)
        viewer.release(1, "edited", held.raw.replace(b'"a":2', b'"a":20').decode())
        document = json.loads(limits.within(process.stdout.read))
    viewer.close()
    (add,) = [step for step in document["steps"] if step["name"] == "add"]
    assert "23" in json.dumps(add)
    (release,) = [it for it in Capture(str(capture)).records() if isinstance(it, Release)]
    assert (release.how, release.by) == ("edited", "gate g")


HUGE = 10**400
DROP = {"drop": True}
LARGE_WHENS = ({"size": [0, HUGE]}, {"text": ["x"] * 100_000}, {"text": "x" * 100_000})
NO_NUMBERS = (float("nan"), float("inf"), 1e18, -1, True, "2s")
OUT_OF_BOUNDS = [
    *(compiled({key: HUGE}) for key in ("hold", "delay", "throttle", "repeat", "cut", "exit")),
    *(compiled({"delay": value}) for value in NO_NUMBERS),
    *(compiled(DROP) | {key: HUGE} for key in ("after", "times", "seed", "chance")),
    *(compiled(DROP, **when) for when in LARGE_WHENS),
    compiled(DROP) | {"name": "g" * 100_000},
    compiled({"send": ["x"] * 100_000}),
    compiled({"edit": [{"op": "remove", "path": "/a"}] * 100_000}),
    compiled({"edit": [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(100)]}),
]


def test_gates_out_of_bounds_do_not_stop_a_direction(session):
    """A-21: whatever a viewer sets, frames pass, with one message about it."""
    live = session()
    live.passes(CALL)
    for gates in (*([gate] for gate in OUT_OF_BOUNDS), OUT_OF_BOUNDS):
        live.set(*gates)
        live.passes(CALL)
    live.set()
    out, err, code = live.finish()
    assert (out, code) == (b"", 0)
    messages = err.decode().splitlines()
    assert len(messages) <= len(OUT_OF_BOUNDS) + 1
    assert all("not in force" in each or "such frames pass unchanged" in each for each in messages)
    in_force = [gate for record in live.records(Gates) for gate in record.gates]
    assert all(gate["action"] == OUT_OF_BOUNDS[-1]["action"] for gate in in_force)


def test_a_live_directory_full_of_orders_does_not_stop_a_direction(session):
    """A-21: some orders are read at a time, and frames pass between them."""
    live = session()
    live.set(HOLD)
    live.process.send_signal(signal.SIGSTOP)  # so that it does not look before all are written
    for number in range(2000):
        with open(os.path.join(live.viewer.path, f"{number:06}.order.json"), "w", encoding="utf-8") as order:
            order.write("no JSON")
    live.process.send_signal(signal.SIGCONT)
    began = time.monotonic()
    live.passes(OTHER)
    assert time.monotonic() - began < 5
    live.obeyed()
    out, err, code = live.finish()
    assert (out, code) == (b"", 0)
    assert err.count(b"\n") <= 2000 / 100 + 1
