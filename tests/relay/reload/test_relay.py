"""`wrap --reload` with processes: files change, servers are replaced, and the client stays connected."""

import json
import os
import signal
import sys

import pytest

from mcpspy.capture.records import Frame
from mcpspy.report.checked import check
from tests import limits
from tests.relay import late
from tests.relay.harness import LIMIT, end_group
from tests.relay.reload.reloading import INITIALIZE, SERVER, Reloading, gone, text

STUBBORN = """\
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("pid", os.getpid(), file=sys.stderr, flush=True)
time.sleep(600)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "src").mkdir()
    return tmp_path / "src"


def findings(path):
    return [(finding.rule, finding.frame) for finding in check(str(path)).findings]


def test_an_edit_replaces_the_server_and_the_client_hears_of_its_tools(folder):
    """The processes that a server has started end with it. Findings are printed while it runs.

    S-02: signals that `wrap` blocks for itself are never blocked in a server, whenever that is started.
    """
    # SigQ counts the signals queued for all processes of the user, so it is left out.
    lines = '"".join(it for it in open("/proc/self/status") if it[:3] == "Sig" and it[3] != "Q")'
    masks = SERVER.replace('{"seen"', f'{{"mask": {lines}, "seen"')
    with Reloading(folder, "--check", source=masks) as session:
        session.initialize()
        first, child, mask = int(session.call("pid")), int(session.call("child")), session.call("mask")
        assert session.call("version") == "version 1"
        session.edit("VERSION = 1", "VERSION = 2")
        session.await_message(method="notifications/tools/list_changed")
        assert session.call("version") == "version 2"
        gone(first)
        gone(child)
        second, another = int(session.call("pid")), int(session.call("child"))
        assert session.call("mask") == mask
        assert "SigBlk:\t0000000000000000" in mask
        handshake = [json.loads(line) for line in json.loads(session.call("seen"))[:2]]
        assert [it["method"] for it in handshake] == ["initialize", "notifications/initialized"]
        assert handshake[0]["id"] == "mcpspy-reload-1"
        assert findings(session.path) == []
        session.ask("tools/call", name="wrong")
        assert "/content" in session.hear("mcpspy: #")
        assert session.finish() == 0
        gone(second)
        gone(another)
        assert "initialize" not in {it.get("method") for it in session.came}
        assert [it["id"] for it in session.came if "id" in it] == list(range(1, session.ids + 1))


def test_levels_and_subscriptions_are_repeated_and_every_byte_passes_as_it_is(folder):
    with Reloading(folder) as session:
        session.initialize()
        session.ask("logging/setLevel", level="debug")
        for uri in ("file:///a", "file:///b"):
            session.ask("resources/subscribe", uri=uri)
        session.ask("resources/unsubscribe", uri="file:///a")
        session.reload()
        repeated = [json.loads(line) for line in json.loads(session.call("seen"))]
        assert [(it["method"], it.get("params", {}).get("uri")) for it in repeated[2:-1]] == [
            ("logging/setLevel", None), ("resources/subscribe", "file:///b"),
        ]  # fmt: skip
        assert findings(session.path) == []
        odd = b'{ "id":1.50,"jsonrpc" : "2.0", "method":"tools/call","params":{"name":"seen" } }\r'
        answer = session.wrap.ask(odd)
        while b"1.5" not in answer:
            answer = session.wrap.readline()
        assert json.loads(json.loads(answer)["result"]["content"][0]["text"])[-1] == odd.decode()
        session.finish()
        assert odd in session.wrap.frames(1)
        assert answer in session.wrap.frames(2)


def test_a_running_call_is_answered_with_the_reason(folder):
    with Reloading(folder) as session:
        session.initialize()
        hanging = session.request("tools/call", name="hang")
        session.await_message(method="notifications/message")
        session.edit("VERSION = 1", "VERSION = 2")
        error = session.await_message(id=hanging)["error"]
        assert error["message"] == "the server was reloaded because server.py changed; call again"
        assert error["data"] == {"by": "mcpspy wrap --reload", "changed": ["server.py"]}
        session.send(method="notifications/cancelled", params={"requestId": hanging})  # too late: it is not forwarded
        assert "cancelled" not in session.call("seen")
        session.finish()
        assert findings(session.path) == []


def test_with_idle_a_running_call_is_awaited_and_later_ones_wait(folder):
    slow = SERVER.replace(
        'if name == "crash"', 'if name == "slow":\n            sys.stdin.readline()\n        if name == "crash"'
    )
    with Reloading(folder, "--reload-after", "idle", source=slow) as session:
        session.initialize()
        running = session.request("tools/call", name="slow")
        session.edit("VERSION = 1", "VERSION = 2")
        session.hear("waiting for running calls")
        later = session.request("tools/call", name="version")
        session.send(method="notifications/roots/list_changed")  # is forwarded, and ends the slow call
        assert session.await_message(id=running)["result"]["content"][0]["text"] == "version 1"
        assert session.await_message(id=later)["result"]["content"][0]["text"] == "version 2"
        session.finish()
        assert findings(session.path) == []


def test_requests_of_servers_never_share_an_id_and_open_ones_are_cancelled(folder):
    with Reloading(folder) as session:
        session.initialize()
        session.call("ask")
        session.reload()
        session.send(id=1, result={"late": True})  # to the first server
        asked = len(session.came)
        session.call("ask")
        cancelled, request = [
            it for it in session.came[asked:] if it.get("method") in ("notifications/cancelled", "ping")
        ]
        assert cancelled["params"]["requestId"] == 1
        assert request["id"] == "mcpspy-server-1"
        session.send(id="mcpspy-server-1", result={"back": True})
        seen = session.call("seen")
        assert "late" not in seen
        assert json.loads(json.loads(seen)[-2]) == {"jsonrpc": "2.0", "id": 1, "result": {"back": True}}
        session.finish()
        assert findings(session.path) == []
        changed = [
            it for it in session.wrap.capture.records() if isinstance(it, Frame) and it.sent and it.by == "reload"
        ]
        assert [b"mcpspy-server-1" in it.sent for it in changed] == [True, False]


def test_a_server_that_does_not_start_again_or_crashes_is_started_by_the_next_edit(folder):
    """A client that leaves while nothing runs ends it all."""
    with Reloading(folder) as session:
        session.initialize()
        session.edit("VERSION = 1", "VERSION = (")
        told = session.hear("does not run")
        assert told == (
            "mcpspy: reload: the server does not run: it ended with exit status 1: SyntaxError: '(' was never closed; "
            "save a file to start it again\n"
        )
        error = session.ask("tools/call", name="version")["error"]
        assert error["message"].startswith(
            "the server does not run: it ended with exit status 1 after server.py changed;"
        )
        assert error["message"].endswith("SyntaxError: '(' was never closed")
        assert error["data"]["exit"] == 1
        assert session.ask("ping")["result"] == {}
        session.reload("VERSION = (", "VERSION = 3")
        assert session.call("version") == "version 3"
        assert findings(session.path) == []
        assert session.call("crash").startswith(
            "the server does not run: it ended with exit status 1; it is started again"
        )
        session.reload("VERSION = 3", "VERSION = 4")
        assert session.call("version") == "version 4"
        session.edit("VERSION = 4", "VERSION = (")
        session.hear("does not run")
        assert session.finish() == 1


def test_a_server_that_refuses_the_handshake_is_ended(folder):
    with Reloading(folder, source=SERVER.replace("REFUSES = False", "REFUSES = True")) as session:
        session.initialize()
        session.edit("VERSION = 1", "VERSION = 2")
        assert "it refused initialize: not today" in session.hear("does not run")
        assert "it refused initialize: not today" in session.call("version")
        session.reload("REFUSES = True", "REFUSES = False")
        assert session.call("version") == "version 2"
        session.finish()


def test_what_the_client_cannot_be_told_is_said_on_stderr(folder):
    with Reloading(folder) as session:
        session.initialize()
        session.edit('"logging": {}', '"prompts": {}')
        assert "the client cannot be told that the server no longer has logging" in session.hear("no longer")
        assert "the client cannot be told that the server now has prompts" in session.hear("now has")
        session.hear("restart the client")
        session.hear("ready")
        session.finish()
        recorded = [it for it in session.wrap.capture.records() if isinstance(it, Frame) and it.ch == 3]
        assert any(it.sender == "mcpspy" and b"no longer has logging" in it.raw for it in recorded)


def test_without_a_handshake_the_discovery_is_repeated_and_subscriptions_go_on(folder):
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    }
    with Reloading(folder) as session:
        session.hear("watching")
        session.ask("server/discover", _meta=meta)
        listen = session.request("subscriptions/listen", _meta=meta, notifications={"toolsListChanged": True})
        session.await_message(method="notifications/subscriptions/acknowledged")
        session.edit("VERSION = 1", "VERSION = 2")
        change = session.await_message(method="notifications/tools/list_changed")
        assert change["params"] == {"_meta": {"io.modelcontextprotocol/subscriptionId": listen}}
        assert text(session.ask("tools/call", name="version", _meta=meta)) == "version 2"
        methods = [it.get("method") for it in session.came]
        assert methods.count("notifications/subscriptions/acknowledged") == 1
        session.finish()


def test_a_handshake_that_runs_is_sent_again(folder):
    silent = SERVER.replace('elif method == "initialize":', 'elif method == "initialize" and VERSION > 1:', 1)
    with Reloading(folder, source=silent.replace("else:\n        say(id=id, result={})", "")) as session:
        session.hear("watching")
        waiting = session.request("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        session.edit("VERSION = 1", "VERSION = 2")
        assert session.await_message(id=waiting)["result"]["serverInfo"]["version"] == "2"
        session.finish()


def test_a_server_that_ignores_everything_is_killed(folder):
    stubborn = SERVER.replace("seen = []", "import signal, time\nsignal.signal(15, signal.SIG_IGN)\nseen = []")
    with Reloading(folder, source=stubborn + "if VERSION == 1:\n    time.sleep(600)\n") as session:
        session.initialize()
        first = int(session.call("pid"))
        session.reload("VERSION = 1", "VERSION = 2")
        gone(first)
        assert session.call("version") == "version 2"
        session.finish()


def test_the_capture_may_stand_among_the_watched_files(folder):
    with Reloading(folder, "--reload", ".") as session:
        session.finish()
    with Reloading(folder, "--reload", ".", "-o", "session.jsonl") as session:
        session.initialize()
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "server.pyc").write_bytes(b"")
        (folder / ".server.py.swp").write_bytes(b"")
        session.reload()
        session.call("version")
        session.finish()
        assert sum("replacing" in line for line in session.told) == 1


def test_a_server_that_never_runs_ends_it_as_without_reload(folder):
    (folder / "watched").touch()
    for argv, status in (("/no/such/server",), 127), (("sh", "-c", "echo no >&2; exit 7"), 7):
        with Reloading(folder) as session:
            end_group(session.wrap)
        command = [*session.wrap.args[: session.wrap.args.index("--") + 1], *argv]
        done = limits.run(command, capture_output=True, stdin=limits.subprocess.DEVNULL)
        assert done.returncode == status


SLEEPS = "import time\nif VERSION == 2:\n    time.sleep(600)\nseen = []"


LIMITED = "from mcpspy.relay.reload import relay; relay.{name} = {seconds}; from mcpspy.cli import main; main()"


def limited(name, seconds):
    """Return a program with another limit."""
    return ("-c", LIMITED.format(name=name, seconds=seconds))


@pytest.mark.parametrize("edited", [True, False])
def test_a_server_that_takes_too_long_to_start_is_replaced_by_an_edit_or_ended(folder, edited):
    program = limited("STARTS", 600 if edited else 0.3)
    with Reloading(folder, source=SERVER.replace("seen = []", SLEEPS), program=program) as session:
        session.initialize()
        session.edit("VERSION = 1", "VERSION = 2")
        session.hear("replacing")
        waiting = session.request("tools/call", name="version")
        if edited:
            session.edit("VERSION = 2", "VERSION = 3")
            assert text(session.await_message(id=waiting)) == "version 3"
            assert session.finish() == 0
        else:
            error = text(session.await_message(id=waiting))
            why = "it did not answer the handshake within 0.3 s after server.py"
            assert error.startswith(f"the server does not run: {why}")
            session.finish()


def test_with_idle_the_wait_has_an_end(folder):
    with Reloading(folder, "--reload-after", "idle", program=limited("AFTER_IDLE", 0.1)) as session:
        session.initialize()
        hanging = session.request("tools/call", name="hang")
        session.await_message(method="notifications/message")
        session.edit("VERSION = 1", "VERSION = 2")
        assert "call again" in session.await_message(id=hanging)["error"]["message"]
        session.hear("calls still run after 0.1 s; replacing the server anyway")
        session.finish()


def test_an_unfinished_line_of_a_server_never_reaches_the_client(folder):
    half = SERVER.replace(
        "            continue\n", "            print('{', end='', flush=True)\n            continue\n"
    )
    with Reloading(folder, source=half) as session:
        session.initialize()
        session.request("tools/call", name="hang")
        session.await_message(method="notifications/message")
        session.reload("VERSION = 1", "VERSION = 2")
        assert session.call("version") == "version 2"
        session.finish()
        cut = [(it.raw, it.dropped) for it in session.wrap.capture.records() if isinstance(it, Frame) and it.cut]
        assert cut == [(b"{", True)]
        assert findings(session.path) == []


def test_a_second_server_that_fails_is_no_end_although_nothing_was_answered_yet(folder):
    silent = SERVER.replace(
        '    if method == "initialize" and REFUSES',
        '    if VERSION == 1:\n        continue\n    if method == "initialize" and REFUSES',
    )
    with Reloading(folder, source=silent) as session:
        session.hear("watching")
        waiting = session.request("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={})
        session.edit("VERSION = 1", "VERSION = (")
        assert "does not run" in session.await_message(id=waiting)["error"]["message"]
        session.reload("VERSION = (", "VERSION = 2")
        answer = session.ask("initialize", **INITIALIZE)
        assert "result" in answer, answer
        session.finish()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_later_server_does_not_outlive_a_relay_that_is_signalled_or_killed(folder, number):
    """S-07, for a server that was started while threads were running."""
    lives = SERVER + "import time\ntime.sleep(600)\n" if number == signal.SIGKILL else SERVER
    with Reloading(folder, source=lives) as session:
        session.initialize()
        session.reload()
        pid = int(session.call("pid"))
        os.kill(session.wrap.pid, number)
        assert session.wrap.wait(LIMIT) == -number
        gone(pid)


@pytest.mark.parametrize("leave", ["its stdin is closed", "it is sent a signal"])
def test_a_server_that_is_still_starting_does_not_keep_a_client_that_leaves(folder, leave):
    with Reloading(folder) as session:
        session.initialize()
        session.file.write_text(STUBBORN)
        pid = int(session.hear("pid").split()[1])
        if leave == "its stdin is closed":
            session.wrap.stdin.close()
        else:
            session.wrap.terminate()
        assert session.wrap.wait(LIMIT) == -signal.SIGKILL
        gone(pid)


@pytest.mark.parametrize(("broken", "wanted"), [("", "version 2"), ("sys.exit(4)", "it ended with exit status 4")])
def test_a_client_that_sends_no_more_has_the_answers_to_what_waits(folder, broken, wanted):
    with Reloading(folder) as session:
        session.initialize()
        session.edit("VERSION = 1", f"import time; time.sleep(0.5); {broken}\nVERSION = 2")
        session.hear("replacing")
        waiting = session.request("tools/call", name="version")
        session.wrap.stdin.close()
        assert wanted in text(session.await_message(id=waiting))
        assert session.wrap.wait(LIMIT) == (4 if broken else 0)
        assert findings(session.path) == []


def test_an_edit_while_the_watch_begins_reloads_the_server(folder):
    """A-22: the server has read its file before, and no system has a notice of the edit."""
    edits = "from pathlib import Path\nimport watchfiles\nfrom mcpspy.cli import main\nwatch = watchfiles.watch\n"
    edits += "def edit_first(*paths, **options):\n    global watch\n    watchfiles.watch = watch\n"
    edits += "    Path('server.py').write_text(Path('server.py').read_text().replace('VERSION = 1', 'VERSION = 2'))\n"
    edits += "    return watch(*paths, **options)\nwatchfiles.watch = edit_first\nmain()"
    with Reloading(folder, program=("-c", edits)) as session:
        session.hear("server.py changed; replacing the server")
        session.ask("initialize", **INITIALIZE)
        assert session.call("version") == "version 2"


def test_no_frame_causes_an_import(folder, tmp_path):
    """V-02."""
    log = tmp_path / "events"
    with Reloading(folder, program=late.program(log, f"{folder.name}.jsonl")) as session:
        session.initialize()
        session.reload()
        session.call("version")
        session.ask("tools/list", text="x" * 9_000_000)
        assert session.finish() == 0
    assert [it for it in late.unwanted(log, tmp_path) if " open " not in it] == []


DEAF = """\
import fcntl, select, sys, time
while int.from_bytes(fcntl.ioctl(0, 0x541B, b"0000"), "little") < {size}:
    time.sleep(0.001)
print("sent", file=sys.stderr, flush=True)
poll = select.poll()
poll.register(1, 0)
poll.poll()
print("unread", file=sys.stderr, flush=True)
for line in sys.stdin.buffer:
    print("got", len(line), file=sys.stderr, flush=True)
"""
"""A server that reads nothing until the client has closed its stdout."""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report that a reader has left")
@pytest.mark.parametrize("size", [20, 300_000], ids=["idle", "blocked"])
def test_a_client_that_closes_only_its_stdout_is_still_heard(folder, size):
    """V-01: also if the thread that forwards its lines waits for a server that does not read."""
    with Reloading(folder, source=DEAF.format(size=min(size, 65536))) as session:
        session.wrap.stdin.write(b"x" * (size - 1) + b"\n")
        session.hear("sent")
        session.wrap.stdout.close()
        session.hear("unread")
        session.hear(f"got {size}")
        session.wrap.stdin.write(b"later\n")
        session.hear("got 6")
        assert session.finish() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not report that a reader has left")
def test_a_client_that_closes_its_stdout_while_a_server_starts_is_heard_by_it(folder):
    """V-01: the handshake with the new server is completed, and what waits is delivered."""
    waits = SERVER.replace("seen = []", "if VERSION == 2:\n    open(sys.argv[0] + '.fifo').read()\nseen = []")
    waits = waits.replace("    seen.append", "    print(line, file=sys.stderr, flush=True)\n    seen.append")
    os.mkfifo(folder / "server.py.fifo")
    with Reloading(folder, source=waits) as session:
        session.initialize()
        session.edit("VERSION = 1", "VERSION = 2")
        session.hear("replacing")
        with (folder / "server.py.fifo").open("w"):
            session.request("tools/call", name="waiting")
            session.wrap.stdout.close()
        session.hear('"waiting"')
        session.finish()


def test_the_server_starts_before_the_watched_files_are_read(folder):
    """A-22: many files do not delay the first byte."""
    never = "import threading\nfrom mcpspy.relay.reload import files\nfrom mcpspy.cli import main\n"
    never += "files.snapshot = lambda *_: threading.Event().wait()\nmain()"
    with Reloading(folder, program=("-c", never)) as session:
        assert "result" in session.ask("initialize", **INITIALIZE)
        assert session.finish() == 0


@pytest.mark.parametrize("uses", [False, True], ids=["idle", "in use"])
def test_a_file_that_the_server_writes_at_each_start_stops_to_reload_it(folder, uses):
    """A-22: its own edits still replace the server."""
    writes = SERVER.replace("seen = []", "print(VERSION, file=open('log', 'a'))\nseen = []")
    with Reloading(folder, "--reload", ".", source=writes) as session:
        session.ask("initialize", **INITIALIZE)
        session.send(method="notifications/initialized")
        if uses:
            session.call("version")
        session.hear("log changes whenever the server starts: it no longer reloads the server")
        session.hear("ready")
        assert sum("log changed; replacing" in line for line in session.told) in (3, 4)  # 4 if the first report is late
        before = len(session.told)
        session.reload("VERSION = 1", "VERSION = 2")
        assert "server.py changed; replacing the server" in session.told[before]
        assert session.call("version") == "version 2"
        assert session.finish() == 0
        assert findings(session.path) == []


def test_edits_that_follow_closely_are_not_taken_for_changes_of_the_server(folder):
    """A-22: edits after an answer of the new server, and mends of one that does not start."""
    with Reloading(folder) as session:
        session.initialize()
        for version in range(1, 6):
            session.reload(f"VERSION = {version}\n", f"VERSION = {version + 1}\n")
            assert session.call("version") == f"version {version + 1}"
        for broken in range(4):
            session.edit(f"VERSION = {'(' * broken or 6}\n", f"VERSION = {'(' * (broken + 1)}\n")
            session.hear("does not run")
        session.reload("VERSION = ((((\n", "VERSION = 7\n")
        assert session.call("version") == "version 7"
        assert not any("whenever the server starts" in line for line in session.told)
        session.finish()
