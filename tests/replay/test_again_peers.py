"""Requests of captured sessions are sent again to the servers of the SDKs, over every transport."""

import json

import pytest

from mcpspy.replay.script import script_of
from tests.optional import require_peers
from tests.peers.serving import each, serving
from tests.replay.test_peers import SESSIONS, peers
from tests.timelines import CAPTURES

REQUESTS = [  # the method and the name; the last such request of a capture is sent
    ("tools/call", "add"),
    ("tools/call", "get-sum"),
    ("resources/list", None),  # the second page
    ("resources/read", "peer://note"),
    ("resources/read", "demo://resource/static/document/architecture.md"),
    ("tools/call", "sample"),
    ("tools/call", "trigger-sampling-request"),
    ("tools/call", "ask"),
    ("tools/call", "ask_twice"),  # 2026-07-28: the third round
    ("tools/call", "trigger-elicitation-request"),
    ("tasks/result", None),
]
LEAST = 4
OVER_HTTP = [  # capture, server, transport
    ("http-python1-2025-11-25", "python1", "http"),
    ("http-everything-2025-11-25", "everything", "http"),
    ("features-python2-2025-03-26", "python2", "http"),
    ("http-python2-2026-07-28", "python2", "http"),
    ("sse-python1-2024-11-05", "python1", "sse"),
    ("features-python2-2025-03-26", "python2", "sse"),
    ("everything-2025-11-25", "everything", "sse"),
]
ALONE = pytest.mark.parametrize("alone", [False, pytest.param(True, marks=pytest.mark.field)], ids=["all", "alone"])


def check(mcpspy, name, alone, *target):
    """Send the requests together or each by itself; the answers must be the recorded ones."""
    turns = [turn for turn in script_of(str(CAPTURES / f"{name}.jsonl")).turns if turn.exchange]
    last = {(turn.method, turn.name): turn.cause.n for turn in turns if (turn.method, turn.name) in REQUESTS}
    assert len(last) >= LEAST
    rows = [*map(str, last.values())]
    for only in rows if alone else [",".join(rows)]:
        code, out, err = mcpspy(
            "replay", CAPTURES / f"{name}.jsonl", "--only", only, "--yes", "--format", "json", *target
        )
        assert (code, {it["outcome"] for it in json.loads(out)["exchanges"]}) == (0, {"same"}), (only, out, err)


@ALONE
@pytest.mark.parametrize("name", each([it for it in SESSIONS if "probe" not in it], {"features-node-2025-11-25"}))
def test_requests_are_sent_again_to_a_server_on_pipes(name, alone, mcpspy):
    server, _ = peers(name)
    check(mcpspy, name, alone, "--", *server)


@ALONE
@pytest.mark.parametrize(("name", "server", "transport"), each(OVER_HTTP, {OVER_HTTP[3], OVER_HTTP[4]}))
def test_requests_are_sent_again_to_a_server_over_http(name, server, transport, alone, mcpspy):
    require_peers(server)
    with serving(server, transport) as url:
        check(mcpspy, name, alone, "--url", url)
