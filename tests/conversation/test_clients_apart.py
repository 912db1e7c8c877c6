"""Two equal SDK clients at once through one `mcpspy proxy`: both use the same ids, but are told apart."""

import signal
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from mcpspy.capture.reader import Capture
from mcpspy.conversation.conversation import Conversation
from mcpspy.conversation.model import Message
from mcpspy.report.checked import check
from mcpspy.spec.revisions import Revision
from mcpspy.wire.jsonrpc import Request
from tests.optional import require_peers
from tests.peers import prepare
from tests.peers.serving import LIMIT, run, running, serving

ON_PURPOSE = {"tools/unknown-tool", "tools/arguments", "schema/unknown-method"}  # planted faults of the client program


def session(client, url):
    command = prepare.client(client, "--scenario", "features", "--http", url)
    return run(command)


@pytest.mark.parametrize(
    ("client", "server", "revision"),
    [
        ("python2", "python2", Revision.R2026_07_28),  # without a session: nothing visible distinguishes them
        ("python1", "python1", Revision.R2025_11_25),
    ],
)
def test_two_clients_that_count_alike_have_each_the_answers_to_its_own_requests(tmp_path, client, server, revision):
    require_peers(client, server)
    capture = tmp_path / "capture.jsonl"
    with serving(server, "http") as url:
        proxy = [sys.executable, "-m", "mcpspy", "proxy", "--listen", "127.0.0.1:0", "-o", str(capture), url]
        with running(proxy) as process, ThreadPoolExecutor(2) as both:
            ours = process.stdout.readline().strip()
            for done in both.map(lambda _: session(client, ours), range(2)):
                assert done.returncode == 0, done.stderr
            process.send_signal(signal.SIGINT)
            process.wait(LIMIT)
    asked = Counter()
    for message in messages(capture):
        if isinstance(message.body, Request) and message.sender == "client" and message.revision is revision:
            asked[message.body.id] += 1
            answer = message.exchange.response
            assert answer is None or answer.http.answers == message.ch
    assert len([number for number, count in asked.items() if count == 2]) >= 10
    assert {it.rule for it in check(str(capture)).findings if it.severity != "info"} <= ON_PURPOSE


def messages(path):
    conversation = Conversation()
    events = [event for record in Capture(str(path)).records() for event in conversation.feed(record)]
    return [event for event in events if isinstance(event, Message)]
