import queue
import sys

from mcpspy.replay.growth import AHEAD, RecordedServer
from mcpspy.replay.mock import Missing
from mcpspy.replay.script import script_of
from tests.limits import LIMIT
from tests.relay.harness import until
from tests.replay.scripts import result

ECHO = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)"
STUBBORN = (
    "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('here', flush=True)\ntime.sleep(300)"
)


def begun(path, program):
    """Begin a server that runs a program; return it, its `send`, its queue, and the `Missing` on the client's side."""
    heard = queue.SimpleQueue()
    server = RecordedServer([sys.executable, "-I", "-S", "-c", program], path, "weather", heard)
    missing = Missing(server.begin)
    return server, server.begin(missing), heard, missing


def test_what_is_sent_and_said_is_recorded(tmp_path):
    path = str(tmp_path / "c.jsonl")
    server, send, heard, missing = begun(path, ECHO)
    send(result(1, "x").encode())
    heard.get(timeout=LIMIT)()
    assert [it.raw.decode() for it in missing.take()] == [result(1, "x")]
    server.end()
    script = script_of(path)
    assert (script.header.name, script.complete, len(script.messages)) == ("weather", True, 2)


def test_its_end_is_heard_after_all_that_it_said(tmp_path):
    server, _, heard, missing = begun(str(tmp_path / "c.jsonl"), "print('one'); print('two'); exit(7)")
    for _ in range(3):
        heard.get(timeout=LIMIT)()
    assert [it.raw for it in missing.take()] == [b"one", b"two"]
    server.end()
    assert heard.empty()


def test_one_that_ignores_the_end_is_killed_with_its_relay(tmp_path):
    server, _, heard, missing = begun(str(tmp_path / "c.jsonl"), STUBBORN)
    heard.get(timeout=LIMIT)()
    server.end()
    heard.get(timeout=LIMIT)()
    assert not missing.pending
    assert not missing.failed


def test_one_that_was_never_begun_has_nothing_to_end(tmp_path):
    heard = queue.SimpleQueue()
    RecordedServer(["true"], str(tmp_path / "c.jsonl"), None, heard).end()
    assert heard.empty()
    assert not list(tmp_path.iterdir())


def test_one_that_says_much_waits_for_a_mock_that_takes_nothing(tmp_path):
    server, _, heard, missing = begun(str(tmp_path / "c.jsonl"), "for n in range(3000): print(n)")
    until(lambda: heard.qsize() == AHEAD, "lines that wait")
    heard.get(timeout=LIMIT)()
    until(lambda: heard.qsize() == AHEAD, "another line")
    for _ in range(3000):  # the last entry is the end
        heard.get(timeout=LIMIT)()
    assert [it.raw for it in missing.take()] == [b"%d" % n for n in range(3000)]
    server.end()
