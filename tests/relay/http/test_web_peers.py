"""Real SDK clients and servers give the same results with `mcpspy proxy` between them, and everything is recorded.

SDK client ── mcpspy proxy ── SDK server        Streamable HTTP of both eras, legacy HTTP+SSE, and WebSocket
"""

import json
import re
import signal
import sys

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.capture.records import Close, Frame, Open
from mcpspy.report.checked import check
from mcpspy.wire.jsonrpc import Error, Request, Result, parse
from mcpspy.wire.sse import parse_event
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import LIMIT, PATHS, each, run, running, serving

# The deliberate mistakes of every client program.
ON_PURPOSE = {"tools/unknown-tool", "tools/arguments", "schema/unknown-method"}
# Python SDK 1 refuses the request of another revision under the id "server-error".
REFUSED_PROBE = {"pairing/orphan-response"}
SESSIONS = [
    *(
        (client, server, transport)
        for client in prepare.SDKS
        for server in ("python1", "python2")
        for transport in ("http", "sse")
    ),
    ("python1", "python1", "ws"),
    ("node", "everything", "http"),
    ("node", "everything", "sse"),
]
USUAL = {  # has every client, server and transport, and both eras
    ("python1", "python2", "sse"), ("python2", "python2", "http"), ("python1", "python1", "ws"),
    ("node", "python1", "http"), ("node", "everything", "sse"),
}  # fmt: skip


def session(client, transport, url, scenario):
    """Run the program of a client, and return its report."""
    command = prepare.client(client, "--scenario", scenario, f"--{transport}", url)
    done = run(command)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(("client", "server", "transport"), each(SESSIONS, USUAL))
def test_a_session_is_the_same_through_the_proxy(tmp_path, client, server, transport):
    """H-01, H-03, H-04, H-06, H-08 with real peers: the SDKs check the Host."""
    require_peers(client, server)
    scenario = "everything" if server == "everything" else "full"
    with serving(server, transport) as url:
        bare = session(client, transport, url, scenario)
    capture = tmp_path / "capture.jsonl"
    with serving(server, transport) as url:
        proxy = [sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", "-o", str(capture), url]
        with running(proxy) as process:
            ours = process.stdout.readline().strip()
            assert re.fullmatch(rf"http://127\.0\.0\.1:\d+{PATHS[transport]}", ours)
            through = session(client, transport, ours, scenario)
            process.send_signal(signal.SIGINT)
            assert process.wait(LIMIT) == 0
    assert through == bare
    assert bare["steps"][0]["result"]["revision"] == ("2026-07-28" if client == server == "python2" else "2025-11-25")
    probed = (client, server, transport) == ("python2", "python1", "http")
    judge(capture, transport, ON_PURPOSE | REFUSED_PROBE if probed else ON_PURPOSE)


def judge(path, transport, expected=frozenset(ON_PURPOSE)):
    """Check that the capture has every message of both peers completely, and that every response has a request."""
    opens, closes, asked, answered = {}, {}, 0, 0
    for record in Capture(str(path)).records():
        if isinstance(record, Open):
            opens[record.ch] = record
        elif isinstance(record, Close):
            closes[record.ch] = record.how
        elif isinstance(record, Frame):
            assert not record.cut or closes.get(record.ch) != "eof"
            channel = opens[record.ch]
            raw = parse_event(record.raw).data if channel.framing == "sse" else record.raw
            if raw in (None, b"", b"Accepted") or raw.startswith(b"/mess"):
                continue
            for message in parse(raw):
                assert isinstance(message.value, dict), raw
                asked += isinstance(message, Request) and channel.sender == "client"
                answered += isinstance(message, Result | Error) and channel.sender == "server"
    assert asked >= 10
    assert asked - 3 <= answered <= asked  # a cancelled request or a `listen` has no response
    for channel in opens.values():
        if channel.role == "response":
            assert opens[channel.answers].role == "request"
        assert channel.ch in closes
    wrong = {finding.rule for finding in check(str(path)).findings if finding.severity != "info"}
    assert wrong <= expected
    framing = "message" if transport == "ws" else "sse"
    assert [channel for channel in opens.values() if channel.framing == framing]
    if transport == "sse":
        assert [it.head["method"] for it in opens.values() if it.role == "request"].count("GET") == 1
