"""Servers in all states: answering, refusing, silent, dying, chatty; where silence is the case, patience is short."""

import os
import socket
import sys

import pytest

from mcpspy.clients import probe
from mcpspy.clients.probe import holder, listening, talk
from tests.relay.harness import LIMIT, running, until

ANSWER = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] in {methods}:
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "result": {{"of": request["method"]}}}}), flush=True)
    elif {refuse}:
        error = {{"code": -32601, "message": "no " + request["method"]}}
        print(json.dumps({{"jsonrpc": "2.0", "id": request["id"], "error": error}}), flush=True)
"""
ENVIRON = {"PATH": os.defpath}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Nobody waits as long as for a real server."""
    monkeypatch.setattr(probe, "_PROBE", 0.3)
    monkeypatch.setattr(probe, "_LEAVE", 0.3)


def python(source, patience=LIMIT):
    return talk([sys.executable, "-I", "-S", "-c", source], ENVIRON, "/", patience)


def test_a_server_of_the_per_request_era_answers_discover():
    answer = python(ANSWER.format(methods=["server/discover"], refuse=True))
    assert (answer.method, answer.result) == ("server/discover", {"of": "server/discover"})
    assert (answer.noise, answer.stderr, answer.exit) == ([], [], None)


@pytest.mark.parametrize("refuse", [True, False], ids=["that refuses discover", "that is silent at discover"])
def test_an_older_server_is_asked_to_initialize(refuse):
    answer = python(ANSWER.format(methods=["initialize"], refuse=refuse))
    assert (answer.method, answer.result) == ("initialize", {"of": "initialize"})


def test_a_server_that_refuses_everything_says_why():
    answer = python(ANSWER.format(methods=[], refuse=True))
    assert (answer.method, answer.error) == (None, "no initialize")


def test_a_server_that_dies_tells_its_status_and_its_stderr():
    answer = python("import sys; print('what is wrong', file=sys.stderr); sys.exit(7)")
    assert (answer.method, answer.exit, answer.stderr) == (None, 7, ["what is wrong"])


def test_what_is_no_message_is_noise():
    answer = python(
        "print('Listening...', flush=True)\nprint('[1]')" + ANSWER.format(methods=["initialize"], refuse=True)
    )
    assert (answer.method, answer.noise) == ("initialize", ["Listening...", "[1]"])


def test_a_silent_server_is_ended_whatever_it_ignores(tmp_path):
    pids = tmp_path / "pids"
    source = (
        "import os, signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = os.fork()\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}} ')\n"
        "time.sleep(1000)\n"
    )
    answer = python(source, patience=1.5)
    assert (answer.method, answer.exit, answer.error) == (None, None, "")
    for pid in pids.read_text().split():
        until(lambda pid=pid: not running(int(pid)), "the end of the server")


def test_a_server_that_closes_its_stdout_is_not_waited_for():
    answer = python("import os, sys; os.close(1); sys.stdin.read()")
    assert answer.error == "it closed its stdout"
    assert answer.seconds < LIMIT / 2


def test_what_cannot_be_started_is_an_error():
    with pytest.raises(FileNotFoundError):
        talk(["/nowhere/server"], ENVIRON, "/")


def test_a_listener_is_seen_and_named():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert not listening(port)
        server.listen()
        assert listening(port)
        if sys.platform == "linux":
            with open("/proc/self/cmdline", "rb") as file:
                assert holder(port) == [word.decode() for word in file.read().split(b"\0") if word]
    assert not listening(port)
    assert holder(port) == []
