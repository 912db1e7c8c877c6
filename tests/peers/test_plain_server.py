import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import limits
from tests.peers import plain_server

SERVER = str(Path(plain_server.__file__))


def asked(method, **params):
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def test_requests_are_answered():
    (greeting, seconds) = plain_server.reply(asked("initialize", protocolVersion="2025-06-18"))
    assert (greeting["result"]["protocolVersion"], seconds) == ("2025-06-18", 0)
    assert plain_server.reply(asked("initialize", protocolVersion="3000-01-01"))[0]["result"]["protocolVersion"] == (
        "2025-11-25"
    )
    assert plain_server.reply(asked("server/discover"))[0]["error"]["code"] == -32601
    assert plain_server.reply(asked("ping"))[0]["result"] == {}
    told, seconds = plain_server.reply(asked("tools/call", name="slow", arguments={"seconds": 7}))
    assert (told["result"]["content"][0]["text"], seconds) == ("echo: 7", 7)
    assert plain_server.reply({"jsonrpc": "2.0", "method": "notifications/initialized"}) == (None, 0)


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def started(log, *options):
    command = [sys.executable, SERVER, str(log), *options]
    return limits.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def send(server, message):
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def events(log):
    return [json.loads(line)["event"] for line in log.read_text().splitlines()]


def until(log, event):
    given_up = time.monotonic() + limits.LIMIT
    while event not in events(log):
        assert time.monotonic() < given_up
        time.sleep(0.01)


def test_a_server_with_noise_that_cleans_up_logs_how_it_was_ended(log):
    with started(log, "--noise", "--clean-up", "0.1") as server:
        send(server, asked("initialize", protocolVersion="2025-11-25"))
        assert server.stdout.readline() == b"Working ...\n"
        assert b'"result"' in server.stdout.readline()
        server.send_signal(signal.SIGINT)
        until(log, "signal SIGINT")
        server.stdin.close()
        assert server.wait() == 0
    told = events(log)
    assert told[:3] == ["start", "< initialize", "signal SIGINT"]
    assert told[-2:] == ["cleaned", "end"]
    assert {"alive", "eof"} <= set(told)


def test_a_call_of_crash_ends_it(log):
    with started(log) as server:
        send(server, asked("tools/call", name="crash"))
        assert server.wait() == 1
    assert events(log) == ["start", "< tools/call", "end"]
