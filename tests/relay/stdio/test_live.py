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
from tests.relay import gated
from tests.relay.harness import LIMIT as SECONDS
from tests.relay.harness import python, until
from tests.relay.stdio.pair import SECOND, compiled, line
from tests.test_layers import LIBRARIES

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search"}}'
OTHER = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
CALLS = {"method": "tools/call", "kind": "request", "from": "client"}
HOLD = compiled({"hold": 60 * SECOND}, **CALLS)
ECHO = "cat"  # the server returns what it receives
SERVER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = {"jsonrpc": "2.0", "id": request["id"], "result": request["method"]}
    print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message"}), json.dumps(result), sep="\\n", flush=True)
"""


class Session:
    """A running session, and a viewer of it."""

    def __init__(self, process):
        self.process, self.path = process, process.path
        until(process.recording)
        self.header = Capture(str(self.path)).header
        self.viewer = LiveViewer(str(self.path), self.header.id)

    def ask(self, *frames):
        self.process.stdin.write(b"".join(frame + b"\n" for frame in frames))

    def line(self):
        return line(self.process.stdout.fileno())

    def records(self, kind):
        return [it for it in Capture(str(self.path)).records() if isinstance(it, kind)]

    def held(self, count=1):
        """Wait for `count` held frames, and return the numbers of all."""
        until(lambda: sum(frame.held is not None for frame in self.records(Frame)) >= count, "a held frame")
        return [frame.held for frame in self.records(Frame) if frame.held]

    def set(self, *gates):
        """Set these gates, and wait 100 ms, so that the next frame meets them."""
        self.viewer.set_gates(list(gates))
        time.sleep(0.1)  # the documented delay: no event shows that the gates are set

    def obeyed(self):
        """Wait until all orders have been executed."""
        until(lambda: not any(name.endswith(".order.json") for name in os.listdir(self.viewer.path)))

    def finish(self):
        out, err, code = self.process.finish()
        self.viewer.close()
        return out, err, code


@pytest.fixture
def session(wrap):
    return lambda *command, **options: Session(wrap(*(command or (ECHO,)), **options))


def told(frame):
    return frame.raw, frame.sent, frame.dropped, frame.by, frame.sender


@pytest.mark.parametrize(
    ("how", "message", "forwarded", "back"),
    [
        ("continued", None, CALL, None),
        ("edited", '{"id":1,\n"method":"other"}', b'{"id":1, "method":"other"}', None),
        ("dropped", None, None, None),
        ("answered", '{"id":1,\n"result":{}}', None, b'{"id":1, "result":{}}'),
    ],
)
def test_a_running_session_is_held_and_released(session, how, message, forwarded, back):
    """Frames may have been forwarded before; the frame behind the held one follows it."""
    live = session()
    live.ask(CALL)
    assert live.line() == CALL
    live.set(HOLD)
    live.ask(CALL, OTHER)
    held, _ = live.held(2)
    began = time.monotonic()
    live.viewer.release(held, how, message)
    expected = [frame for frame in (forwarded, back) if frame] + [OTHER]
    assert sorted(live.line() for _ in expected) == sorted(expected)
    assert time.monotonic() - began < 5
    live.viewer.set_gates([])
    assert live.finish() == (b"", b"", 0)
    release = live.records(Release)[0]
    assert (release.held, release.how) == (held, how)
    assert release.sent == (forwarded if how == "edited" else None)
    assert [it.by for it in live.records(Gates)] == ["viewer"] * len(live.records(Gates))
    assert live.records(Gates)[0].gates == (HOLD,)
    assert live.header.control


def test_gates_with_fractions_are_recorded(session):
    live = session()
    gate = compiled({"edit": [{"op": "add", "path": "/a", "value": 0.5}]}, **CALLS) | {"chance": 0.25}
    live.set(gate)
    live.ask(OTHER)
    assert live.line() == OTHER
    assert live.finish() == (b"", b"", 0)
    assert live.records(Gates)[0].gates == (gate,)
    assert live.records(End)


def test_orders_are_carried_out_at_once_while_something_is_held(session):
    """Within 10 ms, plus the delays of the machine."""
    live = session()
    live.set(HOLD)
    taken = []
    for number in range(1, 11):
        live.ask(CALL)
        live.held(number)
        live.viewer.release(number, "continued")
        began = time.monotonic()
        assert live.line() == CALL
        taken.append(time.monotonic() - began)
    assert sorted(taken)[5] < 0.05
    live.finish()


def test_removed_gates_are_in_force_no_longer(session):
    live = session()
    live.set(compiled({"drop": True}, **CALLS))
    live.ask(CALL, OTHER)
    assert live.line() == OTHER
    live.set()
    live.ask(CALL, OTHER)
    assert [live.line(), live.line()] == [CALL, OTHER]
    assert live.finish() == (b"", b"", 0)
    assert [len(record.gates) for record in live.records(Gates)] == [1, 0]


def test_a_gate_is_in_force_from_the_next_frame_although_nothing_passed_meanwhile(session):
    live = session()
    live.ask(OTHER)
    assert live.line() == OTHER
    for name in ("a", "b", "c"):
        live.set(compiled({"answer": json.dumps({"result": name})}, name, **CALLS))
        live.ask(CALL)
        assert json.loads(live.line()) == {"jsonrpc": "2.0", "id": 1, "result": name}
    assert live.finish() == (b"", b"", 0)


def test_a_viewer_that_is_killed_holds_ten_frames_no_longer_than_their_limit(session):
    live = session()
    hold = compiled({"hold": 2 * SECOND}, **CALLS)
    program = (
        "import sys, time\nfrom mcpspy.capture.live import LiveViewer\n"
        f"viewer = LiveViewer({str(live.path)!r}, {live.header.id!r})\n"
        f"viewer.set_gates([{hold!r}])\nprint(flush=True)\ntime.sleep(60)"
    )
    with limits.Popen([sys.executable, "-c", program], stdout=-1) as viewer:
        viewer.stdout.readline()
        time.sleep(0.1)
        live.ask(*[CALL] * 10)
        live.held(10)
        viewer.send_signal(signal.SIGKILL)
        assert [live.line() for _ in range(10)] == [CALL] * 10
    live.ask(CALL)
    assert live.line() == CALL
    assert live.finish() == (b"", b"", 0)
    assert [release.how for release in live.records(Release)] == ["expired"] * 10
    assert live.records(Gates)[-1].gates == ()


def test_an_edit_that_a_frame_has_no_place_for_leaves_it_held(session, monkeypatch):
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


@pytest.mark.parametrize("frame", ['{"id":1,"method":"a"}', '{"id":"a","method":"a"}', '{"method":"a"}', "[]", "{"])
def test_a_viewers_request_without_an_id_of_ours_is_refused(session, frame):
    live = session()
    live.viewer.send(frame)
    live.obeyed()
    out, err, code = live.finish()
    assert (out, code) == (b"", 0)
    assert err == (
        "mcpspy: a viewer's request was not sent: it must be one JSON-RPC request, its id a string mcpspy-…\n".encode()
    )


def test_a_viewers_request_does_not_land_inside_a_line(session):
    live = session()
    half = b'{"half":'
    live.process.stdin.write(half)
    assert live.process.stdout.read(len(half)) == half
    live.viewer.send('{"id":"mcpspy-a","method":"x"}')
    live.obeyed()
    live.process.stdin.write(b"1}\n")
    assert live.line() == b"1}"
    assert live.line() == b'{"id":"mcpspy-a","method":"x"}'
    assert live.finish() == (b"", b"", 0)
    assert next(frame.raw for frame in live.records(Frame) if frame.ch == 1) == half + b"1}"


# The ends


def test_exit_kills_the_server_and_gives_its_status(session):
    live = session()
    live.set(compiled({"exit": 7}, **CALLS))
    live.ask(OTHER)
    assert live.line() == OTHER
    live.ask(CALL)
    assert live.process.wait(SECONDS) == 7
    (call,) = [frame for frame in live.records(Frame) if frame.raw == CALL]
    assert (call.dropped, call.by) == (True, "gate g")
    assert [record.signal for record in live.records(End)] == [9]
    assert {close.ch: close.how for close in live.records(Close)} == {1: "exit", 2: "eof", 3: "eof"}


def test_exit_from_a_file_counts_also_for_what_the_server_wrote_last(tmp_path):
    gates = json.dumps([compiled({"exit": 3}, **{"from": "server"})])
    command = [sys.executable, gated.__file__, str(tmp_path / "capture.jsonl"), gates, "echo", "x"]
    assert limits.run(command, capture_output=True, check=False).returncode == 3
    assert [
        record.by for record in Capture(str(tmp_path / "capture.jsonl")).records() if isinstance(record, Gates)
    ] == ["file"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_all_go_that_a_live_gate_holds(session, number):
    ignore = "import signal\nfor number in (2, 15): signal.signal(number, lambda *_: None)\n"
    live = session(*python(ignore + "for _ in range(2): print(input(), flush=True)"))
    live.ask(OTHER)
    assert live.line() == OTHER
    live.set(HOLD)
    live.ask(CALL)
    live.held()
    os.kill(live.process.pid, number)
    assert live.line() == CALL
    assert live.process.wait(SECONDS) == 0
    assert [release.how for release in live.records(Release)] == ["closed"]


def test_the_end_of_stdin_lets_all_go_that_a_live_gate_holds(session):
    live = session()
    live.set(HOLD)
    live.ask(CALL, OTHER)
    live.held(2)
    assert live.finish() == (CALL + b"\n" + OTHER + b"\n", b"", 0)
    assert [release.how for release in live.records(Release)] == ["closed", "closed"]


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


def test_the_live_directory_is_removed_at_the_end(session):
    live = session()
    live.set(HOLD)
    live.ask(CALL)
    live.held()
    assert os.path.isdir(live.viewer.path)
    live.finish()
    assert not os.path.exists(live.viewer.path)
    never = session()
    never.viewer.set_gates([HOLD])
    never.finish()
    assert not os.path.exists(never.viewer.path), "nothing has passed: it is removed all the same"


def test_a_link_in_place_of_the_live_directory_is_refused_and_said_once(session, tmp_path):
    live = session()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    os.symlink(tmp_path / "elsewhere", live.viewer.path)
    for _ in range(3):
        live.ask(CALL)
        assert live.line() == CALL
        time.sleep(0.11)
    said = f"mcpspy: {live.viewer.path} is not a directory; no gate is taken from there\n".encode()
    assert live.finish() == (b"", said, 0)
    assert os.path.islink(live.viewer.path)


def test_without_control_nobody_looks(tmp_path):
    script = (
        "import os\nfrom mcpspy.process.child import environment, spawn\nfrom mcpspy.relay.stdio.relay import run\n"
        "server = spawn(['cat'], environment())\n"
        f"os._exit(run(server, ['cat'], {{}}, name=None, output={str(tmp_path / 'a')!r}, folder=None, check=False))"
    )
    with limits.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, bufsize=0) as process:
        until(lambda: (tmp_path / "a").exists() and (tmp_path / "a").stat().st_size)
        header = Capture(str(tmp_path / "a")).header
        assert not header.control
        viewer = LiveViewer(str(tmp_path / "a"), header.id)
        viewer.set_gates([compiled({"drop": True})])
        time.sleep(0.15)
        process.stdin.write(CALL + b"\n")
        assert line(process.stdout.fileno()) == CALL
        process.stdin.close()
        assert process.wait() == 0
    assert os.path.isdir(viewer.path)
    viewer.close()


# What does not change


def test_a_live_gate_with_a_bug_lets_traffic_pass_and_says_so_once(tmp_path):
    path = tmp_path / "capture.jsonl"
    command = [sys.executable, gated.__file__, str(path), "[]", ECHO]
    with limits.Popen(command, stdin=-1, stdout=-1, stderr=-1, bufsize=0) as process:
        until(lambda: path.exists() and path.stat().st_size)
        viewer = LiveViewer(str(path), Capture(str(path)).header.id)
        viewer.set_gates([compiled({"drop": True}, "raises")])
        time.sleep(0.1)
        for _ in range(3):
            process.stdin.write(CALL + b"\n")
            assert line(process.stdout.fileno()) == CALL
        out, err = process.communicate()
        said = b"mcpspy: gate raises failed (RuntimeError: a bug); such frames pass unchanged\n"
        assert (out, err, process.returncode) == (b"", said, 0)
    viewer.close()


def test_a_gate_that_no_relay_knows_is_said_once_and_others_are_in_force(session):
    live = session()
    live.set(compiled({"eat": True}, "odd"), compiled({"drop": True}, **CALLS), compiled({"status": 503}, "s"))
    live.ask(CALL, OTHER, OTHER)
    assert [live.line(), live.line()] == [OTHER, OTHER]
    _, err, code = live.finish()
    assert code == 0
    assert b"gate odd" in err
    assert err.count(b"\n") == 2


def test_while_a_live_gate_is_in_force_wrap_has_imported_nothing_heavy(tmp_path):
    """S-13: neither the filter language, nor TOML, nor more for JSON than orjson needs."""
    script = (
        "import os, sys\nfrom mcpspy.process.child import environment, spawn\nfrom mcpspy.relay.stdio import relay\n"
        "server = spawn(['cat'], environment())\n"
        f"code = relay.run(server, ['cat'], {{}}, name=None, output={str(tmp_path / 'a')!r}, folder=None, check=False,"
        " control=True)\n"
        "os.write(2, ' '.join(sys.modules).encode())\nos._exit(code)"
    )
    path = tmp_path / "a"
    with limits.Popen(
        [sys.executable, "-S", "-c", script],
        stdin=-1,
        stdout=-1,
        stderr=-1,
        bufsize=0,
        env=os.environ | {"PYTHONPATH": f"{os.path.dirname(os.path.dirname(prepare.HERE))}{os.pathsep}{LIBRARIES}"},
    ) as process:
        until(lambda: path.exists() and path.stat().st_size)
        viewer = LiveViewer(str(path), Capture(str(path)).header.id)
        viewer.set_gates([HOLD])
        time.sleep(0.1)
        process.stdin.write(CALL + b"\n")
        until(lambda: b'"held":1' in path.read_bytes())
        viewer.release(1, "edited", OTHER.decode())
        assert line(process.stdout.fileno()) == OTHER
        out, err = process.communicate()
        assert (out, process.returncode) == (b"", 0)
    viewer.close()
    modules = set(err.decode().split())
    assert "mcpspy.relay.stdio.gated" in modules
    heavy = {"tomllib", "typing", "threading", "base64", "asyncio", "argparse"}
    assert not modules & heavy
    ours = {name.split(".")[1] for name in modules if name.startswith("mcpspy.")}
    assert ours <= {
        "capture",
        "errors",
        "foreign_file",
        "gate",
        "json_text",
        "json_values",
        "process",
        "recording",
        "relay",
        "secrets",
        "text",
        "wire",
    }


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


@pytest.mark.parametrize("client", ["python1", "python2"])
def test_an_sdk_client_gets_the_result_of_the_call_that_a_viewer_has_edited(tmp_path, client):
    require_peers(client, "python1")
    capture, go = tmp_path / "capture.jsonl", tmp_path / "go"
    waits = ["sh", "-c", f'until test -e {go}; do sleep 0.02; done; exec "$@"', "sh", *prepare.server("python1")]
    command = [sys.executable, "-m", "mcpspy", "wrap", "-o", str(capture), "--", *waits]
    with running([*prepare.client(client, "--scenario", "basic"), "--", *command]) as process:
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
    live.ask(CALL)
    assert live.line() == CALL
    for number, gates in enumerate([*([gate] for gate in OUT_OF_BOUNDS), OUT_OF_BOUNDS], 1):
        live.viewer.set_gates(gates)
        until(lambda number=number: len(live.records(Gates)) >= number, "the gates are read")
        live.ask(CALL)
        assert live.line() == CALL
    live.viewer.set_gates([])
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
    for number in range(2000):
        with open(os.path.join(live.viewer.path, f"{number:06}.order.json"), "w", encoding="utf-8") as order:
            order.write("no JSON")
    began = time.monotonic()
    live.ask(OTHER)
    assert live.line() == OTHER
    assert time.monotonic() - began < 5
    live.obeyed()
    live.viewer.set_gates([])
    out, err, code = live.finish()
    assert (out, code) == (b"", 0)
    assert err.count(b"\n") <= 2000 / 100 + 1
